/** Finding out what became of a call whose answer got lost, by the tool's own word. The call itself is never repeated. */

import type { CallNode } from '../../wire/intent.ts';
import type { Rail } from '../../wire/manifest.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { valueAt } from '../intent/pointer.ts';
import type { CallStatus, ReceiptBodies } from '../receipt/bodies.ts';
import type { CallReport } from '../tools/toolbox.ts';
import { callCompanion, receivedOf } from './companion-call.ts';
import type { Course } from './course.ts';
import { Stopped } from './halt.ts';

const RECONCILE_MS = 60_000;
/** Pauses between questions. */
const ASK_AGAIN_MS = [100, 250, 500, 1000, 2000, 5000];

/** What a tool's word for it means. */
export function verdictOf(
  status: NonNullable<Rail['status']>,
  report: CallReport,
): { status: CallStatus; reason: string } {
  if (report.status !== 'answered')
    return { status: 'unknown', reason: `its status could not be asked: ${report.message}` };
  if (report.isError) return { status: 'unknown', reason: 'asked for its status, the tool says that it failed' };
  const word = valueAt(report.structured, status.field);
  const shown =
    typeof word === 'string' ? JSON.stringify(word.slice(0, 200).toWellFormed()) : 'nothing that can be read';
  const said = `asked for its status, the tool answers ${shown} at ${status.field}`;
  if (typeof word === 'string' && status.done.includes(word)) return { status: 'succeeded', reason: said };
  if (typeof word === 'string' && status.not_done.includes(word)) return { status: 'not_run', reason: said };
  return { status: 'unknown', reason: said };
}

/** Asks once. `undefined` when the manifest names no status call. */
export async function askStatus(course: Course, node: CallNode): Promise<ReceiptBodies['call.reconciled'] | undefined> {
  const { toolbox, clock } = course.parts;
  const status = toolbox.find(node.tool)?.rail?.status;
  if (!status) return undefined;
  const answer = await callCompanion(course, node, status, { signal: course.over });
  const { tool, args_sha256, report } = answer;
  const verdict = verdictOf(status, report);
  return { at: formatInstant(clock.now()), node_id: node.id, tool, args_sha256, ...receivedOf(answer), ...verdict };
}

/**
 * Asks until the tool says how it stands, for a minute or so, and puts down what came of it.
 *
 * @throws Stopped when there is nobody to ask
 */
export async function findOut(course: Course, node: CallNode): Promise<void> {
  const { clock, reconcileMs = RECONCILE_MS } = course.parts;
  const began = clock.monotonic();
  for (let tries = 0; ; tries++) {
    const body = await askStatus(course, node);
    if (!body) throw new Stopped('unknown', `nobody knows what became of ${node.tool} (node ${node.id})`);
    const pause = ASK_AGAIN_MS[Math.min(tries, ASK_AGAIN_MS.length - 1)]!;
    if (body.status !== 'unknown' || clock.monotonic() - began + pause > reconcileMs) {
      await course.record(() => [{ kind: 'call.reconciled', body }]);
      return;
    }
    await course.pause(pause);
  }
}
