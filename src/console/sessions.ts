/**
 * Who is in: one-time codes that become sessions, and the cookie of a session. A cookie does not know ports, so that any
 * other server on the same computer would be sent one for `/`; ours is for a path that nobody else knows, and the pages
 * of a session live below it (docs/decisions/0043-the-console.md).
 */
import type { Clock } from '../kit/clock/clock.ts';
import { randomSecret, sameSecret, seal, tokenDigest } from '../kit/identity/secrets.ts';
import type { Undo } from './undo.ts';

/** A code is typed or opened at once. */
const CODE_MS = 10 * 60_000;
/** Without a request for so long, or after so long in any case, a session is over. */
const IDLE_MS = 12 * 3_600_000;
const LONGEST_MS = 7 * 24 * 3_600_000;
/** Of one person; the one that was used longest ago goes. */
const MOST_SESSIONS = 32;

const VERSION = 'c1';
const COOKIE = /(?:^|;\s*)([A-Za-z0-9_-]+)=([A-Za-z0-9_-]{1,100})(?=;|$)/g;

export type Session = {
  readonly user: string;
  /** The path that its pages are below: `/~…/`. */
  readonly base: string;
  /** What every write has to say. */
  readonly csrf: string;
  readonly startedAt: number;
  /** What was done last and can be taken back, and what to say once. */
  readonly undo: Undo;
};

type Kept = Session & { readonly digest: string; usedAt: number };

/**
 * A code that opens one session for one person, once, within ten minutes. Whoever has the secret can make one without
 * asking anybody; the console remembers those that were used.
 *
 * @param now epoch ms
 */
export function makeCode(secret: string, user: string, now: number): string {
  const text = [VERSION, now + CODE_MS, randomSecret(12), Buffer.from(user, 'utf8').toString('base64url')].join('.');
  return `${text}.${seal(secret, text)}`;
}

export type SessionFigures = { codesRefused: number; cookiesRefused: number; csrfRefused: number };

export class Sessions {
  readonly #clock: Clock;
  readonly #secret: string | undefined;
  readonly #cookie: string;
  readonly #attributes: string;
  readonly #makeUndo: () => Undo;
  readonly #kept = new Map<string, Kept>();
  /** Codes that were used, until they would have expired. */
  readonly #used = new Map<string, number>();
  readonly figures: SessionFigures = { codesRefused: 0, cookiesRefused: 0, csrfRefused: 0 };

  /** @param options.codeSecret seals one-time codes; without it, none is taken */
  constructor(options: { clock: Clock; codeSecret: string | undefined; isTls: boolean; makeUndo: () => Undo }) {
    this.#clock = options.clock;
    this.#secret = options.codeSecret;
    this.#makeUndo = options.makeUndo;
    this.#cookie = options.isTls ? '__Secure-reveille' : 'reveille';
    this.#attributes = `HttpOnly; SameSite=Strict${options.isTls ? '; Secure' : ''}`;
  }

  /** Whose code it is; used up by this. `undefined` when it is forged, too old, or was used. */
  takeCode(code: string): string | undefined {
    const user = this.#readCode(code);
    if (user === undefined) this.figures.codesRefused++;
    return user;
  }

  #readCode(code: string): string | undefined {
    const [version, expires = '', nonce = '', user = '', mac = '', ...rest] = code.split('.');
    const isShaped = version === VERSION && rest.length === 0 && /^\d{1,15}$/.test(expires);
    if (this.#secret === undefined || !isShaped) return undefined;
    if (!sameSecret(mac, seal(this.#secret, [version, expires, nonce, user].join('.')))) return undefined;
    const now = this.#clock.now();
    for (const [used, until] of this.#used) if (until < now) this.#used.delete(used);
    if (Number(expires) < now || Number(expires) > now + CODE_MS || this.#used.has(nonce)) return undefined;
    this.#used.set(nonce, Number(expires));
    return Buffer.from(user, 'base64url').toString('utf8');
  }

  /** Opens a session. @returns it, and the header that gives its cookie */
  open(user: string): { session: Session; setCookie: string } {
    const now = this.#clock.now();
    const token = randomSecret();
    const session: Kept = {
      ...{ user, base: `/~${randomSecret(16)}/`, csrf: randomSecret(), startedAt: now, usedAt: now },
      ...{ undo: this.#makeUndo(), digest: tokenDigest(token) },
    };
    this.#kept.set(session.base, session);
    const own = [...this.#kept.values()].filter((one) => one.user === user);
    const oldest = own.sort((one, other) => one.usedAt - other.usedAt)[0]!;
    if (own.length > MOST_SESSIONS) this.#kept.delete(oldest.base);
    const age = Math.floor(LONGEST_MS / 1000);
    const setCookie = `${this.#cookie}=${token}; Path=${session.base}; Max-Age=${age}; ${this.#attributes}`;
    return { session, setCookie };
  }

  /** The session of a request below a path, if its cookie is that session's. */
  find(base: string, cookies: string | null): Session | undefined {
    const now = this.#clock.now();
    const session = this.#kept.get(base);
    const given = [...(cookies ?? '').matchAll(COOKIE)].filter(([, name]) => name === this.#cookie);
    const isOurs = given.some(([, , token]) => sameSecret(tokenDigest(token!), session?.digest ?? ''));
    if (session === undefined || !isOurs) {
      if (given.length > 0) this.figures.cookiesRefused++;
      return undefined;
    }
    if (now - session.usedAt > IDLE_MS || now - session.startedAt > LONGEST_MS) {
      this.#kept.delete(base);
      return undefined;
    }
    session.usedAt = now;
    return session;
  }

  /** Whether a session still stands, without counting as use: for what goes on without the person. */
  stands(session: Session): boolean {
    return this.#kept.get(session.base) === session;
  }

  /** Whether a write comes from a page of this session. */
  isFrom(session: Session, csrf: string | undefined): boolean {
    const is = csrf !== undefined && sameSecret(csrf, session.csrf);
    if (!is) this.figures.csrfRefused++;
    return is;
  }

  /** @returns the header that takes the cookie away */
  close(session: Session): string {
    this.#kept.delete(session.base);
    return `${this.#cookie}=; Path=${session.base}; Max-Age=0; ${this.#attributes}`;
  }
}
