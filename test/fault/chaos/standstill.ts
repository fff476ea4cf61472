/** How long nothing was acknowledged or accepted around a strike. Pure. */
import { isAcceptance } from '../checker/evidence.ts';
import type { ClientLog, ReceiverLog } from '../checker/history.ts';

export type Standstill = {
  /** Milliseconds from the last acknowledged create to the next. */
  creates: number;
  /** Milliseconds from the last accepted wake to the next. */
  fires: number;
};

/** The longest gap that begins within a window; earlier gaps do not count. */
function longestGap(instants: readonly number[], from: number, until: number): number {
  const sorted = instants.filter((at) => at >= from).sort((one, other) => one - other);
  let last = from;
  let longest = 0;
  for (const at of sorted) {
    if (last >= until) break;
    longest = Math.max(longest, at - last);
    last = at;
  }
  return sorted.length === 0 ? until - from : longest;
}

/**
 * @param from when the strike began
 * @param until when the next one did, or the load ended; epoch milliseconds of the machine
 */
export function standstillOf(client: ClientLog, receiver: ReceiverLog, from: number, until: number): Standstill {
  const creates = client.calls
    .filter(({ operation, answer }) => operation.op === 'create' && answer.answer === 'acknowledged')
    .map(({ answeredAt }) => answeredAt!);
  const fires = receiver.wakes.filter(({ status }) => isAcceptance(status)).map(({ answeredAt }) => answeredAt!);
  return { creates: longestGap(creates, from, until), fires: longestGap(fires, from, until) };
}
