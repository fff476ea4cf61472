/** Reading a provider's stream into an answer. Bounded: whatever an endpoint sends, what is kept of it is small. */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { ReveilleError } from '../../wire/errors.ts';
import type { ModelAnswer, ModelToolCall } from './model.ts';

/** Nobody reads more than this, and an endpoint that never stops must not fill the disk. In UTF-16 units. */
const LONGEST_ANSWER = 256 * 1024;

/** What the arguments of all calls of one answer may have together, in UTF-16 units. */
const LONGEST_INPUT = 1024 * 1024;

/** What a call takes of that besides its arguments, so that endless empty calls meet the bound as well. */
const CALL_WEIGHT = 256;

const SHOWN_CHARACTERS = 200;

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;

function cutOffReason({ unified, raw }: Finish['finishReason']): string | undefined {
  if (unified === 'stop' || unified === 'tool-calls') return undefined;
  if (unified === 'length') return 'the model reached its output limit before it had finished';
  if (unified === 'content-filter') return "the endpoint's content filter ended the answer";
  return `the model stopped with finish reason ${JSON.stringify(raw ?? unified)}`;
}

const faulty = (calls: readonly ModelToolCall[], fault: string): ModelToolCall[] =>
  calls.map((call) => ({ ...call, fault }));

/** A stream that ended without saying that it was complete. */
export class BrokenOff extends Error {}

export type StreamReader = {
  /** What stops the stream from being read on: the answer is complete as far as it will be. */
  readonly full: boolean;
  add(part: LanguageModelV4StreamPart): void;
  /**
   * The answer.
   *
   * @throws BrokenOff when the stream ended early or said nothing
   */
  end(): ModelAnswer;
};

/**
 * Starts to read an answer.
 *
 * @param askedModel the model's name until the endpoint gives its own
 */
export function readStream(askedModel: string, onText: (piece: string) => void): StreamReader {
  const begun = new Map<string, { name: string; head: string }>();
  const calls: ModelToolCall[] = [];
  let inputSize = 0;
  let text = '';
  let model = askedModel;
  let finish: Finish | undefined;

  function addText(piece: string): void {
    if (piece === '') return;
    text += piece;
    if (text.length > LONGEST_ANSWER) {
      const message = `the model's answer is longer than ${LONGEST_ANSWER} characters`;
      throw new ReveilleError('unavailable', message, { retryable: false });
    }
    onText(piece);
  }

  function add(part: LanguageModelV4StreamPart): void {
    switch (part.type) {
      case 'text-delta':
        addText(part.delta);
        return;
      case 'tool-input-start':
        inputSize += CALL_WEIGHT;
        begun.set(part.id, { name: part.toolName.slice(0, SHOWN_CHARACTERS), head: '' });
        return;
      case 'tool-input-delta': {
        inputSize += part.delta.length;
        const call = begun.get(part.id);
        if (call && call.head.length < SHOWN_CHARACTERS) call.head += part.delta.slice(0, SHOWN_CHARACTERS);
        return;
      }
      case 'tool-call':
        calls.push({
          id: part.toolCallId,
          name: part.toolName,
          input: part.input,
          ...(part.providerMetadata === undefined ? {} : { opaque: part.providerMetadata }),
        });
        return;
      case 'response-metadata':
        model = part.modelId?.slice(0, 200) || model;
        return;
      case 'finish':
        finish = part;
        return;
      case 'error':
        throw part.error;
    }
  }

  function overflow(): ModelAnswer {
    const asked = [...begun].map(([id, { name, head }]) => ({ id, name, input: head }));
    const fault = `the arguments of this answer's calls were longer than ${LONGEST_INPUT} characters together; none of the calls was made. Ask for less at once`;
    return { text, model, toolCalls: faulty(asked, fault) };
  }

  return {
    get full() {
      return inputSize > LONGEST_INPUT;
    },

    add,

    end() {
      if (inputSize > LONGEST_INPUT) return overflow();
      if (finish === undefined) throw new BrokenOff('the stream ended early');
      const cutOff = cutOffReason(finish.finishReason);
      if (text === '' && calls.length === 0) {
        throw new BrokenOff(`the answer is empty${cutOff ? `: ${cutOff}` : ''}`);
      }
      const { inputTokens, outputTokens } = finish.usage;
      const answer = {
        text,
        model,
        usage: {
          ...(inputTokens.total === undefined ? {} : { inputTokens: inputTokens.total }),
          ...(outputTokens.total === undefined ? {} : { outputTokens: outputTokens.total }),
        },
      };
      if (calls.length === 0) {
        return cutOff === undefined ? answer : { ...answer, cutOff };
      }
      // Half of a call's arguments can be whole JSON, so none of a cut answer's calls is trusted.
      const toolCalls = cutOff === undefined ? calls : faulty(calls, `${cutOff}; none of its calls was made`);
      return { ...answer, toolCalls };
    },
  };
}
