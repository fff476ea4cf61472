/** Queries a desktop on the user's D-Bus session bus, with the programs of the system. */
import { busAddress, findProgram } from '../../kit/process/session-bus.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { IdleHost } from './idle.ts';

/** A method without arguments that returns one unsigned number. */
export type BusMethod = {
  readonly service: string;
  readonly path: string;
  readonly interface: string;
  readonly method: string;
};

/**
 * @returns the service's number; inexact beyond 2^53
 * @throws `unavailable` without a bus, a service, or a valid answer
 */
export async function queryBus(host: IdleHost, question: BusMethod, signal: AbortSignal): Promise<number> {
  const address = busAddress(host);
  const busctl = findProgram(host, 'busctl');
  const gdbus = findProgram(host, 'gdbus');
  if (busctl) return await queryByBusctl(host, busctl, address, question, signal);
  if (gdbus) return await queryByGdbus(host, gdbus, address, question, signal);
  throw new ReveilleError('unavailable', 'neither busctl nor gdbus is installed');
}

async function queryByBusctl(
  host: IdleHost,
  busctl: string,
  address: string,
  { service, path, interface: name, method }: BusMethod,
  signal: AbortSignal,
): Promise<number> {
  // A query must not start a desktop's service.
  const options = [`--address=${address}`, '--auto-start=no', '--no-pager'];
  return numberOfBusctl(await host.run(busctl, [...options, 'call', service, path, name, method], signal));
}

async function queryByGdbus(
  host: IdleHost,
  gdbus: string,
  address: string,
  { service, path, interface: name, method }: BusMethod,
  signal: AbortSignal,
): Promise<number> {
  const call = (target: string, object: string, member: string, ...args: string[]) => {
    const options = ['--address', address, '--dest', target, '--object-path', object, '--method', member];
    return host.run(gdbus, ['call', ...options, ...args], signal);
  };
  // It has no option against starting a service.
  const runs = await call(
    'org.freedesktop.DBus',
    '/org/freedesktop/DBus',
    'org.freedesktop.DBus.NameHasOwner',
    service,
  );
  if (runs !== '(true,)\n') throw new ReveilleError('unavailable', `${service} is not on the session bus`);
  return numberOfGdbus(await call(service, path, `${name}.${method}`));
}

/** `t 12345` or `u 12345`, a whole line. */
export function numberOfBusctl(output: string): number {
  return numberIn(/^[tu] (\d{1,20})\n$/, output);
}

/** `(uint64 12345,)` or `(uint32 12345,)`, a whole line. */
export function numberOfGdbus(output: string): number {
  return numberIn(/^\(uint(?:32|64) (\d{1,20}),\)\n$/, output);
}

function numberIn(pattern: RegExp, output: string): number {
  const digits = pattern.exec(output)?.[1];
  // The output is not quoted: it may be a sample.
  if (digits === undefined) throw new ReveilleError('unavailable', 'its answer is not an unsigned number');
  return Number(digits);
}
