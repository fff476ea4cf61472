/** A step of the journal as the messages that a model is shown of it. Pure. */
import type { ModelMessage } from '../../kit/model/model.ts';
import type { ToolAnswer } from '../tools/surface.ts';
import { wordsOfAnswer } from './call-events.ts';
import type { JournalledCall, JournalledStep } from './journal.ts';

/** How many calls one answer may make. */
export const CALLS_PER_STEP = 64;

type Finished = Required<JournalledCall>;

/** What the model is told of a call that was under way when Neo stopped. */
export const OUTCOME_UNKNOWN: ToolAnswer = {
  isError: true,
  content: [
    {
      type: 'text',
      text: 'outcome unknown: the program around you was stopped while this call was under way, so it may or may not have taken effect. It has not been made again. Find out what is the case before you repeat it.',
    },
  ],
};

function resultMessage({ call, answer }: Finished): ModelMessage {
  const images = answer.content.filter((part) => part.type === 'image');
  return {
    role: 'tool',
    callId: call.id,
    name: call.name,
    content: wordsOfAnswer(answer).toWellFormed() || '(the call returned nothing)',
    isError: answer.isError,
    ...(images.length === 0 ? {} : { images: images.map(({ mediaType, data }) => ({ mediaType, data })) }),
  };
}

function leftOutNote(count: number): ModelMessage {
  const calls = count === 1 ? '1 more call of that answer was' : `${count} more calls of that answer were`;
  return { role: 'user', content: `(The program: ${calls} not made; an answer can make ${CALLS_PER_STEP} at most.)` };
}

/** The messages of a step whose calls have all ended: the answer, then the results in the order of the calls. */
export function messagesOfStep({
  said,
  leftOut,
  calls,
}: JournalledStep & { calls: readonly Finished[] }): ModelMessage[] {
  return [
    { role: 'assistant', content: said, toolCalls: calls.map(({ call }) => call) },
    ...calls.map(resultMessage),
    ...(leftOut > 0 ? [leftOutNote(leftOut)] : []),
  ];
}
