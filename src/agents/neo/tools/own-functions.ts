/** The two functions of the surface that no server serves: `core_execute` and `memory_recall`. */

import type { ToolSchema } from '../../../kit/model/model.ts';
import { isObject } from '../../../wire/json.ts';
import { utf8Bytes } from '../../../wire/text.ts';
import { CORE_EXECUTE } from '../../../wire/tool-surface.ts';

export const MEMORY_RECALL = 'memory_recall';

/** The longest description of a task; escaped it still fits into a request of 256 KiB. */
const INTENT_MAX_BYTES = 32 * 1024;
const QUERY_MAX_CHARACTERS = 4096;

export const CORE_EXECUTE_SCHEMA: ToolSchema = {
  name: CORE_EXECUTE,
  description:
    'Hand a task that moves money, commits the user to something, or needs rigour over to the secure executor. It compiles the task into a plan, asks the user to approve every step that cannot be taken back, carries the plan out and gives back the verifiable outcome. It is the only way to do such things. It can take minutes, because a person may have to answer. Hand a task over once: an answer that says it is pending means that it is still under way; where it says that you will be woken, end your turn.',
  parameters: {
    type: 'object',
    properties: {
      intent: {
        type: 'string',
        description:
          'A clear, self-contained description of the task: what is to be done, to what or whom, with every amount, address, id and limit written out as you were given it. Of this conversation the executor sees what people, alarms and tools said, for comparison, and nothing that you said.',
      },
    },
    required: ['intent'],
    additionalProperties: false,
  },
};

export const MEMORY_RECALL_SCHEMA: ToolSchema = {
  name: MEMORY_RECALL,
  description:
    'Search your own durable memory for what you know: facts, events, preferences, goals and patterns from earlier conversations, and the profile of the user. What fits this turn is shown to you anyway; use this to look for something on purpose, such as when the user asks what you remember.',
  parameters: {
    type: 'object',
    properties: {
      query: {
        type: 'string',
        description: 'What to look for, in a few words. Without it you get the profile and what matters most.',
      },
    },
    additionalProperties: false,
  },
};

/** The names that servers cannot use. */
export const OWN_FUNCTIONS: ReadonlySet<string> = new Set([CORE_EXECUTE, MEMORY_RECALL]);

/** The arguments of a function, or a sentence for the model about their error. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string };

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}

export function parseArguments(name: string, args: unknown): Parsed<Record<string, unknown>> {
  // Models omit the arguments where there are none.
  if (args === undefined || args === null) return { value: {} };
  if (isObject(args)) return { value: args };
  return { problem: `the arguments of ${name} must be a JSON object (got ${kindOf(args)})` };
}

function unknownMember(name: string, args: Record<string, unknown>, known: string): string | undefined {
  const other = Object.keys(args).find((key) => key !== known);
  return other === undefined
    ? undefined
    : `${name} takes only ${known} (got ${JSON.stringify(other.slice(0, 80))} as well)`;
}

/** The task in the arguments of `core_execute`. */
export function parseIntent(args: unknown): Parsed<string> {
  const parsed = parseArguments(CORE_EXECUTE, args);
  if ('problem' in parsed) return parsed;
  const extra = unknownMember(CORE_EXECUTE, parsed.value, 'intent');
  if (extra !== undefined) return { problem: extra };
  const { intent } = parsed.value;
  if (typeof intent !== 'string') return { problem: `intent must be a string (got ${kindOf(intent)})` };
  if (intent.trim() === '') return { problem: 'intent must describe the task; it is empty' };
  if (!intent.isWellFormed())
    return { problem: 'intent must be well-formed Unicode; it holds half of a surrogate pair' };
  const bytes = utf8Bytes(intent);
  if (bytes > INTENT_MAX_BYTES) return { problem: `intent must be at most ${INTENT_MAX_BYTES} bytes, it has ${bytes}` };
  return { value: intent };
}

/** The query in the arguments of `memory_recall`; an empty one counts as none. */
export function parseQuery(args: unknown): Parsed<string | undefined> {
  const parsed = parseArguments(MEMORY_RECALL, args);
  if ('problem' in parsed) return parsed;
  const extra = unknownMember(MEMORY_RECALL, parsed.value, 'query');
  if (extra !== undefined) return { problem: extra };
  const { query } = parsed.value;
  if (query === undefined || query === null) return { value: undefined };
  if (typeof query !== 'string') return { problem: `query must be a string (got ${kindOf(query)})` };
  if (query.length > QUERY_MAX_CHARACTERS)
    return { problem: `query must have at most ${QUERY_MAX_CHARACTERS} characters, it has ${query.length}` };
  const trimmed = query.toWellFormed().trim();
  return { value: trimmed === '' ? undefined : trimmed };
}
