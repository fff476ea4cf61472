/**
 * The five tools for `tools/list`, and the check of their arguments: each error has its code, and unknown fields are
 * ignored. Input and output schemas are in `src/wire/chronometric.ts`.
 */
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
  SESSION_TEXT_MAX_BYTES,
} from '../../wire/chronometric-vocabulary.ts';
import { ChronometricError } from '../chronometric-error.ts';

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

type ToolText = { title: string; description: string; input: z.ZodType; output: z.ZodType; readOnly: boolean };

/** Every prompt of a model has the descriptions: test/contract/tools limits their tokens. */
const TOOL_TEXTS: Readonly<Record<ChronometricTool, ToolText>> = {
  get_time_context: {
    title: 'Time context',
    description:
      "Returns the user's current time and how long they have worked. Call it when a conversation begins, and before " +
      'anything that depends on time (today, later, a plan, a deadline, a long task): you have no clock; do not guess. ' +
      'time_since_last_prompt null: no prompt is known. current_session_length and active_length (presence in it) null: ' +
      'no session is open; ask what they want to do and call mark_session_start. With state_unavailable that is unknown; ' +
      'do not ask. past_end_of_day true: they wanted to stop before now. Changes nothing.',
    input: emptyArgumentsSchema,
    output: timeContextSchema,
    readOnly: true,
  },
  mark_session_start: {
    title: 'Start a session',
    description:
      'Starts a work session. Call it when the user names their next task or changes to another one. The server finds ' +
      'the open session; there is at most one. A start closes it at the last sign of presence and returns it as ' +
      'auto_closed_prior_session: report it to the user. SESSION_ALREADY_OPEN: they want to end it themselves first, ' +
      'with mark_session_end.',
    input: sessionStartArgumentsSchema,
    output: sessionStartedSchema,
    readOnly: false,
  },
  mark_session_end: {
    title: 'End the session',
    description:
      'Ends the open session. Call it when the user has finished or stops for the day. Report intent, duration and ' +
      'active_duration (presence) without judging. NO_OPEN_SESSION: none is open; that is no reason to start one.',
    input: sessionEndArgumentsSchema,
    output: sessionEndedSchema,
    readOnly: false,
  },
  request_break_if_needed: {
    title: 'Is a break due?',
    description:
      'Returns whether to offer the user a break now. Call it between steps of long work. null, the usual result: no ' +
      'break is due; do not mention breaks. Otherwise offer suggested_action once and quote prior_intent unchanged. ' +
      'level: none and gentle in passing, nudge as a question, hard before everything else. The decision is theirs; do ' +
      'not lecture. elapsed is the length of the session; active_elapsed decides: it omits sleep and absence, and ' +
      'restarts after a break of five minutes. Changes nothing.',
    input: breakArgumentsSchema,
    output: breakAnswerSchema,
    readOnly: true,
  },
  idle_status: {
    title: 'Idle status',
    description:
      'Returns whether the user is at the computer. Call it before you interrupt them, or when they have not answered ' +
      'for long. hyperfocus_elsewhere: busy in other windows; a reminder may help. distraction_or_break: away; wait. ' +
      'unknown: assume nothing. consent_granted false: they have not allowed it; do not press them. Stores nothing.',
    input: emptyArgumentsSchema,
    output: idleStatusSchema,
    readOnly: true,
  },
};

type Member = {
  type?: string;
  enum?: unknown[];
  description?: string;
  anyOf?: Member[];
  properties?: Record<string, Member>;
  required?: string[];
  additionalProperties?: boolean;
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

function wholeSchema(schema: z.ZodType): Member {
  // The input of the output schema: readers must accept fields that are added later.
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return singleTyped(rest) as Member;
}

/** The complete schemas of a tool, for publication. */
export function publishedSchemas(name: ChronometricTool): Readonly<Record<'input' | 'output', JsonSchema>> {
  const { input, output } = TOOL_TEXTS[name];
  return { input: wholeSchema(input), output: wholeSchema(output) };
}

/** The arguments, which are flat, without bounds and patterns: some providers refuse these, and the server checks them. */
function shownArguments({ properties = {}, ...object }: Member): JsonSchema {
  const shown = Object.entries(properties).map(([name, { type, description }]) => [name, { type, description }]);
  return { ...object, properties: Object.fromEntries(shown) };
}

/** A single type does not describe a member that can be null. An object that can be null is listed without a type. */
const isListed = ({ anyOf }: Member) => anyOf === undefined || anyOf.some(({ properties }) => properties);

/**
 * Names, types and choices. Of the texts, those of members that can be absent or null: the description of the tool
 * explains the others.
 */
function shownAnswer({ type, enum: choices, anyOf, description, ...object }: Member, isCertain = true): JsonSchema {
  const { properties, required = [] } = anyOf?.find((each) => each.properties) ?? object;
  const members = Object.entries(properties ?? {}).filter(([, member]) => isListed(member));
  const shown = members.map(([name, member]) => [name, shownAnswer(member, required.includes(name) && !member.anyOf)]);
  return {
    ...(type !== undefined && { type }),
    ...(choices && { enum: choices }),
    ...(!isCertain && { description }),
    ...(properties && { properties: Object.fromEntries(shown) }),
  };
}

function definitionOf(name: ChronometricTool): ToolDefinition {
  const { title, description, input, output, readOnly } = TOOL_TEXTS[name];
  return {
    name,
    title,
    description,
    inputSchema: shownArguments(wholeSchema(input)),
    outputSchema: shownAnswer(wholeSchema(output)),
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

/** An argument that the published schema rejects. The set of error codes is closed, so the result is the protocol's own error. */
export class InvalidArgument extends Error {
  override readonly name = 'InvalidArgument';
}

export type Arguments = Readonly<Record<string, unknown>>;

/** The kind of a received value without its text: an argument may be private. */
function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Some clients send every argument of a tool: `null` and empty text are arguments that are not given. */
const givenOrNot = (value: unknown): unknown => (value === null || value === '' ? undefined : value);

function refuseLong(code: 'INTENT_TOO_LONG' | 'SUMMARY_TOO_LONG', name: string, text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes <= SESSION_TEXT_MAX_BYTES) return;
  const message = `${name} must have at most ${SESSION_TEXT_MAX_BYTES} bytes of UTF-8 (it has ${bytes}); shorten it`;
  throw new ChronometricError(code, message);
}

/**
 * @returns the intent unchanged, spaces included
 * @throws ChronometricError `INTENT_REQUIRED` or `INTENT_TOO_LONG`
 */
export function readIntent({ intent }: Arguments): string {
  if (typeof intent !== 'string')
    throw new ChronometricError(
      'INTENT_REQUIRED',
      `intent must be a text with the purpose of the session (got ${kindOf(intent)})`,
    );
  if (intent.trim() === '')
    throw new ChronometricError('INTENT_REQUIRED', 'intent must have text; it is empty or only white space');
  if (!intent.isWellFormed())
    throw new ChronometricError(
      'INTENT_REQUIRED',
      'intent must be well-formed Unicode; it contains half of a surrogate pair',
    );
  refuseLong('INTENT_TOO_LONG', 'intent', intent);
  return intent;
}

/**
 * @returns the summary unchanged; `undefined` if it is not given
 * @throws ChronometricError `SUMMARY_TOO_LONG`
 * @throws InvalidArgument for another type
 */
export function readSummary(args: Arguments): string | undefined {
  const summary = givenOrNot(args.summary);
  if (summary === undefined) return undefined;
  if (typeof summary !== 'string')
    throw new InvalidArgument(`summary must be text or omitted (got ${kindOf(summary)})`);
  if (!summary.isWellFormed())
    throw new InvalidArgument('summary must be well-formed Unicode; it contains half of a surrogate pair');
  refuseLong('SUMMARY_TOO_LONG', 'summary', summary);
  return summary;
}

/** A number in digits, as some models write it. */
const DIGITS = /^-?\d+(\.\d+)?$/;

/**
 * Also reads the number from a text: `"45"`.
 *
 * @throws ChronometricError `INVALID_THRESHOLD` for anything but an integer of at least 1
 */
export function readThreshold(args: Arguments): number {
  const given = givenOrNot(args.threshold_minutes);
  const threshold = typeof given === 'string' && DIGITS.test(given) ? Number(given) : given;
  if (typeof threshold === 'number' && Number.isSafeInteger(threshold) && threshold >= 1) return threshold;
  const got = typeof threshold === 'number' ? String(threshold) : kindOf(threshold);
  throw new ChronometricError('INVALID_THRESHOLD', `threshold_minutes must be a whole number, 1 or more (got ${got})`);
}
