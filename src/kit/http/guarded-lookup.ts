/**
 * Looking names up for connections that may not lead everywhere. A name is resolved once for each connection, every
 * address it has is looked at, and the connection goes to those very addresses: a name that resolves to something else a
 * moment later (DNS rebinding) changes nothing.
 */
import { lookup as systemLookup } from 'node:dns';
import type { LookupFunction } from 'node:net';

/** Resolves a name to all its addresses. */
export type Resolve = (
  hostname: string,
  done: (error: Error | null, addresses: { address: string; family: number }[]) => void,
) => void;

/** As every program of this computer resolves it. */
export const resolveBySystem: Resolve = (hostname, done) => {
  systemLookup(hostname, { all: true }, done);
};

/** A connection that was not made because of where it would have led. */
export class RefusedAddress extends Error {}

/** The host of an address as sockets want it: without the brackets of IPv6. */
export const hostOf = (url: URL) => url.hostname.replace(/^\[|\]$/g, '');

/** Looks a name up, and fails with {@link RefusedAddress} when `refuse` has words against any of its addresses. */
export function guardedLookup(
  resolve: Resolve,
  refuse: (host: string, address: string) => string | undefined,
): LookupFunction {
  return (hostname, options, callback) => {
    const fail = (error: Error) => callback(error as NodeJS.ErrnoException, '', 0);
    resolve(hostname, (error, addresses) => {
      if (error) return fail(error);
      // One forbidden address among several is an attempt to slip through.
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
