/**
 * An answer to a question of the executor, signed by the key of whoever sits here. It carries the digests of the call and
 * of the question on the screen, which are worked out here from these very texts, and counts for no others.
 */
import { digestsOf, type WaitingGate } from '../../executor/client.ts';
import { answerText } from '../../wire/approver.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import type { CliContext } from '../context.ts';
import { openApprover } from './approver-key.ts';
import { askPassphrase } from './passphrase.ts';
import { signedUntil } from './statements.ts';

/** The digest of the call that is shown. @throws ReveilleError `conflict` when the executor gives another one for it */
export function digestOf(gate: WaitingGate): string {
  const { call } = gate;
  const own = digestsOf(gate).call_sha256;
  if (own === call.call_sha256) return own;
  throw new ReveilleError(
    'conflict',
    `the executor's digest ${call.call_sha256} is not that of the call that it shows; nothing was approved`,
  );
}

/**
 * The digest of the question that is shown. @throws ReveilleError `conflict` when the executor gives another one for it
 */
export function questionDigestOf(gate: WaitingGate): string {
  const { displayed_sha256: told } = gate;
  const own = digestsOf(gate).displayed_sha256;
  if (own === told) return own;
  throw new ReveilleError(
    'conflict',
    `the executor's digest ${told} is not that of the question that it shows; nothing was answered`,
  );
}

/**
 * Signs an answer, after a look at what was shown.
 *
 * @param given.words what the person adds
 * @throws ReveilleError `conflict` when call or question are not what they are said to be; as `openApprover`
 */
export async function signedAnswer(
  context: CliContext,
  given: { intentId: string; gate: WaitingGate; approved: boolean; words?: string | undefined },
): Promise<GateAnswer> {
  const { intentId, gate, approved, words } = given;
  const shown = { call_sha256: digestOf(gate), displayed_sha256: questionDigestOf(gate) };
  const key = await openApprover(context.environment, askPassphrase(context));
  const answer = words === undefined ? {} : { answer: words };
  const said = { approved, ...shown, expires_at: signedUntil(context.clock.now()), ...answer };
  const signature = key.sign(answerText({ ...said, intent_id: intentId, node_id: gate.node_id }));
  return { ...said, approver: key.publicKeyHex, signature };
}
