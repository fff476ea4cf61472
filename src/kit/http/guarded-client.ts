/** HTTP clients that reach only addresses they may: those that anybody may name, and those of operators. */
import { isIP } from 'node:net';
import type { buildConnector as Connectors, Dispatcher } from 'undici';
import { ReveilleError } from '../../wire/errors.ts';
import { addressRefusal, neverCalled } from './addresses.ts';
import { Agent, buildConnector } from './dispatchers.ts';
import { guardedLookup, hostOf, RefusedAddress, type Resolve, resolveBySystem } from './guarded-lookup.ts';

/** Who is refused, and how an operator allows a private address. */
export type GuardWords = { readonly who: string; readonly remedy: string };

function neverWords(host: string, address: string): string | undefined {
  const refusal = neverCalled(address);
  if (refusal === undefined) return undefined;
  return `${isIP(host) ? host : `${host} leads to ${address}, which`} is ${refusal}, and no agent may be there`;
}

/**
 * Refuses an address that is written down as a number and that no agent may have; names are looked at when a connection
 * is made.
 *
 * @param member the name of the specification's member
 * @throws ReveilleError `invalid_request`
 */
export function refuseAddress(url: string | undefined, member: string): void {
  const host = url === undefined ? '' : hostOf(new URL(url));
  const refusal = isIP(host) ? neverWords(host, host) : undefined;
  if (refusal !== undefined) throw new ReveilleError('invalid_request', `${member}: ${refusal}`);
}

/**
 * Connections for what an operator has registered: anywhere but to link-local addresses and those of metadata services.
 */
export function guardedConnector(resolve: Resolve = resolveBySystem): Connectors.connector {
  const lookup = guardedLookup(resolve, neverWords);
  const connect = buildConnector({ allowH2: false, lookup } as Connectors.BuildOptions);
  return (options, callback) => {
    // No name is looked up for a number.
    const host = options.hostname.replace(/^\[|\]$/g, '');
    const refusal = isIP(host) ? neverWords(host, host) : undefined;
    if (refusal === undefined) connect(options, callback);
    else callback(new RefusedAddress(refusal), null);
  };
}

/** Connections for what anybody may name: to the internet, and to private addresses where that is allowed. */
export class GuardedClient {
  readonly #words: GuardWords;
  readonly #resolve: Resolve;
  readonly #agents = new Map<boolean, Agent>();

  constructor(words: GuardWords, resolve: Resolve = resolveBySystem) {
    this.#words = words;
    this.#resolve = resolve;
  }

  /**
   * Why an address that is written down as a number may not be called: no name is looked up for it, so it must be asked
   * for here.
   */
  refusalOf(url: URL, allowPrivate: boolean): string | undefined {
    const host = hostOf(url);
    if (!isIP(host)) return undefined;
    const refusal = addressRefusal(host, allowPrivate);
    return refusal === undefined ? undefined : this.#refusal(host, host, refusal, allowPrivate);
  }

  /** Connections through it fail with {@link RefusedAddress} where they may not lead. */
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
    const { who, remedy } = this.#words;
    const what = isIP(host) ? `${host} is ${refusal}` : `${host} leads to ${address}, ${refusal}`;
    return `${who} may not go there: ${what}${allowPrivate ? '' : `; ${remedy}`}`;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()));
  }
}
