/** The five tools for `tools/list`. Their input and output schemas are in `src/wire/chronometric.ts`. */
import { z } from 'zod';
import {
  breakAnswerSchema,
  breakArgumentsSchema,
  emptyArgumentsSchema,
  idleStatusSchema,
  sessionEndArgumentsSchema,
  sessionEndedSchema,
  sessionStartArgumentsSchema,
  sessionStartedSchema,
  timeContextSchema,
} from '../../wire/chronometric.ts';
import {
  CHRONOMETRIC_TOOL_VERSIONS,
  CHRONOMETRIC_TOOLS,
  type ChronometricTool,
} from '../../wire/chronometric-words.ts';

type JsonSchema = Readonly<Record<string, unknown>>;

export type ToolDefinition = {
  readonly name: ChronometricTool;
  readonly title: string;
  readonly description: string;
  /** Strict, so that a model makes no mistake; the server itself ignores unknown fields. */
  readonly inputSchema: JsonSchema;
  /** Open for fields of later v0.1.x versions. */
  readonly outputSchema: JsonSchema;
  /** The version of this tool alone. */
  readonly _meta: { readonly 'reveille/version': string };
  readonly annotations: {
    readonly title: string;
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
};

type Told = { title: string; description: string; takes: z.ZodType; answers: z.ZodType; readOnly: boolean };

const TOLD: Readonly<Record<ChronometricTool, Told>> = {
  get_time_context: {
    title: 'Time context',
    description:
      'Returns the current time for the user, and how long they have been working. Call it when a conversation begins, and ' +
      'before anything that depends on time: words such as today, tonight or later, a plan, a deadline, the start of a long task. ' +
      'You have no clock of your own; do not guess. time_since_last_prompt is null when no prompt is known. ' +
      'current_session_length runs from the start of the session, active_length is how long they were there of it; both are null when no ' +
      'session is open: then ask what they want to do and call mark_session_start, unless state_unavailable says that it is unknown. ' +
      'past_end_of_day true means that they wanted to have stopped by now. Changes nothing; call it as often as you like.',
    takes: emptyArgumentsSchema,
    answers: timeContextSchema,
    readOnly: true,
  },
  mark_session_start: {
    title: 'Start a session',
    description:
      'Starts a work session with the purpose that the user states. Call it when they say what they are about to do, or start ' +
      'something else. Give intent in their own words: it is stored unchanged and quoted to them later. There is one session at a ' +
      'time, and the server knows which: you need not keep session_id. A session that was still open is closed at the moment it was ' +
      'last seen and returned in auto_closed_prior_session: report it to them. SESSION_ALREADY_OPEN means that they want to end it ' +
      'themselves first, with mark_session_end.',
    takes: sessionStartArgumentsSchema,
    answers: sessionStartedSchema,
    readOnly: false,
  },
  mark_session_end: {
    title: 'End the session',
    description:
      'Ends the open session. Call it when the user has finished or stops for the day; summary is a short outcome of the ' +
      'intent. Returns its length (duration) and the time of presence in it (active_duration): report both with the ' +
      'intent, without judging. NO_OPEN_SESSION means that there was none to end, which is no reason to start one.',
    takes: sessionEndArgumentsSchema,
    answers: sessionEndedSchema,
    readOnly: false,
  },
  request_break_if_needed: {
    title: 'Is a break due?',
    description:
      'Returns whether to offer the user a break now. Call it between steps of long work. result is null when no break is ' +
      'due, which is the usual answer: do not mention breaks then. Otherwise offer suggested_action once, as urgently as level ' +
      'says (none, gentle: in passing; nudge: as a question; hard: before anything else), and quote prior_intent unchanged; it is their ' +
      'decision, do not lecture. elapsed is the length of the session. The decision uses active_elapsed: sleep and ' +
      'absence do not count, and a break of five minutes restarts that count. Changes nothing.',
    takes: breakArgumentsSchema,
    answers: breakAnswerSchema,
    readOnly: true,
  },
  idle_status: {
    title: 'Idle status',
    description:
      'Returns whether the user is at the computer. Call it before you interrupt them, or when they have not answered for long. ' +
      'hyperfocus_elsewhere: busy in other windows, so a reminder may help; distraction_or_break: away, so wait; unknown: nothing is ' +
      'known, so assume nothing. consent_granted false is an ordinary answer: they have not allowed it; do not press them. ' +
      'It may take a few seconds. Changes nothing and keeps nothing.',
    takes: emptyArgumentsSchema,
    answers: idleStatusSchema,
    readOnly: true,
  },
};

/** A list of types becomes alternatives: some clients support schemas with a single type only. */
function singleTyped(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(singleTyped);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) =>
    name === 'type' && Array.isArray(member)
      ? ['anyOf', member.map((type: unknown) => ({ type }))]
      : [name, singleTyped(member)],
  );
  return Object.fromEntries(members);
}

function jsonSchema(schema: z.ZodType): JsonSchema {
  // The input of the output schema: readers must accept fields that are added later.
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return singleTyped(rest) as JsonSchema;
}

function definitionOf(name: ChronometricTool): ToolDefinition {
  const { title, description, takes, answers, readOnly } = TOLD[name];
  return {
    name,
    title,
    description,
    inputSchema: jsonSchema(takes),
    outputSchema: jsonSchema(answers),
    _meta: { 'reveille/version': CHRONOMETRIC_TOOL_VERSIONS[name] },
    annotations: {
      title,
      readOnlyHint: readOnly,
      destructiveHint: false,
      idempotentHint: readOnly,
      openWorldHint: false,
    },
  };
}

let definitions: readonly ToolDefinition[] | undefined;

/** Created on the first call. */
export function toolDefinitions(): readonly ToolDefinition[] {
  definitions ??= CHRONOMETRIC_TOOLS.map(definitionOf);
  return definitions;
}
