/** Asking a person, and waiting for the answer, over as many processes as it takes. */

import type { CallNode } from '../../wire/intent.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, recordOf } from '../receipt/chain-state.ts';
import { sha256Hex } from '../receipt/envelope.ts';
import type { RailTool } from '../tools/toolbox.ts';
import { callCompanion, receivedOf } from './companion-call.ts';
import type { Course } from './course.ts';
import { questionOf } from './question.ts';

type Trial = (ReceiptEntry & { kind: 'call.tried' }) | undefined;

/** Tries the call out, where the manifest says how. */
async function tryOut(course: Course, node: CallNode, tool: RailTool): Promise<Trial> {
  const companion = tool.rail?.dry_run;
  if (!companion) return undefined;
  const answer = await callCompanion(course, node, companion, { signal: course.halted });
  const { tool: name, args, args_sha256, status } = answer;
  const at = formatInstant(course.parts.clock.now());
  return {
    kind: 'call.tried',
    body: { at, node_id: node.id, tool: name, args, args_sha256, status, ...receivedOf(answer) },
  };
}

/** Puts the question down, with all that the person is shown. */
export async function askGate(course: Course, node: CallNode, tool: RailTool): Promise<void> {
  const { clock, policy, journal } = course.parts;
  const tried = await tryOut(course, node, tool);
  await course.begin((state) => {
    const now = clock.now();
    const expiresAt = formatInstant(Math.min(now + policy.approvalTimeoutMs, course.deadline()));
    const decided = recordOf(state, node.id).decided!;
    const { user } = state.accepted.principal;
    const displayed = questionOf({
      state,
      node,
      tool,
      decided,
      tried: tried?.body,
      spends: journal.spends(user, now),
      now,
      expiresAt,
    });
    const asked: ReceiptEntry = {
      kind: 'gate.asked',
      body: {
        at: formatInstant(now),
        node_id: node.id,
        call_sha256: decided.call.call_sha256,
        displayed,
        displayed_sha256: sha256Hex(displayed),
        expires_at: expiresAt,
      },
    };
    return tried ? [tried, asked] : [asked];
  });
}

function openGate(state: ChainState, nodeId: string) {
  const { gate } = recordOf(state, nodeId);
  return gate && !gate.answered && !gate.expired ? gate : undefined;
}

/** Resolves when the question has been answered, or has expired, which it puts down. */
export async function awaitAnswer(course: Course, nodeId: string): Promise<void> {
  const { clock } = course.parts;
  for (;;) {
    const gate = openGate(course.state(), nodeId);
    if (!gate) return;
    const expiresAt = parseInstant(gate.asked.expires_at)!;
    const now = clock.now();
    if (now < expiresAt) {
      await course.changeBefore(expiresAt);
      continue;
    }
    const { call_sha256 } = gate.asked;
    await course.begin((state) =>
      openGate(state, nodeId)
        ? [{ kind: 'gate.expired', body: { at: formatInstant(now), node_id: nodeId, call_sha256 } }]
        : [],
    );
  }
}
