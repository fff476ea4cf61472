/** Going through a plan: sequences in their order, parallels side by side, waits by the wall clock. */

import type { GroupNode, PlanNode, WaitNode } from '../../wire/intent.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { recordOf } from '../receipt/chain-state.ts';
import { runCall } from './call-step.ts';
import type { Course } from './course.ts';
import { Halted, Stopped } from './halt.ts';

/** Branches of one parallel that are under way at the same time. */
const SIDE_BY_SIDE = 8;

async function runWait(course: Course, { id, seconds }: WaitNode): Promise<void> {
  const { clock } = course.parts;
  let record = recordOf(course.state(), id);
  if (record.waitUntil === undefined) {
    const state = await course.begin(() => {
      const now = clock.now();
      const until = formatInstant(now + seconds * 1000);
      return [{ kind: 'wait.started', body: { at: formatInstant(now), node_id: id, until } }];
    });
    record = recordOf(state, id);
  }
  if (record.waited) return;
  const until = parseInstant(record.waitUntil!)!;
  while (clock.now() < until) await course.changeBefore(until);
  await course.begin(() => [{ kind: 'wait.finished', body: { at: formatInstant(clock.now()), node_id: id } }]);
}

/** Of several reasons to end, one that says something comes before one that does not. */
function weightiest(reasons: readonly unknown[]): unknown {
  const stops = reasons.filter((reason) => !(reason instanceof Halted));
  return stops.find((reason) => !(reason instanceof Stopped)) ?? stops[0] ?? reasons[0];
}

async function runParallel(course: Course, { nodes }: GroupNode): Promise<void> {
  const rest = [...nodes];
  const reasons: unknown[] = [];
  const branch = async () => {
    for (let node = rest.shift(); node !== undefined; node = rest.shift()) {
      try {
        await walkPlan(course, node);
      } catch (thrown) {
        reasons.push(thrown);
        // The others begin nothing more, and what they have begun is waited for.
        course.halt();
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(SIDE_BY_SIDE, rest.length) }, branch));
  if (reasons.length > 0) throw weightiest(reasons);
}

/**
 * Carries out what is left of a plan. Nodes with a recorded result are passed over.
 *
 * @throws Stopped when it cannot go on, {@link Halted} when it was called off
 */
export async function walkPlan(course: Course, node: PlanNode): Promise<void> {
  if (course.halted.aborted) throw new Halted();
  switch (node.kind) {
    case 'call':
      return runCall(course, node);
    case 'wait':
      return runWait(course, node);
    case 'sequence':
      for (const child of node.nodes) await walkPlan(course, child);
      return;
    case 'parallel':
      return runParallel(course, node);
  }
}
