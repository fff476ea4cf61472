/** Making one call: reading its arguments, the recovery ladder, and what the model is told when it comes to nothing. */
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { orAborted } from '../../kit/clock/or-aborted.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { ModelToolCall } from '../../kit/model/model.ts';
import { type ToolAnswer, type ToolCallContext, ToolFailure, type ToolSurface, textAnswer } from '../tools/surface.ts';
import { readArguments } from './arguments.ts';

/** Pauses before a call that may be repeated is made again after a failure on its way. */
const RETRY_DELAYS_MS = [250, 1000, 4000];

export type CallMakingOptions = {
  surface: Pick<ToolSurface, 'dispatch'>;
  clock: Clock;
  log: Logger;
};

/** What the model is told of a call that no answer came back of. */
function failureSentence({ message, mayHaveRun }: ToolFailure, tries: number): string {
  const how = tries > 1 ? ` (tried ${tries} times)` : '';
  const effect = mayHaveRun
    ? 'It may have taken effect all the same: find out before you repeat it.'
    : 'It did not take effect.';
  return `the call failed on its way: ${message}${how}. ${effect}`;
}

/**
 * Makes a call. A failure on the way is met by trying again when the tool says that its calls may be repeated; every other failure is
 * an answer that the model sees.
 *
 * @throws the signal's reason when it aborts; nothing else
 */
export async function makeCall(
  call: ModelToolCall,
  context: ToolCallContext,
  { surface, clock, log }: CallMakingOptions,
): Promise<ToolAnswer> {
  const { signal } = context;
  const read = readArguments(call.input);
  if ('wrong' in read) return textAnswer(read.wrong, true);
  for (let tries = 1; ; tries++) {
    try {
      return await orAborted(surface.dispatch(call.name, read.args, context), signal);
    } catch (thrown) {
      if (signal.aborted) throw signal.reason;
      if (!(thrown instanceof ToolFailure)) {
        log.error({ err: thrown, call_id: context.callId, tool: call.name }, 'a tool call failed on our side');
        return textAnswer('the call failed on our side; whether it took effect is not known', true);
      }
      const delayMs = thrown.repeatable ? RETRY_DELAYS_MS[tries - 1] : undefined;
      if (delayMs === undefined) return textAnswer(failureSentence(thrown, tries), true);
      log.warn(
        { call_id: context.callId, tool: call.name, tries, reason: thrown.message },
        'a tool call is made again',
      );
      await wait(clock, delayMs, signal);
      signal.throwIfAborted();
    }
  }
}
