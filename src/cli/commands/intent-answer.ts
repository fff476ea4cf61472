/**
 * `reveille intent approve` and `deny`. Only a displayed call can be approved: the answer contains the digest of the
 * call on the screen, computed here from that call.
 */
import type { ExecutorClient, WaitingGate } from '../../executor/client.ts';
import { fullyEscaped } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { callDigestSchema } from '../../wire/executor.ts';
import { answerSummary } from '../../wire/intent-view.ts';
import { userOf } from '../access/chronos.ts';
import { executorAdmin, executorClient } from '../access/executor.ts';
import { ignored, orUndefined } from '../access/unreachable.ts';
import { requireApprover } from '../approver/approver-key.ts';
import { isActive, shownDigests, signedAnswer } from '../approver/statements.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { askPerson } from '../screens/gate-prompt.ts';
import { renderGate } from '../screens/gate-screen.ts';
import { readerOf } from '../screens/reader.ts';
import { findIntentId } from './intent.ts';

export type AnswerFlags = { user?: string; answer?: string; callSha256?: string; displayedSha256?: string };

async function findGate(client: ExecutorClient, intentId: string, nodeId: string | undefined): Promise<WaitingGate> {
  const gates = (await client.gates(intentId)).map(({ value }) => value);
  const names = gates.map(({ node_id }) => fullyEscaped(node_id)).join(', ');
  if (gates.length === 0) {
    const { nodes } = (await client.view(intentId)).value;
    const last = nodes.findLast((node) => node.answered && (nodeId ?? node.node_id) === node.node_id);
    const first = last?.answered
      ? `; ${last.node_id} was already ${answerSummary(last.answered)}; the first answer counts`
      : '';
    const message = `no step of intent ${intentId} waits for an answer${first}; see: reveille intent show`;
    throw new ReveilleError('conflict', message);
  }
  if (nodeId === undefined) {
    const [only, ...others] = gates;
    if (only !== undefined && others.length === 0) return only;
    throw new UsageError(`several steps of this intent wait; name one of them: ${names}`);
  }
  const gate = gates.find(({ node_id }) => node_id === nodeId);
  if (gate) return gate;
  throw new ReveilleError(
    'not_found',
    `step ${fullyEscaped(nodeId)} does not wait for an answer; waiting steps: ${names}`,
  );
}

/** Whether the digests in the command line, or the user at the terminal, approve this call and this question. */
async function isApproved(
  context: CliContext,
  intentId: string,
  gate: WaitingGate,
  flags: AnswerFlags,
): Promise<boolean> {
  const shown = shownDigests(gate);
  const isAsked = flags.displayedSha256 === undefined && context.out.live && context.process.stdin.isTTY === true;
  if (!isAsked) for (const line of [...renderGate(intentId, gate, readerOf(context)), '']) context.out.line(line);
  if (flags.callSha256 !== undefined && flags.callSha256 !== shown.call_sha256)
    throw new ReveilleError('conflict', `--call-sha256 does not match the waiting call (${shown.call_sha256})`);
  if (isAsked) return (await askPerson(context, intentId, gate)) === 'yes';
  if (flags.displayedSha256 !== undefined) {
    if (flags.displayedSha256 === shown.displayed_sha256) return true;
    throw new ReveilleError(
      'conflict',
      `--displayed-sha256 does not match the waiting question (${shown.displayed_sha256}); read it again`,
    );
  }
  throw new UsageError(
    'no terminal to ask at: read the question with "reveille intent show", and give its digest with --displayed-sha256',
  );
}

function checkFlags(flags: AnswerFlags): void {
  const given = { '--call-sha256': flags.callSha256, '--displayed-sha256': flags.displayedSha256 };
  for (const [name, value] of Object.entries(given)) {
    if (value !== undefined && !callDigestSchema.safeParse(value).success)
      throw new UsageError(`${name} must be 64 lower-case hex digits, as "reveille intent show" prints them`);
  }
}

const NOT_ACTIVE = 'is not an active approver of';
const ENROLL = 'enroll the key of this computer with: reveille approver enroll';

/**
 * Checks that the key of this computer can answer, before the question is shown. Only the operator's token reads the
 * roster; without it the executor checks the answer.
 *
 * @throws ReveilleError `not_found` without a key, `forbidden` when it is not an active approver
 */
async function assertEnrolled(context: CliContext, flags: AnswerFlags): Promise<void> {
  const { publicKey } = requireApprover(context.environment);
  const user = userOf(context, flags.user);
  const list = await orUndefined(() => executorAdmin(context).approvers(user))?.catch(ignored);
  if (list === undefined || list.approvers.some((view) => view.approver === publicKey && isActive(view))) return;
  throw new ReveilleError('forbidden', `approver ${publicKey} ${NOT_ACTIVE} ${user}; ${ENROLL}`);
}

/** The digests in the command line of a denial must be those of the waiting question. */
function checkDigests(gate: WaitingGate, flags: AnswerFlags): void {
  const shown = shownDigests(gate);
  const named: [string, string | undefined, string][] = [
    ['--call-sha256', flags.callSha256, shown.call_sha256],
    ['--displayed-sha256', flags.displayedSha256, shown.displayed_sha256],
  ];
  for (const [name, value, waits] of named) {
    if (value !== undefined && value !== waits)
      throw new ReveilleError(
        'conflict',
        `${name} does not match the waiting call (${waits}); read the question again`,
      );
  }
}

/** Signs an answer to the question of a step with the user's key, and sends it. */
export async function intentAnswer(
  context: CliContext,
  approved: boolean,
  flags: AnswerFlags,
  given: string,
  nodeId: string | undefined,
): Promise<void> {
  checkFlags(flags);
  const client = executorClient(context, flags.user);
  const intentId = await findIntentId(client, given);
  const gate = await findGate(client, intentId, nodeId);
  if (approved) {
    await assertEnrolled(context, flags);
    if (!(await isApproved(context, intentId, gate, flags)))
      throw new ReveilleError('forbidden', 'not approved; the question still waits: approve or deny it');
  } else checkDigests(gate, flags);
  const { node_id, displayed_sha256 } = gate;
  const answer = await signedAnswer(context, { intentId, gate, approved, words: flags.answer });
  const { approver, call_sha256 } = answer;
  await client.answer(intentId, node_id, answer).catch((error: unknown) => {
    if (!(error instanceof ReveilleError && error.message.includes(NOT_ACTIVE))) throw error;
    throw new ReveilleError(error.code, `${error.message}; ${ENROLL}`, { cause: error });
  });
  const lines = [
    `${approved ? 'Approved' : 'Denied'} ${fullyEscaped(node_id)} of ${intentId}, signed by ${approver.slice(0, 16)}…`,
    ...(approved ? [`  follow it with: reveille intent watch ${intentId}`] : []),
  ];
  context.out.result({ intent_id: intentId, node_id, approved, call_sha256, displayed_sha256, approver }, lines);
}
