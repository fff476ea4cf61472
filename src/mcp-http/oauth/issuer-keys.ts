/**
 * The public keys of issuers. They are fetched when they are needed and kept for ten minutes. An address that the
 * operator did not write, but metadata of an issuer name, is reached only if it is public.
 */
import { createLocalJWKSet, createRemoteJWKSet, customFetch, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import { WebAccess } from '../../kit/http/web-access.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { parseUntrustedJson } from '../../wire/json.ts';
import type { TrustedIssuer } from '../../wire/remote-caller.ts';
import { isOnThisComputer } from '../../wire/settings.ts';

const MAX_BYTES = 256 * 1024;
/** After a failure no further request is made for this time, milliseconds. */
const PAUSE_MS = 5000;
/** The shortest time between two fetches because of an unknown key, milliseconds. */
const COOLDOWN_MS = 30_000;

const metadataSchema = z.object({ issuer: z.string(), jwks_uri: z.string().max(2000) });

/** Where the metadata of an issuer may be: RFC 8414 §3.1, and OpenID Connect Discovery 1.0 §4. */
function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, '');
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
        throw new ReveilleError('unavailable', `the metadata at ${url} are not those of ${issuer}`);
      if (!data.jwks_uri.startsWith('https:') && !isOnThisComputer(data.jwks_uri))
        throw new ReveilleError('unavailable', `the keys of ${issuer} have no https:// address`);
      return data.jwks_uri;
    }
    throw new ReveilleError('unavailable', `${issuer} has no metadata; name the address of its keys as jwks`);
  }

  /** @throws ReveilleError `not_found` for 404, else `unavailable` or `forbidden` */
  async #get(url: string, signal?: AbortSignal): Promise<string> {
    const { origin } = new URL(url);
    const now = this.#clock.monotonic();
    if (now - (this.#failedAt.get(origin) ?? Number.NEGATIVE_INFINITY) < PAUSE_MS)
      throw new ReveilleError('unavailable', `${origin} did not answer a moment ago`);
    try {
      const headers = { accept: 'application/json' };
      const answer = await this.#web.get({ url, headers, redirects: 0, maxBytes: MAX_BYTES, signal });
      if (answer.status === 404) throw new ReveilleError('not_found', `${url} does not exist`);
      if (answer.status !== 200 || answer.truncated)
        throw new ReveilleError('unavailable', `${url} answers ${answer.status}, and no usable document`);
      this.#failedAt.delete(origin);
      return answer.body.toString('utf8');
    } catch (thrown) {
      if (toReveilleError(thrown).code !== 'not_found') this.#failedAt.set(origin, now);
      throw thrown;
    }
  }
}
