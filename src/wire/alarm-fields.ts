/**
 * The table of an alarm's fields. The schemas of `alarm.ts`, the domain's type, the columns of both stores, the mapping
 * between them, the flags of the command line and the form of the console follow from it.
 * Data only: the command line reads it at every start, so it imports nothing but types.
 */
import type { CheckState, EventState, ObjectField, ObjectValue } from './conditions.ts';

export const WAKE_MESSAGE_MAX_BYTES = 64 * 1024;
export const PAYLOAD_MAX_BYTES = 64 * 1024;
export const DELAY_MAX_SECONDS = 10 * 366 * 24 * 3600;

export const ALARM_KINDS = ['once', 'cron', 'rrule', 'event'] as const;
export const ALARM_STATUSES = ['active', 'paused', 'fired', 'cancelled', 'failed'] as const;

/** Which overdue occurrences of a series fire: the latest, all, or none. */
export const CATCH_UPS = ['latest', 'all', 'none'] as const;
/** What happens to an occurrence while the turn of an earlier one is running. */
export const OVERLAPS = ['allow', 'skip', 'buffer_one', 'buffer_all'] as const;

export type CatchUp = (typeof CATCH_UPS)[number];
export type Overlap = (typeof OVERLAPS)[number];

export type AlarmKind = (typeof ALARM_KINDS)[number];
export type AlarmStatus = (typeof ALARM_STATUSES)[number];

/**
 * `text` excludes U+0000, `string` and `message` do not; a `message` is limited in bytes. `json` is source text. `person`
 * is the name of a person. A `list` has short names, each once. An `object` has members (`conditions.ts`).
 */
export type FieldType =
  | 'choice'
  | 'text'
  | 'string'
  | 'message'
  | 'identifier'
  | 'json'
  | 'instant'
  | 'seconds'
  | 'count'
  | 'switch'
  | 'list'
  | 'object'
  | 'author';

/** A name and a text, in which `{}` stands for the value. */
type Shown = readonly [name: string, text: string];

export type AlarmField = {
  readonly type: FieldType;
  /** The values of a choice. */
  readonly of?: readonly string[];
  /** Least and largest number, or number of characters; of a list, the largest number of names. */
  readonly least?: number;
  readonly most?: number;
  /** Most alarms have none of these, so all that are set share one column, `options`. By default, a column of its own. */
  readonly in?: 'options';
  /** Only a series may have it. */
  readonly only?: 'series';
  /** Who sets it; by default the owner, in the body of a create or an edit. */
  readonly by?: 'chronosd';
  /**
   * Whether a program with an access token may set it. Each field that the owner sets has a decision; chronosd refuses
   * what is not `set`. `http/client-rights.ts` limits the members of some.
   */
  readonly clients?: 'set' | 'never';
  /** A create must contain it. */
  readonly required?: true;
  /** What an edit may do; by default it sets the field, or clears it with `null`. */
  readonly edit?: 'set' | 'never';
  /** The stored value of an omitted or cleared field. A field without one always has a value. */
  readonly absent?: null | string | 0 | false;
  /** By default, the owner sees a field that is not absent. */
  readonly view?: 'always' | 'never';
  /** The flag of `alarm set` and `alarm edit`. A flag without a help text is read in a way of its own. */
  readonly flag?: { readonly name: string; readonly help?: string };
  /** The control in the form of the console. A control without a hint is written in a way of its own. */
  readonly form?: { readonly name: string; readonly title?: string; readonly hint?: string };
  /** The row of `alarm show`. */
  readonly row?: Shown;
  /** The row of the console's page of an alarm. */
  readonly fact?: Shown;
};

/** In the order of the columns. */
export const ALARM_FIELDS = {
  /** UUIDv7, so that ids sort by creation. */
  id: { type: 'string', by: 'chronosd' },
  /** The verified owner. Every statement about an alarm carries it. */
  owner: { type: 'string', by: 'chronosd', view: 'never' },
  kind: {
    type: 'choice',
    clients: 'set',
    of: ALARM_KINDS,
    edit: 'never',
  },
  label: {
    type: 'text',
    clients: 'set',
    most: 200,
    absent: '',
    view: 'always',
    flag: { name: 'label', help: 'a short name' },
    form: { name: 'label', title: 'Label', hint: 'A short name. Optional.' },
    row: ['label', '{}'],
  },
  /** The agent's message to itself, byte for byte. */
  wake_message: {
    type: 'message',
    clients: 'set',
    most: WAKE_MESSAGE_MAX_BYTES,
    required: true,
    edit: 'set',
    form: { name: 'message' },
  },
  /** JSON source text, never re-encoded. */
  payload: {
    type: 'json',
    clients: 'set',
    absent: null,
    edit: 'set',
    form: { name: 'payload' },
  },
  conversation_id: {
    type: 'identifier',
    clients: 'set',
    absent: null,
    flag: { name: 'conversation', help: 'the conversation that receives the message' },
    form: {
      name: 'conversation',
      title: 'Conversation',
      hint: 'ID of the conversation it continues. Default: a new one.',
    },
    row: ['conversation', '{}'],
  },
  idempotency_key: {
    type: 'text',
    clients: 'set',
    least: 1,
    most: 200,
    absent: null,
    edit: 'never',
    flag: { name: 'key' },
    row: ['key', '{}'],
  },
  /** The requested time in words. It is kept so that a repeated request is recognised as the same. */
  when: {
    type: 'text',
    clients: 'set',
    in: 'options',
    least: 1,
    most: 200,
    absent: null,
    edit: 'set',
    row: ['asked for', '{}'],
    fact: ['Asked for', '{}'],
  },
  /** For `once`: the requested delay. It is kept so that a repeated request is recognised as the same. */
  delay_seconds: {
    type: 'seconds',
    clients: 'set',
    least: 1,
    most: DELAY_MAX_SECONDS,
    absent: null,
    edit: 'set',
    view: 'never',
    flag: { name: 'in' },
  },
  /** For `once`: the instant it is due. */
  fire_at: {
    type: 'instant',
    clients: 'set',
    absent: null,
    edit: 'set',
    flag: { name: 'at' },
  },
  cron_expr: {
    type: 'string',
    clients: 'set',
    least: 1,
    most: 200,
    absent: null,
    edit: 'set',
    flag: { name: 'cron' },
  },
  /** For `rrule`: content lines of RFC 5545. */
  rrule: {
    type: 'string',
    clients: 'set',
    in: 'options',
    least: 1,
    most: 4000,
    absent: null,
    edit: 'set',
    flag: { name: 'rrule' },
  },
  /** As the client wrote it; `null` means UTC. */
  timezone: {
    type: 'string',
    clients: 'set',
    least: 1,
    most: 64,
    absent: null,
    flag: { name: 'zone' },
  },
  /** The instant from which an `@every` series counts. */
  anchor: { type: 'instant', by: 'chronosd', view: 'never' },
  jitter_seconds: {
    type: 'seconds',
    clients: 'set',
    least: 0,
    most: 3600,
    absent: 0,
    flag: { name: 'jitter', help: 'fire up to this much later, to spread load' },
    form: { name: 'jitter', title: 'Jitter', hint: 'Fires within this time after the due time. Example: 5m.' },
    row: ['jitter', 'up to {}'],
    fact: ['Jitter', '{}'],
  },
  ends_at: {
    type: 'instant',
    clients: 'set',
    only: 'series',
    absent: null,
    flag: { name: 'until', help: 'last instant at which a series may fire' },
    form: {
      name: 'until',
      title: 'Ends',
      hint: 'A repeating alarm does not fire after this time, such as 2026-12-31 18:00.',
    },
    row: ['until', '{}'],
    fact: ['Ends', '{}'],
  },
  max_fires: {
    type: 'count',
    clients: 'set',
    only: 'series',
    least: 1,
    absent: null,
    flag: { name: 'times', help: 'largest number of fires of a series' },
    form: { name: 'times', title: 'Number of fires', hint: 'How often a repeating alarm fires in total.' },
    row: ['at most', '{} times'],
  },
  /** The name of an installed calendar; a series does not fire on its days. */
  holidays: {
    type: 'identifier',
    clients: 'set',
    only: 'series',
    in: 'options',
    absent: null,
    flag: { name: 'holidays', help: 'installed calendar on whose days a series does not fire' },
    form: { name: 'holidays', title: 'Holidays', hint: 'Name of an installed calendar: no fires on its days.' },
    row: ['except on', 'days of {}'],
    fact: ['Except on', 'days of {}'],
  },
  catch_up: {
    type: 'choice',
    clients: 'set',
    only: 'series',
    of: CATCH_UPS,
    in: 'options',
    absent: 'latest',
    flag: { name: 'catch-up', help: 'overdue occurrences that fire: latest, all or none' },
    form: {
      name: 'catch_up',
      title: 'Catch up',
      hint: 'After downtime fire the latest, all or none. Default: latest.',
    },
    row: ['catch up', '{}'],
    fact: ['Catch up', '{}'],
  },
  /** Occurrences that are older are not fired by `all`; with `none`, how late an occurrence may be. */
  catch_up_window_seconds: {
    type: 'seconds',
    clients: 'set',
    only: 'series',
    in: 'options',
    least: 1,
    most: DELAY_MAX_SECONDS,
    absent: null,
    flag: { name: 'catch-up-window', help: 'largest lateness of an overdue occurrence that still fires' },
    form: { name: 'catch_up_window', title: 'Catch-up window', hint: 'Older occurrences are missed. Example: 12h.' },
    row: ['catch up within', '{}'],
    fact: ['Catch-up window', '{}'],
  },
  overlap: {
    type: 'choice',
    clients: 'set',
    only: 'series',
    of: OVERLAPS,
    in: 'options',
    absent: 'allow',
    flag: { name: 'overlap', help: 'while a turn runs: allow, skip, buffer_one or buffer_all' },
    form: {
      name: 'overlap',
      title: 'Overlap',
      hint: 'While an earlier turn runs: allow, skip, buffer_one or buffer_all. Default: allow.',
    },
    row: ['overlap', '{}'],
    fact: ['Overlap', '{}'],
  },
  pause_on_failure: {
    type: 'switch',
    clients: 'set',
    only: 'series',
    in: 'options',
    absent: false,
    flag: { name: 'pause-on-failure', help: 'pause the series when a fire or its turn fails' },
    form: { name: 'pauses', title: 'Pause the series when a fire or its turn fails' },
    row: ['on failure', 'pauses'],
    fact: ['On failure', 'pauses'],
  },
  /** Decides at each fire, before a machine starts, whether the agent is woken. */
  check: {
    type: 'object',
    clients: 'set',
    in: 'options',
    absent: null,
    flag: { name: 'check' },
    row: ['checks', '{}'],
    fact: ['Checks', '{}'],
  },
  /** For `event`: what wakes the agent. */
  event: {
    type: 'object',
    clients: 'set',
    in: 'options',
    absent: null,
    edit: 'set',
    flag: { name: 'on' },
    row: ['waits for', '{}'],
    fact: ['Waits for', '{}'],
  },
  /** For `event`: the turn of another alarm. */
  after: {
    type: 'object',
    clients: 'set',
    in: 'options',
    absent: null,
    edit: 'set',
    flag: { name: 'after' },
    row: ['after', '{}'],
    fact: ['After', '{}'],
  },
  /** For `event`: the alarm fires when nothing came. */
  expect: {
    type: 'object',
    clients: 'set',
    in: 'options',
    absent: null,
    edit: 'set',
    flag: { name: 'expect-every' },
    row: ['expects', '{}'],
    fact: ['Expects', '{}'],
  },
  /** Takes the place of the turn. */
  run: {
    type: 'object',
    clients: 'never',
    in: 'options',
    absent: null,
    flag: { name: 'run' },
    row: ['runs', '{}'],
    fact: ['Runs', '{}'],
  },
  /** A person set the command, and what it reads. */
  run_by_person: { type: 'switch', in: 'options', by: 'chronosd', absent: false, view: 'never' },
  /** Who last decided when it fires, as `set_by` is stored; the agent is the empty text. Absent: the one of `set_by`. */
  timed_by: { type: 'string', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  check_state: { type: 'object', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  event_state: { type: 'object', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  /** JSON: the authors of texts that another one than that of the message wrote (`alarm/text-authors.ts`). */
  text_by: { type: 'string', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  /** Signs the events of a webhook. */
  hook_secret: { type: 'string', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  /** Who made or gave the secret of a webhook, in the form of `timed_by`. */
  hook_by: { type: 'string', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  /** The alarms that wait for a turn of this one. */
  followers: { type: 'list', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  /** Of the request that created it, if that was traced. A fire links to it. */
  traceparent: { type: 'string', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  /** Instants of the past that are still to fire, the oldest first: `first/last` in epoch milliseconds. */
  backfill: { type: 'list', in: 'options', by: 'chronosd', absent: null, view: 'never' },
  model: {
    type: 'text',
    clients: 'never',
    in: 'options',
    least: 1,
    most: 200,
    absent: null,
    flag: { name: 'model', help: 'model of the turn' },
    form: { name: 'model', title: 'Model', hint: 'Model of the turn. Default: the one of the agent.' },
    row: ['model', '{}'],
    fact: ['Model', '{}'],
  },
  tools: {
    type: 'list',
    clients: 'never',
    in: 'options',
    most: 64,
    absent: null,
    flag: { name: 'tools', help: 'tools the turn may use, separated by commas; "" for none' },
    form: {
      name: 'tools',
      title: 'Tools',
      hint: 'The only tools of the turn, separated by commas; a comma alone for none. Default: all.',
    },
    row: ['tools', '{}'],
    fact: ['Tools', '{}'],
  },
  deliver: {
    type: 'list',
    clients: 'never',
    in: 'options',
    most: 16,
    absent: null,
    flag: { name: 'deliver', help: 'channels that get the result, separated by commas' },
    form: { name: 'deliver', title: 'Deliver to', hint: 'Channels that get the result, separated by commas.' },
    row: ['deliver to', '{}'],
    fact: ['Deliver to', '{}'],
  },
  /** By default, the setting of chronosd. */
  max_failures: {
    type: 'count',
    clients: 'set',
    least: 1,
    most: 1000,
    flag: { name: 'max-failures', help: 'stop after this many failed attempts for one occurrence' },
    form: { name: 'failures', title: 'Attempts', hint: 'Failed attempts for one fire, 1 to 1000.' },
    fact: ['Attempts', 'at most {}'],
  },
  /** Fractions of a second pass before any fire starts, so 0 would never fire. */
  max_lateness_seconds: {
    type: 'seconds',
    clients: 'set',
    least: 1,
    most: DELAY_MAX_SECONDS,
    absent: null,
    flag: { name: 'max-lateness', help: 'record an occurrence as missed when it is later than this' },
    form: { name: 'lateness', title: 'Grace period', hint: 'A later fire counts as missed. Example: 15m.' },
    row: ['lateness', 'at most {}'],
    fact: ['Grace period', '{}'],
  },
  /** Quiet hours of the user do not defer it. */
  urgent: {
    type: 'switch',
    clients: 'never',
    absent: false,
    flag: { name: 'urgent', help: 'fire in quiet hours too' },
    form: { name: 'urgent', title: 'Urgent: quiet hours do not defer it' },
    row: ['urgent', 'yes: quiet hours do not defer it'],
    fact: ['Urgent', 'quiet hours do not defer it'],
  },
  /** The computer wakes from sleep for it, where wake-up timers are set up. */
  wake_computer: {
    type: 'switch',
    clients: 'never',
    absent: false,
    flag: { name: 'wake-computer', help: 'wake the computer from sleep; needs "reveille service wake on"' },
    form: { name: 'wakes', title: 'Wake the computer from sleep, if that is set up' },
    row: ['computer', 'is woken from sleep for it, if enabled'],
    fact: ['Computer', 'wakes from sleep, if that is set up'],
  },
  /** A JSON object of the fields that are `in` it; `null` without one. */
  options: { type: 'json', by: 'chronosd', absent: null, view: 'never' },
  /** The person or program that wrote the message, proved at the request; `null` for the agent itself. */
  set_by: { type: 'author', by: 'chronosd', absent: null },
  /** The credential that made it (`set-by.ts`); `null` for the operator's token, which proves a person. */
  made_by: { type: 'string', by: 'chronosd', absent: null, view: 'never' },
  status: { type: 'choice', of: ALARM_STATUSES, by: 'chronosd' },
  /** Failed attempts at the current occurrence. Delivery or giving up resets it to zero. */
  failure_count: { type: 'count', by: 'chronosd' },
  last_error: { type: 'message', by: 'chronosd', absent: null },
  created_at: { type: 'instant', by: 'chronosd' },
  updated_at: { type: 'instant', by: 'chronosd', view: 'never' },
  last_fired_at: { type: 'instant', by: 'chronosd', absent: null },
  /** Delivered occurrences, triggered ones included. */
  fire_count: { type: 'count', by: 'chronosd' },
  /** Delivered occurrences of the alarm's own schedule, limited by `max_fires`. */
  scheduled_fires: { type: 'count', by: 'chronosd', view: 'never' },
} as const satisfies Readonly<Record<string, AlarmField>>;

type Fields = typeof ALARM_FIELDS;
export type FieldName = keyof Fields;

/** Names of the fields of some type, by their properties. */
export type FieldsWith<P> = { [N in FieldName]: Fields[N] extends P ? N : never }[FieldName];
export type OwnerField = Exclude<FieldName, FieldsWith<{ by: string }>>;
/** Fields within the column `options`. */
export type OptionField = FieldsWith<{ in: 'options' }>;
/** Fields with a column of their own. */
export type ColumnField = Exclude<FieldName, OptionField>;

/** The values of the fields of type `object`. */
type Objects = { [N in ObjectField]: ObjectValue<N> } & { check_state: CheckState; event_state: EventState };

/** The values of a stored field, `null` excluded. */
type Value<F extends AlarmField> = F extends { of: readonly (infer V)[] }
  ? V
  : F['type'] extends 'instant' | 'seconds' | 'count'
    ? number
    : F['type'] extends 'switch'
      ? boolean
      : F['type'] extends 'list'
        ? readonly string[]
        : string;
/** The value of a field that is set. */
export type SetValue<N extends FieldName> = N extends keyof Objects ? Objects[N] : Value<Fields[N]>;
export type StoredValue<N extends FieldName> = SetValue<N> | (Fields[N] extends { absent: null } ? null : never);

/** A name in camel case: of a field as the domain has it, of a flag as its parser has it. */
export type MemberOf<N extends string> = N extends `${infer Head}${'_' | '-'}${infer Tail}`
  ? `${Head}${Capitalize<MemberOf<Tail>>}`
  : N;

export function memberOf<N extends string>(name: N): MemberOf<N> {
  return name.replace(/[_-](\w)/g, (_, letter: string) => letter.toUpperCase()) as MemberOf<N>;
}

export const FIELD_NAMES = Object.keys(ALARM_FIELDS) as FieldName[];

/** A field of the table, with its properties that may be absent. */
export const fieldOf = (name: FieldName): AlarmField => ALARM_FIELDS[name];

export const isOption = (name: FieldName): name is OptionField => fieldOf(name).in === 'options';
export const OPTION_FIELDS = FIELD_NAMES.filter(isOption);
export const COLUMN_FIELDS = FIELD_NAMES.filter((name): name is ColumnField => !isOption(name));

/** The fields that the owner sets. */
export const OWNER_FIELDS = FIELD_NAMES.filter((name): name is OwnerField => fieldOf(name).by === undefined);

/** The fields that a program with an access token may set. */
export const isForClients = (name: FieldName): boolean => fieldOf(name).clients === 'set';

/** The fields that an edit clears with `null`. */
export const CLEARABLE_FIELDS = OWNER_FIELDS.filter((name) => fieldOf(name).edit === undefined);

export type SeriesField = FieldsWith<{ only: 'series' }>;
/** The fields that only a series has, besides those of its rhythm. */
export const SERIES_FIELDS = OWNER_FIELDS.filter((name): name is SeriesField => fieldOf(name).only === 'series');

/** The names in `first`, then the other names in their own order. */
export function ordered<N extends FieldName>(first: readonly N[], names: readonly N[]): N[] {
  return [...first, ...names.filter((name) => !first.includes(name))];
}
