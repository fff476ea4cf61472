/**
 * An answer to a question of the executor, signed with the user's key. It contains the digests of the displayed call and
 * question, computed here from the displayed texts.
 */
import { digestsOf, type WaitingGate } from '../../executor/client.ts';
import { answerText } from '../../wire/approver.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import type { CliContext } from '../context.ts';
import { openApprover } from './approver-key.ts';
import { askPassphrase } from './passphrase.ts';
import { signedUntil } from './statements.ts';

/** The digest of the displayed call. @throws ReveilleError `conflict` when the executor's digest differs */
export function digestOf(gate: WaitingGate): string {
  const { call } = gate;
  const own = digestsOf(gate).call_sha256;
  if (own === call.call_sha256) return own;
  throw new ReveilleError(
    'conflict',
    `the executor's digest ${call.call_sha256} does not match the displayed call; nothing was approved`,
  );
}

/** The digest of the displayed question. @throws ReveilleError `conflict` when the executor's digest differs */
export function questionDigestOf(gate: WaitingGate): string {
  const { displayed_sha256: expected } = gate;
  const own = digestsOf(gate).displayed_sha256;
  if (own === expected) return own;
  throw new ReveilleError(
    'conflict',
    `the executor's digest ${expected} does not match the displayed question; nothing was answered`,
  );
}

/**
 * Signs an answer after checking the displayed texts.
 *
 * @param given.words the user's remark
 * @throws ReveilleError `conflict` when call or question do not match their digests; as `openApprover`
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
