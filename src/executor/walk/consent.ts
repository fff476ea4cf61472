/**
 * What stands between a node and its call: the tool as it is now, the deadline, the policy, and a person's approval of
 * this very call.
 */
import { clip } from '../../kit/text/excerpt.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode } from '../../wire/intent.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { argumentProblems, idempotencyKey } from '../intent/plan.ts';
import { type PlanReference, type ResolvedValue, resolveReferences } from '../intent/reference.ts';
import { amountOf } from '../intent/stake.ts';
import type { BoundCall, ReceiptBodies, ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainState, type NodeRecord, recordOf } from '../receipt/chain-state.ts';
import { callSha256, digestOf, sha256Hex } from '../receipt/envelope.ts';
import type { RailTool } from '../tools/toolbox.ts';
import { callCompanion, receivedOf } from './companion-call.ts';
import { type Course, Stopped } from './course.ts';
import { questionOf } from './question.ts';
import { mayRepeat } from './reconcile.ts';

type Decided = ReceiptBodies['call.decided'];

/** @throws Stopped when there is no such tool any more */
export function toolOf(course: Course, { id, tool }: CallNode): RailTool {
  const found = course.parts.toolbox.find(tool);
  if (found) return found;
  throw new Stopped('unknown_tool', `node ${id}: ${course.parts.toolbox.absence(tool)}`);
}

/** A call with all its arguments, as it is judged, shown and sent. */
export type WholeCall = CallNode & {
  /** What stands in the place of its references, where it has any. */
  readonly resolved?: readonly ResolvedValue[];
};

/** Why nothing can be found in what a call gave back: words that follow the reference. */
function noResult({ finished, reconciled }: NodeRecord): { missing: string } {
  if (finished?.status !== 'succeeded') {
    const why = reconciled ? 'its answer got lost, and nobody can ask for it again' : 'it has not succeeded';
    return { missing: `there is no result: ${why}` };
  }
  const kept = 'an object or a list, as structured content or as its only text, of at most 65536 characters';
  return { missing: `there is no result that can be looked into: it must be ${kept}` };
}

/** What references have found for calls that were judged, in UTF-16 units. */
function resolvedCharacters(state: ChainState, references: readonly PlanReference[]): number {
  return [...new Set(references.map(({ node_id }) => node_id))]
    .flatMap((nodeId) => recordOf(state, nodeId).decided?.resolved ?? [])
    .reduce((sum, { json }) => sum + json.length, 0);
}

/**
 * A call of the plan with what its references find in the results on record. Nothing else is looked at, so every
 * process comes to the same.
 *
 * @throws Stopped when one finds nothing
 */
export function wholeCall(state: ChainState, node: CallNode): WholeCall {
  const references = state.compiled?.references ?? [];
  if (!references.some(({ node_id }) => node_id === node.id)) return node;
  const sourceOf = (from: string) => {
    const record = recordOf(state, from);
    return (record.finished?.status === 'succeeded' ? record.finished.result_text : undefined) ?? noResult(record);
  };
  // A call that was judged before has passed the bound: it must come to the same after a restart.
  const isJudged = recordOf(state, node.id).decided !== undefined;
  const foundBefore = isJudged ? 0 : resolvedCharacters(state, references);
  const whole = resolveReferences(node, { references, sourceOf, foundBefore });
  if ('problem' in whole) throw new Stopped('unresolved_reference', whole.problem);
  return { ...node, ...whole };
}

/** @throws Stopped when what the references found is not what the tool takes */
function holdToSchema({ id, args, resolved }: WholeCall, tool: RailTool): void {
  if (!resolved) return;
  const problems = argumentProblems(tool.definition.inputSchema, args);
  if (problems.length === 0) return;
  const found = resolved.map(({ place, ref, json }) => `${place} is ${clip(json, 100)} from ${ref}`).join(', ');
  throw new Stopped('unfit_reference', `node ${id} was not called: args ${problems.join('; ')}. There, ${found}`);
}

function bind({ tool, args }: CallNode, { definitionSha256 }: RailTool): BoundCall {
  return {
    tool,
    args,
    call_sha256: callSha256(tool, args),
    args_sha256: digestOf(args),
    definition_sha256: definitionSha256,
  };
}

function decide(course: Course, state: ChainState, node: WholeCall, tool: RailTool, now: number): Decided {
  const { policy, journal } = course.parts;
  const { user, origin } = state.accepted.principal;
  const read = amountOf(tool, node.args);
  const amount = read === 'unreadable' ? undefined : read;
  const decision = policy.decide({
    user,
    tool: node.tool,
    args: node.args,
    surface: tool.surface,
    amount,
    amountUnreadable: read === 'unreadable',
    unattended: origin === 'chronos',
    spends: journal.spends(user, now),
    now,
  });
  return {
    at: formatInstant(now),
    node_id: node.id,
    call: bind(node, tool),
    surface: tool.surface,
    ...decision,
    policy_sha256: policy.sha256,
    ...(amount && { amount }),
    ...(node.resolved && { resolved: node.resolved }),
  };
}

/** Whether a decision says anything that the last one did not. */
function isNews(before: Decided | undefined, after: Decided): boolean {
  return before === undefined || canonicalJson({ ...before, at: '' }) !== canonicalJson({ ...after, at: '' });
}

/** Whether the last question was about this call, by this definition of its tool. */
function isAbout({ gate }: NodeRecord, call: BoundCall): boolean {
  return gate?.asked.call_sha256 === call.call_sha256 && gate.definitionSha256 === call.definition_sha256;
}

/**
 * Whether the last question was approved by somebody who may still do so: an approval without a signature, of before
 * there were any, or of a key that was revoked since, is asked for anew.
 */
function isApprovedBy({ parts }: Course, { accepted }: ChainState, { gate }: NodeRecord): boolean {
  const { approved, approver, signature, passkey } = gate?.answered ?? {};
  if (approved !== true || approver === undefined || (signature ?? passkey) === undefined) return false;
  return parts.journal.roster.standing(accepted.principal.user, approver) !== undefined;
}

/** @throws Stopped for an answer that ends the intent */
function holdToAnswer({ gate }: NodeRecord, { id, tool }: CallNode): void {
  if (gate?.expired) {
    throw new Stopped('approval_expired', `nobody answered in time whether ${tool} may be called (node ${id})`);
  }
  if (gate?.answered?.approved !== false) return;
  const { by, answer } = gate.answered;
  throw new Stopped(
    'denied',
    `${by} denied the call of ${tool} (node ${id})${answer === undefined ? '' : `: ${answer}`}`,
  );
}

/**
 * Gets the consent that a call needs, however long that takes, and puts down that it starts. What is decided is decided
 * in the transaction that starts it: a limit cannot be passed by two calls at once.
 *
 * @returns the tool as it was judged; `undefined` for a call that was begun before and must not be begun anew by what
 *   its tool is now
 * @throws Stopped when the call must not be made, Halted when it was called off meanwhile
 */
export async function startCall(course: Course, node: WholeCall): Promise<RailTool | undefined> {
  const { clock } = course.parts;
  for (;;) {
    const tool = toolOf(course, node);
    const earlier = recordOf(course.state(), node.id);
    if (earlier.started && !mayRepeat(earlier, tool)) return undefined;
    holdToSchema(node, tool);
    let started = false;
    const state = await course.begin((before) => {
      started = false;
      const now = clock.now();
      const record = recordOf(before, node.id);
      holdToAnswer(record, node);
      if (now > course.deadline()) {
        const deadline = formatInstant(course.deadline());
        throw new Stopped(
          'deadline_passed',
          `the deadline ${deadline} passed before ${node.tool} (node ${node.id}) could be called`,
        );
      }
      const decided = decide(course, before, node, tool, now);
      const entries: ReceiptEntry[] = isNews(record.decided, decided) ? [{ kind: 'call.decided', body: decided }] : [];
      const { effect, call } = decided;
      const isOpen = record.gate !== undefined && !record.gate.answered;
      const isApproved = isApprovedBy(course, before, record) && isAbout(record, call);
      // What a person has been asked waits for their answer, whatever policy or manifest say by now.
      if (effect === 'deny' || isOpen || (effect === 'ask' && !isApproved)) return entries;
      started = true;
      const { at, surface } = decided;
      const key =
        tool.rail?.idempotency_key === undefined ? {} : { idempotency_key: idempotencyKey(course.intentId, node.id) };
      return [...entries, { kind: 'call.started', body: { at, node_id: node.id, call, surface, ...key } }];
    });
    if (started) return tool;
    const record = recordOf(state, node.id);
    const { effect, reason, call } = record.decided!;
    if (effect === 'deny')
      throw new Stopped('denied_by_policy', `the policy denies ${node.tool} (node ${node.id}): ${reason}`);
    if (!isAbout(record, call) || record.gate?.answered) await askGate(course, node, tool);
    else await awaitAnswer(course, node.id);
  }
}

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
async function askGate(course: Course, node: CallNode, tool: RailTool): Promise<void> {
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
async function awaitAnswer(course: Course, nodeId: string): Promise<void> {
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
