/** Converts a provider's stream into an answer. The stored size is limited, whatever an endpoint sends. */
import type { LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { ReveilleError } from '../../wire/errors.ts';
import type { ModelAnswer, ModelToolCall } from './model.ts';

/** Limit of an answer's text, in UTF-16 units, so that an endless answer cannot fill the disk. */
const LONGEST_ANSWER = 256 * 1024;

/** Limit of the arguments of all calls of one answer together, in UTF-16 units. */
const LONGEST_INPUT = 1024 * 1024;

/** Fixed size of a call besides its arguments, so that endless empty calls reach the limit too. */
const CALL_WEIGHT = 256;

const SHOWN_CHARACTERS = 200;

type Finish = Extract<LanguageModelV4StreamPart, { type: 'finish' }>;

function cutOffReason({ unified, raw }: Finish['finishReason']): string | undefined {
  if (unified === 'stop' || unified === 'tool-calls') return undefined;
  if (unified === 'length') return 'the model reached its output limit before it finished';
  if (unified === 'content-filter') return "the endpoint's content filter ended the answer";
  return `the model stopped with finish reason ${JSON.stringify(raw ?? unified)}`;
}

const faulty = (calls: readonly ModelToolCall[], fault: string): ModelToolCall[] =>
  calls.map((call) => ({ ...call, fault }));

/** A stream that ended without a finish reason. */
export class IncompleteStream extends Error {}

/**
 * Starts to read an answer.
 *
 * @param configuredModel the model's name until the endpoint sends its own
 */
export function readStream(configuredModel: string, onText: (piece: string) => void) {
  const begun = new Map<string, { name: string; head: string }>();
  const calls: ModelToolCall[] = [];
  let inputSize = 0;
  let text = '';
  let model = configuredModel;
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
    const requested = [...begun].map(([id, { name, head }]) => ({ id, name, input: head }));
    const fault = `the arguments of this answer's calls were longer than ${LONGEST_INPUT} characters together; none of the calls was made. Request less at once`;
    return { text, model, toolCalls: faulty(requested, fault) };
  }

  return {
    /** Whether the limit is reached, so that reading stops. */
    get full() {
      return inputSize > LONGEST_INPUT;
    },

    add,

    /** @throws IncompleteStream if the stream ended early or is empty */
    end(): ModelAnswer {
      if (inputSize > LONGEST_INPUT) return overflow();
      if (finish === undefined) throw new IncompleteStream('the stream ended early');
      const cutOff = cutOffReason(finish.finishReason);
      if (text === '' && calls.length === 0) {
        throw new IncompleteStream(`the answer is empty${cutOff ? `: ${cutOff}` : ''}`);
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
      // Half of a call's arguments can be valid JSON, so no call of a cut answer is trusted.
      const toolCalls = cutOff === undefined ? calls : faulty(calls, `${cutOff}; none of its calls was made`);
      return { ...answer, toolCalls };
    },
  };
}
