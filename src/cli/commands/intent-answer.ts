/**
 * `reveille intent approve` and `deny`. Nothing is approved that was not shown: the answer carries the digest of the call on the screen,
 * which is worked out here from that very call, and counts for no other.
 */
import { createHash } from 'node:crypto';
import { laidOpen } from '../../text-kit/hidden-characters.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { callDigestSchema } from '../../wire/executor.ts';
import type { CliContext } from '../context.ts';
import { type ExecutorClient, executorClient, type WaitingGate } from '../executor-access.ts';
import { askPerson } from '../gate-prompt.ts';
import { renderGate } from '../gate-screen.ts';
import { lookOf } from '../look.ts';
import { UsageError } from '../usage-error.ts';
import { findIntentId } from './intent-id.ts';

export type AnswerFlags = { user?: string; answer?: string; callSha256?: string };

async function findGate(client: ExecutorClient, intentId: string, nodeId: string | undefined): Promise<WaitingGate> {
  const gates = await client.gates(intentId);
  const names = gates.map(({ node_id }) => laidOpen(node_id)).join(', ');
  if (gates.length === 0)
    throw new ReveilleError('conflict', `no step of intent ${intentId} waits for an answer; see: reveille intent show`);
  if (nodeId === undefined) {
    const [only, ...others] = gates;
    if (only !== undefined && others.length === 0) return only;
    throw new UsageError(`several steps of this intent wait; name the one that you mean: ${names}`);
  }
  const gate = gates.find(({ node_id }) => node_id === nodeId);
  if (gate) return gate;
  throw new ReveilleError('not_found', `no step ${laidOpen(nodeId)} waits for an answer; waiting are: ${names}`);
}

/** The digest of the call that is shown. @throws ReveilleError `conflict` when the executor gives another one for it */
function digestOf({ call }: WaitingGate): string {
  const canonical = canonicalJson({ tool: call.tool, args: call.args });
  const own = createHash('sha256').update(canonical, 'utf8').digest('hex');
  if (own === call.call_sha256) return own;
  throw new ReveilleError(
    'conflict',
    `the executor's digest ${call.call_sha256} is not that of the call that it shows; nothing was approved`,
  );
}

/** Whether the digest on the command line, or the person at the terminal, says yes to this call. */
async function isApproved(
  context: CliContext,
  { intentId, gate, digest, given }: { intentId: string; gate: WaitingGate; digest: string; given: string | undefined },
): Promise<boolean> {
  const isAsked = given === undefined && context.out.live && process.stdin.isTTY === true;
  if (isAsked) return askPerson(context, intentId, gate);
  for (const line of [...renderGate(intentId, gate, lookOf(context)), '']) context.out.line(line);
  if (given !== undefined) {
    if (given === digest) return true;
    throw new ReveilleError('conflict', `--call-sha256 is that of another call than the one that waits (${digest})`);
  }
  throw new UsageError(
    'nobody can be asked here: look at the call with "reveille intent show", and give its digest with --call-sha256',
  );
}

function checkFlags({ callSha256: given }: AnswerFlags): void {
  if (given !== undefined && !callDigestSchema.safeParse(given).success)
    throw new UsageError('--call-sha256 must be 64 lower-case hex digits, as "reveille intent show" prints them');
}

/** The question that an answer is for. */
async function questionOf(context: CliContext, flags: AnswerFlags, given: string, nodeId: string | undefined) {
  checkFlags(flags);
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  return { client, intentId, gate: await findGate(client, intentId, nodeId) };
}

export async function intentApprove(
  context: CliContext,
  flags: AnswerFlags,
  given: string,
  nodeId: string | undefined,
): Promise<void> {
  const { client, intentId, gate } = await questionOf(context, flags, given, nodeId);
  const digest = digestOf(gate);
  if (!(await isApproved(context, { intentId, gate, digest, given: flags.callSha256 })))
    throw new ReveilleError('forbidden', 'not approved; the question still waits: approve or deny it');
  await say(context, client, { intentId, gate, approved: true, digest, words: flags.answer });
}

export async function intentDeny(
  context: CliContext,
  flags: AnswerFlags,
  given: string,
  nodeId: string | undefined,
): Promise<void> {
  const { client, intentId, gate } = await questionOf(context, flags, given, nodeId);
  const digest = flags.callSha256 ?? gate.call.call_sha256;
  await say(context, client, { intentId, gate, approved: false, digest, words: flags.answer });
}

async function say(
  { out }: CliContext,
  client: ExecutorClient,
  given: { intentId: string; gate: WaitingGate; approved: boolean; digest: string; words: string | undefined },
): Promise<void> {
  const { intentId, gate, approved, digest, words } = given;
  const node_id = gate.node_id;
  await client.answer(intentId, node_id, {
    approved,
    call_sha256: digest,
    ...(words === undefined ? {} : { answer: words }),
  });
  const lines = [
    `${approved ? 'Approved' : 'Denied'} ${laidOpen(node_id)} of ${intentId}`,
    ...(approved ? [`  follow it with: reveille intent watch ${intentId}`] : []),
  ];
  out.result({ intent_id: intentId, node_id, approved, call_sha256: digest }, lines);
}
