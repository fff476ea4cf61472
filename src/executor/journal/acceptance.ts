/** The first envelope of an intent, and whether a request is about the same task. Pure. */
import { canonicalJson } from '../../wire/canonical-json.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { IntentRequest } from '../../wire/executor.ts';
import { type ReceiptEnvelope, SIGNED_APPROVALS } from '../../wire/intent-receipt.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { ReceiptBodies } from '../receipt/bodies.ts';
import { sha256Hex } from '../receipt/envelope.ts';

type Accepted = ReceiptBodies['intent.accepted'];

export function acceptedBody(
  intentId: string,
  user: string,
  { prose, intent, idempotency_key, conversation_id, origin = 'person', context }: IntentRequest,
  { at, manifestSha256, policySha256 }: { at: number; manifestSha256: string; policySha256: string },
): Accepted {
  return {
    at: formatInstant(at),
    intent_id: intentId,
    principal: { user, ...(conversation_id !== undefined && { conversation_id }), origin },
    ...(idempotency_key !== undefined && { idempotency_key }),
    ...(prose !== undefined && { prose }),
    ...(intent !== undefined && { intent: intent.text }),
    ...(context !== undefined && {
      context: { pieces: context.map(({ from }) => from), sha256: sha256Hex(canonicalJson(context)) },
    }),
    manifest_sha256: manifestSha256,
    policy_sha256: policySha256,
    rules: SIGNED_APPROVALS,
  };
}

/**
 * What a request asks for that the intent under its idempotency key does not; `undefined` when it is the same task. What was handed over
 * of the conversation does not count: it grows from one attempt to the next.
 *
 * @param first the text of the intent's first envelope
 */
export function differenceOf(first: string | undefined, { prose, intent }: IntentRequest): string | undefined {
  const names = 'idempotency_key names an intent of yours that was made with';
  const remedy = 'send the same task to get its outcome, or use another key for another task';
  let accepted: Partial<Accepted>;
  try {
    accepted = (JSON.parse(first ?? '') as ReceiptEnvelope).body;
  } catch (cause) {
    const message =
      'the journal of the intent under this idempotency_key was changed and cannot be compared; use another key';
    throw new ReveilleError('conflict', message, { cause });
  }
  if (accepted.prose !== prose) {
    const what = accepted.prose === undefined ? 'an intent instead of prose' : 'other prose';
    return `${names} ${prose === undefined ? 'prose instead of an intent' : what}; ${remedy}`;
  }
  return accepted.intent === intent?.text ? undefined : `${names} another intent; ${remedy}`;
}
