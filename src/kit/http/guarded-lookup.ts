/**
 * Name lookups for connections with restricted destinations. Each connection resolves its name once, checks every
 * address and connects to exactly these addresses. DNS rebinding therefore has no effect.
 */
import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';

/** Resolves a name to all its addresses. */
export type Resolve = (
  hostname: string,
  done: (error: Error | null, addresses: { address: string; family: number }[]) => void,
) => void;

export const resolveBySystem: Resolve = (hostname, done) => {
  systemLookup(hostname, { all: true }, done);
};

/** A connection that was refused because of its destination. */
export class RefusedAddress extends Error {}

/** The host of a URL for sockets: IPv6 addresses without brackets. */
export const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, '');

/** Resolves a name, and fails with {@link RefusedAddress} if `refuse` gives a reason against any of its addresses. */
export function guardedLookup(
  resolve: Resolve,
  refuse: (host: string, address: string) => string | undefined,
): LookupFunction {
  return (hostname, options, callback) => {
    const fail = (error: Error) => callback(error as NodeJS.ErrnoException, '', 0);
    resolve(hostname, (error, addresses) => {
      if (error) return fail(error);
      // One forbidden address among several may be an attack.
      for (const { address } of addresses) {
        const refusal = refuse(hostname, address);
        if (refusal !== undefined) return fail(new RefusedAddress(refusal));
      }
      const [first] = addresses;
      if (!first) return fail(new Error(`${hostname} has no address`));
      if (options.all) callback(null, addresses);
      else callback(null, first.address, first.family);
    });
  };
}
