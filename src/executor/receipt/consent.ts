/** Consent to a call: what a person is asked, what counts as an answer, and whether a start had been allowed. Pure, but for the state. */
import { verifySignature } from '../../kit/identity/keys.ts';
import { answerText, SIGNED_AHEAD_MS } from '../../wire/approver.ts';
import { SIGNED_APPROVALS } from '../../wire/intent-receipt.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import type { BoundCall, ReceiptBodies } from './bodies.ts';
import { Contradiction } from './contradiction.ts';
import type { CallState, Question } from './story.ts';

/** Puts a question; throws where the policy has not said that somebody must be asked about this very call. */
export function putQuestion(state: CallState, body: ReceiptBodies['gate.asked']): void {
  const { nodeId, decision, fresh } = state;
  if (decision?.effect !== 'ask' || !fresh)
    throw new Contradiction('question', `a person was asked at "${nodeId}", where the policy did not say so`);
  if (decision.call.call_sha256 !== body.call_sha256)
    throw new Contradiction('question', `the question at "${nodeId}" is about another call than the policy judged`);
  state.answer = undefined;
  state.expired = false;
  state.question = {
    callSha256: body.call_sha256,
    displayedSha256: body.displayed_sha256,
    definitionSha256: decision.call.definition_sha256,
    expiresAt: body.expires_at,
    answer: undefined,
    expired: false,
  };
}

function openQuestion({ nodeId, question }: CallState, callSha256: string, what: string): Question {
  if (!question) throw new Contradiction('answer', `${what} at "${nodeId}", where nothing had been asked`);
  if (question.answer) throw new Contradiction('answer', `${what} at "${nodeId}", where an answer counted already`);
  if (question.expired) throw new Contradiction('answer', `${what} at "${nodeId}", where the question had expired`);
  if (question.callSha256 !== callSha256)
    throw new Contradiction('answer', `${what} at "${nodeId}" is about another call than the question`);
  return question;
}

/**
 * Throws unless a key has signed this answer to this question. By the rules of before answers were signed that may be left out, but not done
 * wrongly.
 */
function holdToSignature(
  { nodeId }: CallState,
  question: Question,
  body: ReceiptBodies['gate.answered'],
  { intentId, rules }: { intentId: string; rules: number },
): void {
  const { at, displayed_sha256, approver, expires_at, signature } = body;
  const signed = [displayed_sha256, approver, expires_at, signature];
  if (rules < SIGNED_APPROVALS && signed.every((member) => member === undefined)) return;
  const wrong = (what: string) => new Contradiction('approver', `the answer at "${nodeId}" ${what}`);
  if (displayed_sha256 === undefined || approver === undefined || expires_at === undefined || signature === undefined)
    throw wrong('does not say whose key signed it, or what and until when');
  if (displayed_sha256 !== question.displayedSha256)
    throw wrong('is about another question than the one that was shown');
  const [given, until] = [parseInstant(at)!, parseInstant(expires_at)!];
  if (given >= until) throw wrong(`was taken at ${at}; it counted only before ${expires_at}`);
  if (until > given + SIGNED_AHEAD_MS) throw wrong(`was to count until ${expires_at}, more than 24 hours after ${at}`);
  const statement = { ...body, displayed_sha256, expires_at, intent_id: intentId };
  if (!verifySignature(approver, answerText(statement), signature))
    throw wrong(`is not signed by ${approver}: somebody without that key gave it, or changed it`);
}

/** Takes an answer in; throws where it could not count. */
export function takeAnswer(
  state: CallState,
  body: ReceiptBodies['gate.answered'],
  intent: { readonly intentId: string; readonly user: string | undefined; readonly rules: number },
): void {
  const { by, at, approved, call_sha256: callSha256, approver, name } = body;
  const { nodeId } = state;
  const question = openQuestion(state, callSha256, 'an answer');
  if (by !== intent.user)
    throw new Contradiction('answer', `the answer at "${nodeId}" is by ${by}; the intent is ${intent.user}'s`);
  if (approved && parseInstant(at)! > parseInstant(question.expiresAt)!)
    throw new Contradiction(
      'answer',
      `the approval at "${nodeId}" came after ${question.expiresAt}, when the question expired`,
    );
  holdToSignature(state, question, body, intent);
  question.answer = { by, at, approved, approver, name };
  state.answer = question.answer;
}

/** Puts down that nobody answered; throws where there was nothing to answer. */
export function expireQuestion(state: CallState, { call_sha256: callSha256 }: ReceiptBodies['gate.expired']): void {
  openQuestion(state, callSha256, 'an expiry').expired = true;
  state.expired = true;
}

/** Throws where a start has not the consent that it needs. */
export function holdToConsent(state: CallState, call: BoundCall, surface: 'natural' | 'escalate'): void {
  const { nodeId, decision, question } = state;
  if (!decision || !state.fresh)
    throw new Contradiction('decision', `"${nodeId}" was started and the policy had not been asked about it`);
  if (decision.call.call_sha256 !== call.call_sha256 || decision.call.definition_sha256 !== call.definition_sha256)
    throw new Contradiction('decision', `what was started at "${nodeId}" is not the call that the policy judged`);
  if (decision.surface !== surface)
    throw new Contradiction('decision', `"${nodeId}" was judged as ${decision.surface} and started as ${surface}`);
  if (decision.effect === 'deny')
    throw new Contradiction('decision', `"${nodeId}" was started although the policy denied it`);
  if (decision.effect === 'allow') return;
  if (!question?.answer?.approved || question.expired)
    throw new Contradiction('consent', `"${nodeId}" was started although nobody had approved it`);
  if (question.callSha256 !== call.call_sha256 || question.definitionSha256 !== call.definition_sha256)
    throw new Contradiction('consent', `what was started at "${nodeId}" is not what was approved`);
}
