/**
 * An HTTP client that reaches only addresses it may. A name is resolved once for each connection, every address it has is looked
 * at, and the connection goes to those very addresses: a name that resolves to something else a moment later (DNS rebinding)
 * changes nothing.
 */
import { lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, type Dispatcher } from 'undici';
import { addressRefusal } from './addresses.ts';

/** Resolves a name to all its addresses. */
export type Resolve = (
  hostname: string,
  done: (error: Error | null, addresses: { address: string; family: number }[]) => void,
) => void;

const resolveBySystem: Resolve = (hostname, done) => {
  systemLookup(hostname, { all: true }, done);
};

/** A connection that was not made because of where it would have led. */
export class RefusedAddress extends Error {}

const REMEDY = 'if that is meant, register the machine with --allow-private';

function refusalWords(host: string, address: string, refusal: string, allowPrivate: boolean): string {
  const what = isIP(host) ? `${host} is ${refusal}` : `${host} leads to ${address}, ${refusal}`;
  return `the webhook may not go there: ${what}${allowPrivate ? '' : `; ${REMEDY}`}`;
}

/** The host of an address as sockets want it: without the brackets of IPv6. */
const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, '');

export class GuardedClient {
  readonly #resolve: Resolve;
  readonly #agents = new Map<boolean, Agent>();

  constructor(resolve: Resolve = resolveBySystem) {
    this.#resolve = resolve;
  }

  /** Why an address that is written down as a number may not be called: no name is looked up for it, so it must be asked for here. */
  refusalOf(url: URL, allowPrivate: boolean): string | undefined {
    const host = hostOf(url);
    if (!isIP(host)) return undefined;
    const refusal = addressRefusal(host, allowPrivate);
    return refusal === undefined ? undefined : refusalWords(host, host, refusal, allowPrivate);
  }

  /** Connections through it fail with {@link RefusedAddress} where they may not lead. */
  dispatcher(allowPrivate: boolean): Dispatcher {
    let agent = this.#agents.get(allowPrivate);
    if (!agent) {
      const lookup = this.#guardedLookup(allowPrivate);
      agent = new Agent({ connections: 32, pipelining: 1, allowH2: false, connect: { lookup, timeout: 10_000 } });
      this.#agents.set(allowPrivate, agent);
    }
    return agent;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents.values()].map((agent) => agent.destroy()));
  }

  #guardedLookup(allowPrivate: boolean): LookupFunction {
    return (hostname, options, callback) => {
      const fail = (error: Error) => callback(error as NodeJS.ErrnoException, '', 0);
      this.#resolve(hostname, (error, addresses) => {
        if (error) return fail(error);
        // One forbidden address among several is an attempt to slip through.
        for (const { address } of addresses) {
          const refusal = addressRefusal(address, allowPrivate);
          if (refusal !== undefined)
            return fail(new RefusedAddress(refusalWords(hostname, address, refusal, allowPrivate)));
        }
        const [first] = addresses;
        if (!first) return fail(new Error(`${hostname} has no address`));
        if (options.all) callback(null, addresses);
        else callback(null, first.address, first.family);
      });
    };
  }
}
