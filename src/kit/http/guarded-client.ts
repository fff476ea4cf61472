/** HTTP clients that only reach allowed addresses: one for addresses from any user, one for those of operators. */
import { isIP } from 'node:net';
import type { buildConnector as Connectors, Dispatcher } from 'undici';
import { ReveilleError } from '../../wire/errors.ts';
import { addressRefusal, forbiddenAddress } from './addresses.ts';
import { Agent, buildConnector } from './dispatchers.ts';
import { guardedLookup, hostOf, RefusedAddress, type Resolve, resolveBySystem } from './guarded-lookup.ts';

/** Texts of a refusal: the refused caller, and how an operator allows a private address. */
export type GuardTexts = { readonly who: string; readonly remedy: string };

function neverCalledReason(host: string, address: string): string | undefined {
  const refusal = forbiddenAddress(address);
  if (refusal === undefined) return undefined;
  return `${isIP(host) ? host : `${host} resolves to ${address}, which`} is ${refusal}; agents may not use it`;
}

/**
 * Refuses a numeric address that no agent may have. Names are checked when a connection is opened.
 *
 * @param member the name of the specification's member
 * @throws ReveilleError `invalid_request`
 */
export function refuseAddress(url: string | undefined, member: string): void {
  const host = url === undefined ? '' : hostOf(new URL(url));
  const refusal = isIP(host) ? neverCalledReason(host, host) : undefined;
  if (refusal !== undefined) throw new ReveilleError('invalid_request', `${member}: ${refusal}`);
}

/** Connections for addresses that an operator registered: any except link-local ones and metadata services. */
export function guardedConnector(resolve: Resolve = resolveBySystem): Connectors.connector {
  const lookup = guardedLookup(resolve, neverCalledReason);
  const connect = buildConnector({ allowH2: false, lookup } as Connectors.BuildOptions);
  return (options, callback) => {
    // A numeric address gets no lookup, so it is checked here.
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const refusal = isIP(host) ? neverCalledReason(host, host) : undefined;
    if (refusal === undefined) connect(options, callback);
    else callback(new RefusedAddress(refusal), null);
  };
}

/** Connections for addresses from any user: to the internet, and to private addresses if these are allowed. */
export class GuardedClient {
  readonly #texts: GuardTexts;
  readonly #resolve: Resolve;
  readonly #agents = new Map<boolean, Agent>();

  constructor(texts: GuardTexts, resolve: Resolve = resolveBySystem) {
    this.#texts = texts;
    this.#resolve = resolve;
  }

  /** Why a numeric address may not be called. It gets no lookup, so the caller must check it with this method. */
  refusalOf(url: URL, allowPrivate: boolean): string | undefined {
    const host = hostOf(url);
    if (!isIP(host)) return undefined;
    const refusal = addressRefusal(host, allowPrivate);
    return refusal === undefined ? undefined : this.#refusal(host, host, refusal, allowPrivate);
  }

  /** Its connections fail with {@link RefusedAddress} for addresses that are not allowed. */
  dispatcher(allowPrivate: boolean): Dispatcher {
    let agent = this.#agents.get(allowPrivate);
    if (!agent) {
      const lookup = guardedLookup(this.#resolve, (host, address) => {
        const refusal = addressRefusal(address, allowPrivate);
        return refusal === undefined ? undefined : this.#refusal(host, address, refusal, allowPrivate);
      });
      agent = new Agent({ connections: 32, pipelining: 1, allowH2: false, connect: { lookup, timeout: 10_000 } });
      this.#agents.set(allowPrivate, agent);
    }
    return agent;
  }

  #refusal(host: string, address: string, refusal: string, allowPrivate: boolean): string {
    const { who, remedy } = this.#texts;
    const what = isIP(host) ? `${host} is ${refusal}` : `${host} resolves to ${address}, ${refusal}`;
    return `${who} may not call this address: ${what}${allowPrivate ? '' : `; ${remedy}`}`;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()));
  }
}
