/** Decides whether a subscribed client still has access. Subscriptions outlive the access token that made them. */
import type { Clock } from '../../kit/clock/clock.ts';
import { ownerOf } from '../../wire/did.ts';
import type { RemoteScope, TrustedIssuer } from '../../wire/remote-caller.ts';
import type { Principal } from './store.ts';

/** How long a verdict is reused. */
const FRESH_MS = 5000;
const MOST_VERDICTS = 10_000;

type Verdict = { readonly at: number; readonly reason: Promise<string | undefined> };

export class Access {
  readonly #issuers: readonly TrustedIssuer[];
  readonly #clock: Clock;
  readonly #verdicts = new Map<number, Verdict>();

  constructor(issuers: readonly TrustedIssuer[], clock: Clock) {
    this.#issuers = issuers;
    this.#clock = clock;
  }

  /** Whether the issuer reports revoked grants. Otherwise only a new token proves that the access continues. */
  canBeRevoked({ issuer }: Pick<Principal, 'issuer'>): boolean {
    return this.#issuerOf(issuer)?.isRevoked !== undefined;
  }

  /**
   * Why the access of a client has ended; `undefined` while it continues.
   *
   * @throws when the issuer cannot answer now
   */
  endOf(principal: Principal, scope: RemoteScope): Promise<string | undefined> {
    if (!principal.scopes.includes(scope)) return Promise.resolve(`its access has no ${scope}`);
    const now = this.#clock.monotonic();
    const known = this.#verdicts.get(principal.id);
    if (known && now - known.at < FRESH_MS) return known.reason;
    if (this.#verdicts.size >= MOST_VERDICTS) this.#verdicts.clear();
    const reason = this.#judge(principal);
    this.#verdicts.set(principal.id, { at: now, reason });
    reason.catch(() => this.#verdicts.delete(principal.id));
    return reason;
  }

  /** Discards the verdict on a client, because a new token of it was verified. */
  renewed({ id }: Pick<Principal, 'id'>): void {
    this.#verdicts.delete(id);
  }

  async #judge({ issuer: name, subject, userId, grant }: Principal): Promise<string | undefined> {
    const issuer = this.#issuerOf(name);
    if (!issuer) return 'its issuer is no longer trusted';
    const user = issuer.userOf(subject);
    if (user === undefined || ownerOf(user) !== userId) return 'its subject no longer belongs to this user';
    return (await issuer.isRevoked?.(grant)) === true ? 'its access was revoked' : undefined;
  }

  #issuerOf(name: string): TrustedIssuer | undefined {
    return this.#issuers.find(({ issuer }) => issuer === name);
  }
}
