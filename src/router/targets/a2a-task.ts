/** Tasks and messages of A2A 1.0 (https://a2a-protocol.org, ProtoJSON form) and what they say came of a turn. Pure. */
import { isObject, textAt } from './readers/reading.ts';
import type { Outcome } from './target.ts';
import { boundedReply } from './verdict.ts';

export type Task = {
  id: string;
  contextId: string | undefined;
  state: string;
  words: string | undefined;
  said: string | undefined;
};

function textOf(parts: unknown): string | undefined {
  if (!Array.isArray(parts)) return undefined;
  const texts = parts.flatMap((part) => (isObject(part) ? (textAt(part, 'text') ?? []) : []));
  return texts.length === 0 ? undefined : texts.join('\n');
}

/** What the agent made, in the order in which it made it. */
function artifactsOf(task: Record<string, unknown>): string | undefined {
  if (!Array.isArray(task.artifacts)) return undefined;
  const texts = task.artifacts.flatMap((artifact) => (isObject(artifact) ? (textOf(artifact.parts) ?? []) : []));
  return texts.length === 0 ? undefined : texts.join('\n\n');
}

/** Reads a task: the answer to `GET /tasks/{id}`, or the `task` of the answer to a message. */
export function taskOf(value: unknown): Task | undefined {
  if (!isObject(value) || !isObject(value.status)) return undefined;
  const id = textAt(value, 'id');
  const state = textAt(value.status, 'state');
  if (id === undefined || state === undefined) return undefined;
  const said = isObject(value.status.message) ? textOf(value.status.message.parts) : undefined;
  return { id, contextId: textAt(value, 'contextId'), state: normalState(state), words: artifactsOf(value), said };
}

/** `TASK_STATE_INPUT_REQUIRED`, and `input-required` as older agents have it, become `input_required`. */
const normalState = (state: string) =>
  state
    .replace(/^TASK_STATE_/, '')
    .replaceAll('-', '_')
    .toLowerCase();

/** A direct answer without a task. */
export function answerOf(value: unknown): { contextId: string | undefined; text: string } | undefined {
  if (!isObject(value)) return undefined;
  const text = textOf(value.parts);
  return text === undefined ? undefined : { contextId: textAt(value, 'contextId'), text };
}

const UNFINISHED = new Set(['submitted', 'working', 'unspecified']);

/** What became of the turn; `undefined` while the task works on. */
export function outcomeOfTask(task: Task, context: string | undefined): Outcome | undefined {
  if (UNFINISHED.has(task.state)) return undefined;
  const session = task.contextId ?? context;
  const reply = boundedReply([task.words, task.said].filter((text) => text !== undefined).join('\n\n') || undefined);
  const because = task.said === undefined ? '' : `: ${task.said}`;
  switch (task.state) {
    case 'completed':
      return { result: 'done', session, reply };
    case 'input_required':
      return {
        result: 'failed',
        session,
        reply,
        error: `the agent asks for something, and nobody is there to answer${because}`,
      };
    case 'auth_required':
      return {
        result: 'failed',
        session,
        reply,
        error: `the agent asks for credentials, and nobody is there to give them${because}`,
      };
    case 'failed':
    case 'rejected':
    case 'canceled':
    case 'cancelled':
      return {
        result: 'failed',
        session,
        reply,
        error: `the agent's task was ${task.state === 'failed' ? 'not done: it failed' : task.state}${because}`,
      };
    default:
      return { result: 'unknown', session, error: `the agent's task is in a state that is not known: ${task.state}` };
  }
}
