/** Makes one call: parses its arguments, retries it, and writes the text for the model when it fails. */

import { type Clock, orAborted, wait } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { ModelToolCall } from '../../../kit/model/model.ts';
import { failSpan, inSpan, toolSpan } from '../../../kit/trace/trace.ts';
import { isObject } from '../../../wire/json.ts';
import { withoutTrailing } from '../../../wire/text.ts';
import { type ToolAnswer, type ToolCallContext, ToolFailure, type ToolSurface, textAnswer } from '../tools/surface.ts';

/** Parsed arguments, or a sentence for the model about their error. */
type ParsedArguments = { readonly args: Record<string, unknown> } | { readonly problem: string };

/** The longest arguments of one call, in UTF-16 units; larger data belongs into files. */
const LONGEST_ARGUMENTS = 256 * 1024;

const significantDigits = (decimal: string) =>
  withoutTrailing(decimal.split(/[eE]/, 1)[0]!.replace(/[-.]/g, ''), '0').replace(/^0+/, '');

/** Whether JavaScript represents a number as it was written. */
function isExact(value: number, source: string): boolean {
  return Number.isFinite(value) && significantDigits(source) === significantDigits(String(value));
}

/** JSON as in this version of Node: its types lack the source text argument of revivers, and `rawJSON`. */
const sourceJson = JSON as unknown as {
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON(text: string): object;
};

/** A tool must never get a rounded id or amount. A number that would be rounded is passed on as its source text. */
function exactly(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || source === undefined || isExact(value, source)) return value;
  return sourceJson.rawJSON(source);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}

/**
 * Parses the arguments of a call. Serialized again they keep all their digits.
 *
 * @param input JSON source text; an empty text counts as no arguments
 */
function parseArguments(input: string): ParsedArguments {
  if (input.length > LONGEST_ARGUMENTS) {
    return { problem: `the arguments must have at most ${LONGEST_ARGUMENTS} characters (they have ${input.length})` };
  }
  if (input.trim() === '') return { args: {} };
  let value: unknown;
  try {
    value = sourceJson.parse(input, exactly);
  } catch (error) {
    const reason = error instanceof Error ? error.message : 'not JSON';
    return { problem: `the arguments must be a JSON object (${reason})` };
  }
  if (isObject(value)) return { args: value };
  return { problem: `the arguments must be a JSON object (got ${kindOf(value)})` };
}

/** Delays before a repeatable call is made again after a transport failure. */
const RETRY_DELAYS_MS = [250, 1000, 4000];

export type CallMakingOptions = {
  surface: Pick<ToolSurface, 'dispatch'>;
  clock: Clock;
  log: Logger;
};

/** The text for the model about a call without an answer. */
function failureSentence({ message, mayHaveRun }: ToolFailure, tries: number): string {
  const how = tries > 1 ? ` (tried ${tries} times)` : '';
  const effect = mayHaveRun
    ? 'It may have taken effect all the same: find out before you repeat it.'
    : 'It did not take effect.';
  return `the call failed on its way: ${message}${how}. ${effect}`;
}

/**
 * Makes a call. A transport failure is retried if the tool declares its calls repeatable; every other failure is an
 * answer for the model.
 *
 * @throws the signal's reason when it aborts; nothing else
 */
export function makeCall(
  call: ModelToolCall,
  context: ToolCallContext,
  options: CallMakingOptions,
): Promise<ToolAnswer> {
  const { name, facts } = toolSpan(call.name, context.callId);
  return inSpan(name, facts, async (span) => {
    const answer = await triedCall(call, context, options);
    if (answer.isError) failSpan(span, 'tool_error');
    return answer;
  });
}

async function triedCall(
  call: ModelToolCall,
  context: ToolCallContext,
  { surface, clock, log }: CallMakingOptions,
): Promise<ToolAnswer> {
  const { signal } = context;
  const read = parseArguments(call.input);
  if ('problem' in read) return textAnswer(read.problem, true);
  for (let tries = 1; ; tries++) {
    try {
      return await orAborted(surface.dispatch(call.name, read.args, context), signal);
    } catch (thrown) {
      if (signal.aborted) throw signal.reason;
      if (!(thrown instanceof ToolFailure)) {
        log.error({ err: thrown, call_id: context.callId, tool: call.name }, 'a tool call failed by an internal error');
        return textAnswer('the call failed by an internal error; whether it took effect is not known', true);
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
