/**
 * `reveille intent approve` and `deny`. Nothing is approved that was not shown: the answer carries the digest of the
 * call on the screen, which is worked out here from that very call, and counts for no other.
 */

import { createHash } from 'node:crypto';
import type { ExecutorClient, WaitingGate } from '../../executor/client.ts';
import { laidOpen } from '../../kit/text/hidden-characters.ts';
import { answerText } from '../../wire/approver.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { callDigestSchema } from '../../wire/executor.ts';
import { executorClient } from '../access/executor.ts';
import { openApprover } from '../approver/approver-key.ts';
import { askPassphrase } from '../approver/passphrase.ts';
import { signedUntil } from '../approver/statements.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { askPerson } from '../screens/gate-prompt.ts';
import { renderGate } from '../screens/gate-screen.ts';
import { lookOf } from '../screens/look.ts';
import { findIntentId } from './intent.ts';

export type AnswerFlags = { user?: string; answer?: string; callSha256?: string; displayedSha256?: string };

async function findGate(client: ExecutorClient, intentId: string, nodeId: string | undefined): Promise<WaitingGate> {
  const gates = (await client.gates(intentId)).map(({ value }) => value);
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

/**
 * The digest of the question that is shown. @throws ReveilleError `conflict` when the executor gives another one for it
 */
function questionDigestOf({ question, displayed_sha256: told }: WaitingGate): string {
  const own = createHash('sha256').update(question, 'utf8').digest('hex');
  if (own === told) return own;
  throw new ReveilleError(
    'conflict',
    `the executor's digest ${told} is not that of the question that it shows; nothing was answered`,
  );
}

/** Whether the digests on the command line, or the person at the terminal, say yes to this call and this question. */
async function isApproved(
  context: CliContext,
  { intentId, gate, shown }: { intentId: string; gate: WaitingGate; shown: Shown },
  flags: AnswerFlags,
): Promise<boolean> {
  const isAsked = flags.displayedSha256 === undefined && context.out.live && context.process.stdin.isTTY === true;
  if (!isAsked) for (const line of [...renderGate(intentId, gate, lookOf(context)), '']) context.out.line(line);
  if (flags.callSha256 !== undefined && flags.callSha256 !== shown.call)
    throw new ReveilleError(
      'conflict',
      `--call-sha256 is that of another call than the one that waits (${shown.call})`,
    );
  if (isAsked) return askPerson(context, intentId, gate);
  if (flags.displayedSha256 !== undefined) {
    if (flags.displayedSha256 === shown.displayed) return true;
    throw new ReveilleError(
      'conflict',
      `--displayed-sha256 is that of another question than the one that waits (${shown.displayed}); look at it again`,
    );
  }
  throw new UsageError(
    'nobody can be asked here: look at the question with "reveille intent show", and give its digest with --displayed-sha256',
  );
}

function checkFlags(flags: AnswerFlags): void {
  const given = { '--call-sha256': flags.callSha256, '--displayed-sha256': flags.displayedSha256 };
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && !callDigestSchema.safeParse(value).success)
      throw new UsageError(`${name} must be 64 lower-case hex digits, as "reveille intent show" prints them`);
  }
}

/** The digests of what was shown. */
type Shown = { readonly call: string; readonly displayed: string };

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
  const shown = { call: digestOf(gate), displayed: questionDigestOf(gate) };
  if (!(await isApproved(context, { intentId, gate, shown }, flags)))
    throw new ReveilleError('forbidden', 'not approved; the question still waits: approve or deny it');
  await say(context, client, { intentId, gate, approved: true, words: flags.answer });
}

export async function intentDeny(
  context: CliContext,
  flags: AnswerFlags,
  given: string,
  nodeId: string | undefined,
): Promise<void> {
  const { client, intentId, gate } = await questionOf(context, flags, given, nodeId);
  const named: [string, string | undefined, string][] = [
    ['--call-sha256', flags.callSha256, digestOf(gate)],
    ['--displayed-sha256', flags.displayedSha256, questionDigestOf(gate)],
  ];
  for (const [name, value, waits] of named) {
    if (value !== undefined && value !== waits)
      throw new ReveilleError('conflict', `${name} is not that of what waits (${waits}); look at the question again`);
  }
  await say(context, client, { intentId, gate, approved: false, words: flags.answer });
}

/** Signs the answer with the key of whoever sits here, and sends it. */
async function say(
  context: CliContext,
  client: ExecutorClient,
  given: { intentId: string; gate: WaitingGate; approved: boolean; words: string | undefined },
): Promise<void> {
  const { out, environment, clock } = context;
  const { intentId, gate, approved, words } = given;
  const { node_id, displayed_sha256 } = gate;
  const key = await openApprover(environment, askPassphrase(context));
  const said = {
    ...{ approved, call_sha256: gate.call.call_sha256, displayed_sha256, expires_at: signedUntil(clock.now()) },
    ...(words === undefined ? {} : { answer: words }),
  };
  const signature = key.sign(answerText({ ...said, intent_id: intentId, node_id }));
  await client.answer(intentId, node_id, { ...said, approver: key.publicKeyHex, signature });
  const lines = [
    `${approved ? 'Approved' : 'Denied'} ${laidOpen(node_id)} of ${intentId}, signed by ${key.publicKeyHex.slice(0, 16)}…`,
    ...(approved ? [`  follow it with: reveille intent watch ${intentId}`] : []),
  ];
  const { call_sha256 } = said;
  out.result(
    { intent_id: intentId, node_id, approved, call_sha256, displayed_sha256, approver: key.publicKeyHex },
    lines,
  );
}
