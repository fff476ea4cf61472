/**
 * The checks before a call starts: the present tool definition, the deadline, the policy, and the approval of exactly
 * this call.
 */
import { clip } from '../../kit/text/excerpt.ts';
import { inSpan } from '../../kit/trace/trace.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import type { CallNode } from '../../wire/intent.ts';
import { formatInstant, parseInstant } from '../../wire/rfc3339.ts';
import { argumentProblems } from '../intent/plan.ts';
import { resolveReferences } from '../intent/reference.ts';
import { amountOf } from '../intent/stake.ts';
import type { BoundCall, PlanReference, ReceiptBodies, ReceiptEntry, ResolvedValue } from '../receipt/bodies.ts';
import { type ChainState, type NodeRecord, recordOf } from '../receipt/chain-state.ts';
import { callSha256, digestOf, sha256Hex } from '../receipt/envelope.ts';
import { callKey } from '../receipt/plan-order.ts';
import type { RailTool } from '../tools/toolbox.ts';
import { callCompanion, receivedOf } from './companion-call.ts';
import { questionOf } from './question.ts';
import { mayRepeat } from './reconcile.ts';
import { IntentFailure, type IntentRun } from './run.ts';

type Decided = ReceiptBodies['call.decided'];

/** @throws IntentFailure when the tool no longer exists */
export function toolOf(run: IntentRun, { id, tool }: CallNode): RailTool {
  const found = run.parts.toolbox.find(tool);
  if (found) return found;
  throw new IntentFailure('unknown_tool', `node ${id}: ${run.parts.toolbox.absence(tool)}`);
}

/** A call with all its arguments, as the policy judges it, the question shows it and the tool receives it. */
export type ResolvedCall = CallNode & {
  /** The values of its references, if it has any. */
  readonly resolved?: readonly ResolvedValue[];
};

/** Why the result of a call is not available; the text follows the reference. */
function missingResult({ finished, reconciled }: NodeRecord): { missing: string } {
  if (finished?.status !== 'succeeded') {
    const why = reconciled ? 'its answer was lost and cannot be requested again' : 'it has not succeeded';
    return { missing: `there is no result: ${why}` };
  }
  const kept = 'an object or a list, as structured content or as its only text, of at most 65536 characters';
  return { missing: `there is no usable result: it must be ${kept}` };
}

/** Total length of the reference values of calls that the policy has judged, in UTF-16 units. */
function resolvedCharacters(state: ChainState, references: readonly PlanReference[]): number {
  return [...new Set(references.map(({ node_id }) => node_id))]
    .flatMap((nodeId) => recordOf(state, nodeId).decided?.resolved ?? [])
    .reduce((sum, { json }) => sum + json.length, 0);
}

/**
 * Resolves the references of a call against the recorded results. It depends on nothing else, so every process gets the
 * same call.
 *
 * @throws IntentFailure when a reference has no value
 */
export function resolveCall(state: ChainState, node: CallNode): ResolvedCall {
  const references = state.compiled?.references ?? [];
  if (!references.some(({ node_id }) => node_id === node.id)) return node;
  const sourceOf = (from: string) => {
    const record = recordOf(state, from);
    return (record.finished?.status === 'succeeded' ? record.finished.result_text : undefined) ?? missingResult(record);
  };
  // A call that was judged before has passed the size limit; after a restart it must resolve the same way.
  const isJudged = recordOf(state, node.id).decided !== undefined;
  const foundBefore = isJudged ? 0 : resolvedCharacters(state, references);
  const resolvedCall = resolveReferences(node, { references, sourceOf, foundBefore });
  if ('problem' in resolvedCall) throw new IntentFailure('unresolved_reference', resolvedCall.problem);
  return { ...node, ...resolvedCall };
}

/** @throws IntentFailure when the resolved arguments do not fit the tool's input schema */
function checkSchema({ id, args, resolved }: ResolvedCall, tool: RailTool): void {
  if (!resolved) return;
  const problems = argumentProblems(tool, args);
  if (problems.length === 0) return;
  const found = resolved.map(({ place, ref, json }) => `${place} is ${clip(json, 100)} from ${ref}`).join(', ');
  throw new IntentFailure('unfit_reference', `node ${id} was not called: args ${problems.join('; ')}. There, ${found}`);
}

function bind({ tool, args }: CallNode, { definitionSha256 }: RailTool): BoundCall {
  const digests = { call_sha256: callSha256(tool, args), args_sha256: digestOf(args) };
  return { tool, args, ...digests, definition_sha256: definitionSha256 };
}

function decide(run: IntentRun, state: ChainState, node: ResolvedCall, tool: RailTool, now: number): Decided {
  const { policy, journal } = run.parts;
  const { user, origin } = state.accepted.principal;
  const read = amountOf(tool, node.args);
  const amount = read === 'unreadable' ? undefined : read;
  const decision = policy.decide({
    ...{ user, tool: node.tool, args: node.args, surface: tool.surface, now },
    ...{ amount, amountUnreadable: read === 'unreadable', spends: journal.spends(user, now) },
    unattended: origin === 'chronos',
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

/** Whether a decision differs from the previous one. */
function hasChanged(before: Decided | undefined, after: Decided): boolean {
  return before === undefined || canonicalJson({ ...before, at: '' }) !== canonicalJson({ ...after, at: '' });
}

/** Whether the last question was about this call and this definition of its tool. */
function isAbout({ gate }: NodeRecord, call: BoundCall): boolean {
  return gate?.asked.call_sha256 === call.call_sha256 && gate.definitionSha256 === call.definition_sha256;
}

/**
 * Whether the last question was approved by an active approver. An approval without a signature (from before signatures
 * existed) or by a revoked key does not count; the question is asked again.
 */
function isApprovedBy({ parts }: IntentRun, { accepted }: ChainState, { gate }: NodeRecord): boolean {
  const { approved, approver, signature, passkey } = gate?.answered ?? {};
  if (approved !== true || approver === undefined || (signature ?? passkey) === undefined) return false;
  return parts.journal.roster.activeApprover(accepted.principal.user, approver) !== undefined;
}

/** @throws IntentFailure when the question expired or was denied */
function checkAnswer({ gate }: NodeRecord, { id, tool }: CallNode): void {
  if (gate?.expired) {
    throw new IntentFailure('approval_expired', `the question about ${tool} (node ${id}) expired without an answer`);
  }
  if (gate?.answered?.approved !== false) return;
  const { by, answer } = gate.answered;
  throw new IntentFailure(
    'denied',
    `${by} denied the call of ${tool} (node ${id})${answer === undefined ? '' : `: ${answer}`}`,
  );
}

/**
 * Waits for the consent that a call needs and records its start. The policy decides in the transaction that records the
 * start, so two concurrent calls cannot pass a limit together.
 *
 * @returns the tool as it was judged; `undefined` for a call that was started before and that the present tool does not
 *   allow to repeat
 * @throws IntentFailure when the call must not be made, RunStopped when the run was stopped meanwhile
 */
export async function startCall(run: IntentRun, node: ResolvedCall): Promise<RailTool | undefined> {
  const { clock } = run.parts;
  for (;;) {
    const tool = toolOf(run, node);
    const earlier = recordOf(run.state(), node.id);
    if (earlier.started && !mayRepeat(earlier, tool)) return undefined;
    checkSchema(node, tool);
    let started = false;
    const state = await run.begin((before) => {
      started = false;
      const now = clock.now();
      const record = recordOf(before, node.id);
      checkAnswer(record, node);
      if (now > run.deadline()) {
        const deadline = formatInstant(run.deadline());
        throw new IntentFailure(
          'deadline_passed',
          `the deadline ${deadline} passed before ${node.tool} (node ${node.id}) could be called`,
        );
      }
      const decided = decide(run, before, node, tool, now);
      const entries: ReceiptEntry[] = hasChanged(record.decided, decided)
        ? [{ kind: 'call.decided', body: decided }]
        : [];
      const { effect, call } = decided;
      const isOpen = record.gate !== undefined && !record.gate.answered;
      const isApproved = isApprovedBy(run, before, record) && isAbout(record, call);
      // An open question waits for its answer, even if the policy or the manifest has changed since.
      if (effect === 'deny' || isOpen || (effect === 'ask' && !isApproved)) return entries;
      started = true;
      const { at, surface } = decided;
      const key = tool.rail?.idempotency_key === undefined ? {} : { idempotency_key: callKey(run.intentId, node.id) };
      return [...entries, { kind: 'call.started', body: { at, node_id: node.id, call, surface, ...key } }];
    });
    if (started) return tool;
    const record = recordOf(state, node.id);
    const { effect, reason, call } = record.decided!;
    if (effect === 'deny')
      throw new IntentFailure('denied_by_policy', `the policy denies ${node.tool} (node ${node.id}): ${reason}`);
    if (!isAbout(record, call) || record.gate?.answered) await openGate(run, node, tool);
    else
      await inSpan('await approval', approving(node), async (span) => {
        await awaitAnswer(run, node.id);
        const answered = recordOf(run.state(), node.id).gate?.answered;
        const outcome = answered === undefined ? 'expired' : answered.approved ? 'approved' : 'denied';
        span?.setAttribute('reveille.approval.outcome', outcome);
      });
  }
}

type Trial = (ReceiptEntry & { kind: 'call.tried' }) | undefined;

/** Makes the dry run, if the manifest declares one. */
async function dryRun(run: IntentRun, node: CallNode, tool: RailTool): Promise<Trial> {
  const companion = tool.rail?.dry_run;
  if (!companion) return undefined;
  const answer = await callCompanion(run, node, companion, { signal: run.stopSignal });
  const { tool: name, args, args_sha256, status } = answer;
  const at = formatInstant(run.parts.clock.now());
  return {
    kind: 'call.tried',
    body: { at, node_id: node.id, tool: name, args, args_sha256, status, ...receivedOf(answer) },
  };
}

/** Records the question with its full text. */
async function openGate(run: IntentRun, node: CallNode, tool: RailTool): Promise<void> {
  const { clock, policy, journal } = run.parts;
  const tried = await dryRun(run, node, tool);
  await run.begin((state) => {
    const now = clock.now();
    const expiresAt = formatInstant(Math.min(now + policy.approvalTimeoutMs, run.deadline()));
    const decided = recordOf(state, node.id).decided!;
    const spends = journal.spends(state.accepted.principal.user, now);
    const displayed = questionOf({ state, node, tool, decided, tried: tried?.body, spends, now, expiresAt });
    const about = { at: formatInstant(now), node_id: node.id, call_sha256: decided.call.call_sha256 };
    const body = { ...about, displayed, displayed_sha256: sha256Hex(displayed), expires_at: expiresAt };
    return [...(tried ? [tried] : []), { kind: 'gate.asked', body }];
  });
}

function waitingGate(state: ChainState, nodeId: string) {
  const { gate } = recordOf(state, nodeId);
  return gate && !gate.answered && !gate.expired ? gate : undefined;
}

const approving = (node: CallNode) => () => ({
  attributes: { 'gen_ai.tool.name': node.tool, 'reveille.node.id': node.id },
});

/** Resolves when the question was answered or has expired; records the expiry. */
async function awaitAnswer(run: IntentRun, nodeId: string): Promise<void> {
  const { clock } = run.parts;
  for (;;) {
    const gate = waitingGate(run.state(), nodeId);
    if (!gate) return;
    const expiresAt = parseInstant(gate.asked.expires_at)!;
    const now = clock.now();
    if (now < expiresAt) {
      await run.waitForChange(expiresAt);
      continue;
    }
    const { call_sha256 } = gate.asked;
    await run.begin((state) =>
      waitingGate(state, nodeId)
        ? [{ kind: 'gate.expired', body: { at: formatInstant(now), node_id: nodeId, call_sha256 } }]
        : [],
    );
  }
}
