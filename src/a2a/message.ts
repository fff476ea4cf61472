/** Checks the message of a caller, and compares two messages with the same id. */
import { createHash } from 'node:crypto';
import { Message } from '@a2a-js/sdk';
import { ContentTypeNotSupportedError, RequestMalformedError } from '@a2a-js/sdk/errors';
import type { StoredTask } from './task.ts';

const TEXT_CHARACTERS = 48 * 1024;
const ID_CHARACTERS = 128;
export const VISIBLE = /^[\x21-\x7e]+$/;

export const malformed = (message: string) => new RequestMalformedError(message);

/** @throws RequestMalformedError */
export function checkedId(name: string, value: string): string {
  if (value.length <= ID_CHARACTERS && VISIBLE.test(value)) return value;
  throw malformed(`${name} must be 1 to ${ID_CHARACTERS} visible ASCII characters`);
}

/** The text parts of a message. */
export function textOf({ parts }: Pick<Message, 'parts'>): string {
  return parts.flatMap(({ content }) => (content?.$case === 'text' ? content.value : [])).join('\n\n');
}

/** @throws A2AError for a message that cannot become a task */
export function checkedMessage(message: Message | undefined): Message {
  if (message === undefined || message.parts.length === 0) throw malformed('message.parts must have at least one part');
  checkedId('message.messageId', message.messageId);
  for (const { content } of message.parts) {
    if (content?.$case === 'text' || content?.$case === 'data') continue;
    throw new ContentTypeNotSupportedError('message.parts must be text or data; files are not supported');
  }
  const text = textOf(message);
  if (text.length > TEXT_CHARACTERS)
    throw malformed(`the text of message.parts must have at most ${TEXT_CHARACTERS} characters in total`);
  if (!text.isWellFormed()) throw malformed('message.parts must be well-formed Unicode');
  return message;
}

/** The payload of the turn. @param data source texts of the message's data parts */
export const payloadOf = (data: readonly string[]) => (data.length < 2 ? data[0] : `[${data.join(',')}]`);

function fingerprintOf(message: Message, payload: string | undefined): string {
  const { contextId: _, taskId: __, ...rest } = Message.toJSON(message) as Record<string, unknown>;
  return createHash('sha256')
    .update(JSON.stringify([rest, payload ?? null]))
    .digest('hex');
}

/**
 * The task of a repeated message.
 *
 * @throws RequestMalformedError if the id belongs to a different message
 */
export function sameMessage(known: StoredTask, message: Message, payload: string | undefined): StoredTask {
  const stored = Message.fromJSON(JSON.parse(known.message));
  if (fingerprintOf(stored, known.payload) === fingerprintOf(message, payload)) return known;
  throw malformed('message.messageId was used for another message; give each message an id of its own');
}
