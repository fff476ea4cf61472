/**
 * What an alarm may wait for besides time: a check before its wake, events, the turn of another alarm, the absence of an
 * event. Also the command that may take the place of its turn (docs/guides/conditions.md).
 */
import { z } from 'zod';
import { durationSchema } from './iso-duration.ts';
import { utf8Bytes } from './text.ts';

/** Largest body of one event, and of the events of one wake together: a prompt with them is an argument of a program. */
export const EVENT_MAX_BYTES = 64 * 1024;
export const BATCH_MAX_BYTES = 64 * 1024;
/** Events of one wake: by default when they are collected, and at most. */
export const BATCH_DEFAULT = 100;
export const BATCH_MAX = 1000;

/** Time limit of a command, seconds: by default, and at most. */
export const COMMAND_SECONDS = 30;
export const COMMAND_SECONDS_MAX = 300;
/** How much of a command's output, or of the body of a checked address, is kept. */
export const OUTPUT_MAX_BYTES = 64 * 1024;
/** Largest check, and largest command: every wake carries them. */
const CHECK_MAX_BYTES = 16 * 1024;
const ARGV_MAX_BYTES = 16 * 1024;
/** How much of the value of a check is stored. */
export const VALUE_MAX_BYTES = 1024;

/** Where the program of an alarm looks at a source that cannot report by itself, at the shortest and by default. */
export const LOOK_EVERY_LEAST = 'PT1S';
export const LOOK_EVERY = 'PT5S';

const text = (most: number) => z.string().min(1).max(most);

/** A pointer of RFC 6901 into a JSON document. The empty one is the document itself. */
const pointerSchema = z
  .string()
  .max(500)
  .regex(/^(?:\/(?:[^~/]|~[01])*)*$/, 'must be a JSON Pointer of RFC 6901, such as /pull_request/state');

const scalarSchema = z.union([z.string().max(1000), z.number(), z.boolean(), z.null()]);

const argvSchema = z
  .array(z.string().max(4096))
  .min(1, 'must have the program and its arguments, each as one text')
  .max(64)
  .refine(([program = '']) => program.trim() !== '', 'must begin with a program')
  .refine((words) => !words.some((word) => word.includes('\0')), 'must not contain NUL characters')
  .refine((words) => utf8Bytes(JSON.stringify(words)) <= ARGV_MAX_BYTES, {
    error: `must be at most ${ARGV_MAX_BYTES} bytes of JSON`,
  });

const secondsSchema = z.int().min(1).max(COMMAND_SECONDS_MAX);

/** A path on the agent's machine. */
const pathSchema = text(4096).refine((path) => !path.includes('\0'), 'must not contain NUL characters');

/** The client sets these headers. */
const OF_CONNECTIONS = new Set([
  ...['host', 'connection', 'keep-alive', 'content-length', 'transfer-encoding', 'upgrade', 'expect', 'te', 'trailer'],
  ...['accept-encoding', 'proxy-authorization', 'proxy-connection'],
]);

const httpCheckSchema = z
  .strictObject({
    url: text(2000).refine((url) => /^https?:\/\//i.test(url) && URL.canParse(url), 'must be an http or https address'),
    method: z.enum(['GET', 'HEAD']).optional(),
    headers: z
      .record(
        z
          .string()
          .regex(/^[\w-]{1,100}$/)
          .refine((name) => !OF_CONNECTIONS.has(name.toLowerCase()), 'must not be a header of the connection'),
        z
          .string()
          .max(4096)
          .regex(/^[\t\x20-\x7e\xa0-\xff]*$/, 'must be text that a header can have'),
      )
      .optional(),
    /** It says yes when the answer has this status. By default, any from 200 to 299. */
    status: z.int().min(100).max(599).optional(),
    /** It says yes when the ETag, or without one the body, differs from that of the last wake. */
    etag: z.literal('changed').optional(),
    /** A value within the body, as JSON. */
    pointer: pointerSchema.optional(),
    /** It says yes when the value is this one. */
    equals: scalarSchema.optional(),
    /** It says yes when the value differs from that of the last wake. */
    changed: z.literal(true).optional(),
  })
  .superRefine(({ method, etag, pointer, equals, changed }, context) => {
    const refuse = (name: string, message: string) => context.addIssue({ code: 'custom', path: [name], message });
    if (etag !== undefined && changed === true) refuse('changed', 'and etag exclude each other; omit one');
    if (method === 'HEAD' && pointer !== undefined) refuse('pointer', 'needs a body, which HEAD has not; omit method');
    const needs = equals !== undefined ? 'equals' : changed === true ? 'changed' : undefined;
    if (needs !== undefined && pointer === undefined) refuse(needs, 'goes only with pointer, which names the value');
    if (pointer !== undefined && needs === undefined)
      refuse('pointer', 'needs equals or changed, which judges the value');
    if (equals !== undefined && changed === true) refuse('changed', 'and equals exclude each other; omit one');
  });

const commandCheckSchema = z.strictObject({
  argv: argvSchema,
  timeout_seconds: secondsSchema.optional(),
  network: z.boolean().optional(),
  /** Variables of the agent's environment that the command gets. */
  env: z
    .array(z.string().regex(/^[A-Za-z_]\w{0,99}$/, 'must be names of variables'))
    .max(32)
    .optional(),
});

const KINDS_OF_CHECK = ['http', 'command', 'path'] as const;

export const checkSchema = z
  .strictObject({
    http: httpCheckSchema.optional(),
    command: commandCheckSchema.optional(),
    path: z.strictObject({ path: pathSchema }).optional(),
    /** What happens when it cannot be decided: `wake` by default. */
    on_error: z.enum(['wake', 'skip']).optional(),
    /** After so many skipped fires in a row, the next one wakes. */
    max_skips: z.int().min(1).max(1_000_000).optional(),
    /** A fire wakes when the last wake is so long ago. */
    wake_at_least_every: durationSchema('PT1S').optional(),
  })
  .refine((check) => KINDS_OF_CHECK.filter((kind) => check[kind] !== undefined).length === 1, {
    error: 'must have exactly one of http, command and path',
  })
  .refine((check) => utf8Bytes(JSON.stringify(check)) <= CHECK_MAX_BYTES, {
    error: `must be at most ${CHECK_MAX_BYTES} bytes of JSON`,
  });
export type Check = z.output<typeof checkSchema>;

/** What happened to an alarm's turn. */
export const CHAIN_OUTCOMES = ['finished', 'failed', 'missed', 'any'] as const;
export type ChainOutcome = (typeof CHAIN_OUTCOMES)[number];

/** Another alarm of the same owner. */
const alarmId = z
  .string()
  .regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/, 'must be the id of an alarm');

export const afterSchema = z.strictObject({
  alarm: alarmId,
  /** By default `finished`. */
  on: z.enum(CHAIN_OUTCOMES).optional(),
  delay_seconds: z
    .number()
    .min(0)
    .max(10 * 366 * 24 * 3600)
    .optional(),
});
export type After = z.output<typeof afterSchema>;

const filterSchema = z.strictObject({ pointer: pointerSchema, equals: scalarSchema.optional() });

/** How the sender of a webhook is verified: Standard Webhooks, GitHub's signature, or a secret in the path. */
export const HOOK_SCHEMES = ['standard', 'github', 'path'] as const;
export type HookScheme = (typeof HOOK_SCHEMES)[number];

/** The first segment of addresses of alarms, on chronosd and on the router's public listener. */
export const HOOKS_ROOT = '/hooks/';

/** The address of an alarm that takes webhooks: a path of the public listener, after its base where that is known. */
export const hookViewSchema = z.object({ address: z.string(), verify: z.enum(HOOK_SCHEMES) });
export type HookView = z.infer<typeof hookViewSchema>;

const sharedOfEvents = {
  /** Only events with this value, or with any value where `equals` is absent, count. */
  filter: filterSchema.optional(),
  /** The wake waits until no event has come for so long. */
  quiet_for: durationSchema('PT1S', 'P1D').optional(),
  /** Two wakes are at least so far apart; one carries all events between. */
  at_most_every: durationSchema('PT1S', 'P31D').optional(),
  batch_up_to: z.int().min(1).max(BATCH_MAX).optional(),
  /** Without an event for so long, the alarm fires and says that none came. */
  deadline: durationSchema('PT1S').optional(),
  /** `once`, the default: the alarm ends with its first wake. */
  repeat: z.enum(['once', 'always']).optional(),
} as const;

const lookEvery = { look_every: durationSchema(LOOK_EVERY_LEAST, 'P1D').optional() };

export const eventSchema = z.discriminatedUnion('source', [
  z.strictObject({
    source: z.literal('webhook'),
    verify: z.enum(HOOK_SCHEMES).optional(),
    /** The secret that the sender signs with; by default chronosd makes one and the answer shows it once. */
    secret: z.string().min(16, 'must have at least 16 characters').max(200).optional(),
    ...sharedOfEvents,
  }),
  z.strictObject({ source: z.literal('file'), path: pathSchema, ...lookEvery, ...sharedOfEvents }),
  z.strictObject({ source: z.literal('process'), pid: z.int().min(2), ...lookEvery, ...sharedOfEvents }),
  z.strictObject({
    source: z.literal('alarm'),
    alarm: alarmId,
    on: z.enum(CHAIN_OUTCOMES).optional(),
    ...sharedOfEvents,
  }),
  z.strictObject({
    source: z.literal('mcp'),
    /** A server in the agent's manifest, and the name of its event. */
    server: text(128),
    name: text(200),
    arguments: z
      .record(z.string().max(100), z.unknown())
      .refine((value) => utf8Bytes(JSON.stringify(value)) <= 4096, 'must be at most 4096 bytes of JSON')
      .optional(),
    delivery: z.enum(['poll', 'webhook']).optional(),
    ...lookEvery,
    ...sharedOfEvents,
  }),
]);
export type EventSource = z.output<typeof eventSchema>;

/** An event is expected at least so often; the alarm fires when none has come after `grace` more. */
export const expectSchema = z.strictObject({
  every: durationSchema('PT1S'),
  grace: durationSchema('PT0S').optional(),
});
export type Expect = z.output<typeof expectSchema>;

/** A command in the sandbox that takes the place of the turn; its output is the result. */
export const runSchema = z.strictObject({
  argv: argvSchema,
  /** It is ended after so long; by default after 5 minutes. */
  timeout_seconds: z.int().min(1).max(86_400).optional(),
});
/** A command with what chronosd knows of it: whether a person set it. */
export const runTermSchema = runSchema.extend({ by_person: z.literal(true).optional() });
export type Run = z.output<typeof runTermSchema>;

/** The schemas of the fields of type `object`, by field. */
export const OBJECT_SCHEMAS = {
  check: checkSchema,
  event: eventSchema,
  after: afterSchema,
  expect: expectSchema,
  run: runSchema,
} as const;
export type ObjectField = keyof typeof OBJECT_SCHEMAS;
export type ObjectValue<N extends ObjectField> = z.output<(typeof OBJECT_SCHEMAS)[N]>;

/** What chronosd remembers of an alarm's check. Instants are epoch milliseconds. */
export type CheckState = {
  /** The value at the last accepted wake. */
  readonly value?: string;
  readonly wokenAt?: number;
  /** Fires skipped since then. */
  readonly skips?: number;
  /** A person set the check. */
  readonly byPerson?: true;
  /** The id of the client that set it. */
  readonly byClient?: string;
};

/** What chronosd remembers of an alarm's events. Instants are epoch milliseconds, events count from 1. */
export type EventState = {
  /** The latest event, and the first one that no delivered wake has carried. */
  readonly last: number;
  readonly next: number;
  /** About how many bytes the waiting events have. */
  readonly bytes: number;
  /**
   * The pending occurrence that carries the waiting events up to `to`, by its instant. Fixed: a try may have carried
   * them, so that no event may be added.
   */
  readonly fire?: { readonly at: number; readonly to: number; readonly isFixed?: true };
  /** The latest `fire.at` so far: no later occurrence has an instant up to it. */
  readonly lastFire?: number;
  /** When the first waiting event came. */
  readonly since?: number;
  /** When the latest event came, or the last deadline passed: the next one counts from there. */
  readonly lastAt?: number;
  /** How many events have come that no wake carries, because they are only expected. */
  readonly met?: number;
  /** When the last wake with events was delivered. */
  readonly wokenAt?: number;
  /** No further event can come: the alarm ends with the wake of the last one. */
  readonly ends?: true;
  /** What a source that is looked at had shown: a digest, a cursor. */
  readonly seen?: string;
  /** Looks that have failed since the last one that has not. */
  readonly failedLooks?: number;
};

/** One event, as a wake carries it. `data` is JSON source text. */
export type AlarmEvent = {
  /** Equal ids of one alarm are one event. */
  readonly id: string;
  readonly receivedAt: number;
  readonly data: string;
  /** Who caused it (`storedCause`); by default, what the alarm takes its events from. */
  readonly cause?: string;
};
