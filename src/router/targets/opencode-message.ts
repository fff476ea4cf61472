/** Messages of an OpenCode session: the id of ours, and what the ones that answer it say. Pure. */
import { createHash } from 'node:crypto';
import { isObject, textAt } from './readers/reading.ts';
import type { Outcome } from './target.ts';
import { boundedReply } from './verdict.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_CHARACTERS = 14;

/**
 * The message id of a wake: always the same for a fire. It has the form of the server's own ids, whose first 12 hex digits count
 * time in 4096ths of a millisecond (modulo 2^48), for older servers read the order of messages from it.
 *
 * @param fireId `<alarm id>@<due, epoch milliseconds>`
 */
export function opencodeMessageId(fireId: string): string {
  const due = BigInt(fireId.slice(fireId.lastIndexOf('@') + 1));
  const time = ((due * 0x1000n) & 0xffff_ffff_ffffn).toString(16).padStart(12, '0');
  let digest = BigInt(`0x${createHash('sha256').update(fireId).digest('hex')}`);
  let rest = '';
  while (rest.length < RANDOM_CHARACTERS) {
    rest += BASE62[Number(digest % 62n)];
    digest /= 62n;
  }
  return `msg_${time}${rest}`;
}

/** A message of `GET /session/{id}/message`, or the answer to a prompt: `{info, parts}`. */
type Message = { info: Record<string, unknown>; parts: unknown[] };

export function messageOf(value: unknown): Message | undefined {
  if (!isObject(value) || !isObject(value.info)) return undefined;
  return { info: value.info, parts: Array.isArray(value.parts) ? value.parts : [] };
}

const replyOf = ({ parts }: Message): string =>
  parts
    .filter((part) => isObject(part) && part.type === 'text' && part.synthetic !== true)
    .map((part) => (isObject(part) && textAt(part, 'text')) || '')
    .filter((text) => text !== '')
    .join('\n\n');

function errorOf({ info }: Message): string | undefined {
  if (!isObject(info.error)) return undefined;
  const name = textAt(info.error, 'name') ?? 'an error';
  const said = isObject(info.error.data) ? textAt(info.error.data, 'message') : undefined;
  return said === undefined ? name : `${name}: ${said}`;
}

/** What an assistant's message says came of the turn. */
export function outcomeOf(message: Message, session: string): Outcome {
  const error = errorOf(message);
  const reply = boundedReply(replyOf(message) || undefined);
  if (error !== undefined) return { result: 'failed', session, reply, error: `opencode reports ${error}` };
  return { result: 'done', session, reply };
}

/** Of the messages of a session: ours, and the last that answers it; `over`: it says that no other will follow. */
export function findTurn(
  list: readonly unknown[],
  id: string,
): { arrived: boolean; answer: Message | undefined; over: boolean } {
  const messages = list.flatMap((entry) => messageOf(entry) ?? []);
  const arrived = messages.some(({ info }) => info.id === id);
  const answer = messages.findLast(({ info }) => info.role === 'assistant' && info.parentID === id);
  const completed = isObject(answer?.info.time) && answer.info.time.completed !== undefined;
  const over =
    answer !== undefined && (errorOf(answer) !== undefined || (completed && answer.info.finish !== 'tool-calls'));
  return { arrived, answer, over };
}
