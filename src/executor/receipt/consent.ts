/** Whether a call that was started had been allowed: by the policy, or by the person who was asked. Pure. */
import type { BoundCall } from './bodies.ts';
import type { CallState, StoryRule } from './story.ts';

/** Thrown while a chain is read and caught there: what cannot have happened. */
export class Contradiction extends Error {
  readonly rule: StoryRule;

  constructor(rule: StoryRule, message: string) {
    super(message);
    this.rule = rule;
  }
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
