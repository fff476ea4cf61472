/** Checks of the computer itself: Node and the clock. */
import type { ServerTime } from '../access/server-clock.ts';
import type { Check } from './check.ts';

const NEEDED_NODE = 24;
/** The date of this code: an earlier clock is wrong. */
const EARLIEST_YEAR = 2025;
/** Alarms fire by chronosd's clock; a larger difference is visible to a user. */
const NOTICEABLE_MS = 2000;

/** @param version as in `process.versions.node` */
export function checkNode(version: string): Check {
  const name = 'Node';
  if (Number(version.split('.')[0]) >= NEEDED_NODE) return { name, status: 'ok', detail: version };
  const remedy = `install Node ${NEEDED_NODE} or newer`;
  return { name, status: 'broken', detail: `${version} is too old`, remedy };
}

/**
 * @param now the system clock, epoch ms
 * @param server chronosd's clock, when it answers
 */
export function checkClock(now: number, server: ServerTime | undefined): Check {
  const name = 'clock';
  const time = new Date(now).toISOString();
  const remedy = 'set the clock, or enable time synchronization: timedatectl set-ntp true';
  if (new Date(now).getUTCFullYear() < EARLIEST_YEAR)
    return { name, status: 'broken', detail: `it shows ${time}, which is past`, remedy };
  if (!server) return { name, status: 'ok', detail: time };
  const { aheadMs } = server;
  if (Math.abs(aheadMs) < NOTICEABLE_MS) return { name, status: 'ok', detail: `${time}, the same as chronosd's` };
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const detail = `chronosd's is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} this one (${time})`;
  return { name, status: 'warning', detail, remedy: `${remedy}, on both computers` };
}
