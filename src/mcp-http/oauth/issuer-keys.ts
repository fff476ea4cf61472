/**
 * The public keys of issuers, fetched on demand and kept for ten minutes. The operator's settings may name private
 * addresses. An address from an issuer's metadata must be public.
 */
import { createLocalJWKSet, createRemoteJWKSet, customFetch, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import { WebAccess } from '../../kit/http/web-access.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { parseUntrustedJson } from '../../wire/json.ts';
import type { TrustedIssuer } from '../../wire/remote-caller.ts';
import { isOnThisComputer } from '../../wire/settings.ts';
import { withoutTrailing } from '../../wire/text.ts';

const MAX_BYTES = 256 * 1024;
/** Pause after a failure before the next request to the same origin, milliseconds. */
const PAUSE_MS = 5000;
/** The shortest time between two fetches that an unknown key causes, milliseconds. */
const COOLDOWN_MS = 30_000;

const metadataSchema = z.object({ issuer: z.string(), jwks_uri: z.string().max(2000) });

/** The possible addresses of an issuer's metadata: RFC 8414 §3.1, and OpenID Connect Discovery 1.0 §4. */
function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = withoutTrailing(pathname, '/');
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
    ...(path === '' ? [] : [`${origin}/.well-known/openid-configuration${path}`]),
  ];
}

export class IssuerKeys {
  readonly #web: WebAccess;
  readonly #clock: Clock;
  /** By issuer. */
  readonly #known = new Map<string, Promise<JWTVerifyGetKey>>();
  readonly #failedAt = new Map<string, number>();

  /** @param allow private hosts that the operator has named, `host:port`, separated by commas */
  constructor({ allow, clock }: { allow: string; clock: Clock }) {
    this.#web = new WebAccess({ clock, allow, setting: 'ROUTER_MCP_ALLOW' });
    this.#clock = clock;
  }

  /**
   * The keys of an issuer, as jose takes them.
   *
   * @throws ReveilleError `unavailable` when the issuer does not say where its keys are
   */
  async of({ issuer, keys, jwksUrl }: TrustedIssuer): Promise<JWTVerifyGetKey> {
    if (keys) return createLocalJWKSet((await keys()) as JSONWebKeySet);
    const known = this.#known.get(issuer);
    if (known) return known;
    const found = (jwksUrl === undefined ? this.#discover(issuer) : Promise.resolve(jwksUrl)).then((url) =>
      this.#remote(url),
    );
    this.#known.set(issuer, found);
    found.catch(() => this.#known.delete(issuer));
    return found;
  }

  close(): Promise<void> {
    return this.#web.close();
  }

  #remote(url: string): JWTVerifyGetKey {
    return createRemoteJWKSet(new URL(url), {
      cooldownDuration: COOLDOWN_MS,
      [customFetch]: async (address, { signal }) => {
        const text = await this.#get(address, signal);
        return new Response(text, { status: 200, headers: { 'content-type': 'application/json' } });
      },
    });
  }

  async #discover(issuer: string): Promise<string> {
    for (const url of metadataUrls(issuer)) {
      const text = await this.#get(url).catch((thrown) => {
        if (toReveilleError(thrown).code !== 'not_found') throw thrown;
      });
      if (text === undefined) continue;
      const { success, data } = metadataSchema.safeParse(parseUntrustedJson(text));
      if (!success || data.issuer !== issuer)
        throw new ReveilleError('unavailable', `the metadata at ${url} do not name the issuer ${issuer}`);
      if (!data.jwks_uri.startsWith('https:') && !isOnThisComputer(data.jwks_uri))
        throw new ReveilleError('unavailable', `jwks_uri of ${issuer} must be an https:// address`);
      return data.jwks_uri;
    }
    throw new ReveilleError(
      'unavailable',
      `${issuer} has no metadata; set "jwks" of this issuer to the address of its keys`,
    );
  }

  /** @throws ReveilleError `not_found` for 404, else `unavailable` or `forbidden` */
  async #get(url: string, signal?: AbortSignal): Promise<string> {
    const { origin } = new URL(url);
    const now = this.#clock.monotonic();
    if (now - (this.#failedAt.get(origin) ?? Number.NEGATIVE_INFINITY) < PAUSE_MS)
      throw new ReveilleError('unavailable', `${origin} did not answer less than 5 seconds ago`);
    try {
      const headers = { accept: 'application/json' };
      const answer = await this.#web.get({ url, headers, redirects: 0, maxBytes: MAX_BYTES, signal });
      if (answer.status === 404) throw new ReveilleError('not_found', `${url} does not exist`);
      if (answer.status !== 200 || answer.truncated)
        throw new ReveilleError('unavailable', `${url} answered ${answer.status} without a usable document`);
      this.#failedAt.delete(origin);
      return answer.body.toString('utf8');
    } catch (thrown) {
      if (toReveilleError(thrown).code !== 'not_found') this.#failedAt.set(origin, now);
      throw thrown;
    }
  }
}
