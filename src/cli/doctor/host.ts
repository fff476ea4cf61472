/** What the doctor looks at on the computer itself: Node and the clock. */
import type { ServerTime } from '../access/server-clock.ts';
import type { Check } from './check.ts';

const NEEDED_NODE = 24;
/** When this was written; a clock before it has lost its battery. */
const EARLIEST_YEAR = 2025;
/** Alarms ring by chronosd's clock; a person notices when it is this far from theirs. */
const NOTICEABLE_MS = 2000;

/** @param version as `process.versions.node` has it */
export function checkNode(version: string): Check {
  const name = 'Node';
  if (Number(version.split('.')[0]) >= NEEDED_NODE) return { name, status: 'ok', detail: version };
  const remedy = `install Node ${NEEDED_NODE} or newer`;
  return { name, status: 'broken', detail: `${version} is too old`, remedy };
}

/**
 * @param now the system clock, epoch ms
 * @param server chronosd's clock, when it could be asked
 */
export function checkClock(now: number, server: ServerTime | undefined): Check {
  const name = 'clock';
  const time = new Date(now).toISOString();
  const remedy = 'set the clock, or let it be set: timedatectl set-ntp true';
  if (new Date(now).getUTCFullYear() < EARLIEST_YEAR)
    return { name, status: 'broken', detail: `it says ${time}, which has been`, remedy };
  if (!server) return { name, status: 'ok', detail: time };
  const { aheadMs } = server;
  if (Math.abs(aheadMs) < NOTICEABLE_MS) return { name, status: 'ok', detail: `${time}, and chronosd agrees` };
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const detail = `chronosd's is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} this one (${time})`;
  return { name, status: 'warning', detail, remedy: `${remedy}, on both computers` };
}
