/**
 * The fields `check`, `event`, `after`, `expect` and `run` of an alarm, as people give them: in parts of one line each.
 * The flags of the command line and the controls of the console follow from this table; `conditions.ts` reads it. Data
 * only: the command line reads it at every start.
 */
import type { ObjectField } from '../../wire/conditions.ts';

/** How the text of a part is read. A `switch` has the text `on`. */
export type PartType =
  | 'text'
  | 'switch'
  | 'duration'
  | 'count'
  | 'choice'
  | 'names'
  | 'command'
  | 'filter'
  | 'value'
  | 'json';

export type Part = {
  /** The field that it is a part of. */
  readonly of: ObjectField;
  readonly type: PartType;
  /** The member of the field, by its path. A part without one is read in a way of its own. */
  readonly member?: string;
  /** The values of a choice. */
  readonly choices?: readonly string[];
  /** Least and largest number. */
  readonly least?: number;
  readonly most?: number;
  /** The parts that it needs one of. */
  readonly needs?: readonly string[];
  /** The help of the flag. */
  readonly help: string;
  /** The placeholder of the flag, if it is not that of its type. */
  readonly placeholder?: string;
  /** The control in the form of the console: title and hint. */
  readonly form?: readonly [title: string, hint?: string];
};

const HTTP = ['check-url'];
const COMMAND = ['check-command'];
const ANY_CHECK = ['check-url', 'check-command', 'check-path'];
const EVENT = ['on'];

/** By the names of the flags. */
export const CONDITION_PARTS = {
  'check-url': {
    ...{ of: 'check', type: 'text', member: 'http.url', placeholder: '<url>' },
    help: 'GET this first; no wake unless the status is 200 to 299',
    form: ['Address', 'No wake unless a GET answers with a status of 200 to 299.'],
  },
  'check-status': {
    ...{ of: 'check', type: 'count', member: 'http.status', least: 100, most: 599, needs: HTTP },
    help: 'no wake unless the status is this one',
    form: ['Status', 'Only this status wakes. Example: 503.'],
  },
  'check-changed': {
    ...{ of: 'check', type: 'switch', needs: HTTP },
    help: 'no wake unless the answer, or the value of --check-pointer, has changed since the last wake',
    form: ['Only if the answer, or the value, has changed since the last wake'],
  },
  'check-pointer': {
    ...{ of: 'check', type: 'text', member: 'http.pointer', placeholder: '<pointer>', needs: HTTP },
    help: 'JSON Pointer of a value in the answer, such as /state',
    form: ['Value', 'JSON Pointer of a value in the answer. Example: /state'],
  },
  'check-equals': {
    ...{ of: 'check', type: 'value', member: 'http.equals', needs: ['check-pointer'] },
    help: 'no wake unless that value is this one',
    form: ['Equals', 'Only this value wakes. Example: closed'],
  },
  'check-command': {
    ...{ of: 'check', type: 'command', member: 'command.argv' },
    help: 'run this in the sandbox first: exit 0 wakes, 1 does not',
    form: ['Command', 'Runs in the sandbox: exit 0 wakes, 1 does not. Example: ./new-mail.sh inbox'],
  },
  'check-network': {
    ...{ of: 'check', type: 'switch', member: 'command.network', needs: COMMAND },
    help: 'the command may use the network',
    form: ['The command may use the network'],
  },
  'check-env': {
    ...{ of: 'check', type: 'names', member: 'command.env', needs: COMMAND },
    help: "variables of the agent's environment that the command gets, separated by commas",
    form: ['Variables', 'Variables of the agent that the command gets, separated by commas.'],
  },
  'check-timeout': {
    ...{ of: 'check', type: 'duration', member: 'command.timeout_seconds', needs: COMMAND },
    help: 'time limit of the command (default: 30s, at most 5m)',
    form: ['Time limit', 'Of the command. Default: 30s, at most 5m.'],
  },
  'check-path': {
    ...{ of: 'check', type: 'text', member: 'path.path', placeholder: '<path>' },
    help: "no wake unless this file or folder of the agent's machine has changed since the last wake",
    form: ['Path', 'No wake unless this file or folder has changed since the last wake.'],
  },
  'check-on-error': {
    ...{ of: 'check', type: 'choice', member: 'on_error', choices: ['wake', 'skip'], needs: ANY_CHECK },
    help: 'when the check fails: wake (default) or skip',
    form: ['When the check fails', 'Default: wake.'],
  },
  'max-skips': {
    ...{ of: 'check', type: 'count', member: 'max_skips', least: 1, most: 1_000_000, needs: ANY_CHECK },
    help: 'wake anyway after this many skipped fires in a row',
    form: ['Skips in a row', 'After so many, the next fire wakes anyway.'],
  },
  'wake-at-least': {
    ...{ of: 'check', type: 'duration', member: 'wake_at_least_every', needs: ANY_CHECK },
    help: 'wake anyway when the last wake is this long ago',
    form: ['Wake at least every', 'A fire wakes anyway when the last wake is so long ago. Example: 1d.'],
  },
  check: {
    ...{ of: 'check', type: 'json' },
    help: 'the check as JSON, with members that have no flag, such as http.headers',
  },

  on: {
    ...{ of: 'event', type: 'text', placeholder: '<source>' },
    help: 'wait for events of webhook, github, file:PATH, process:PID or mcp:SERVER/EVENT, instead of a time',
    form: ['Events of', 'webhook, github, file:inbox/, process:4711 or mcp:server/event'],
  },
  filter: {
    ...{ of: 'event', type: 'filter', member: 'filter', placeholder: '</pointer=value>', needs: EVENT },
    help: 'only events that have this value at a JSON Pointer: /action=opened',
    form: ['Filter', 'Only events with this value at a JSON Pointer. Example: /action=opened'],
  },
  'quiet-for': {
    ...{ of: 'event', type: 'duration', member: 'quiet_for', needs: EVENT },
    help: 'wake once no event has come for this long, with all of them',
    form: ['Quiet for', 'Wakes once no event has come for so long. Example: 30s.'],
  },
  'at-most-every': {
    ...{ of: 'event', type: 'duration', member: 'at_most_every', needs: EVENT },
    help: 'wake at most once in this time, with all events between',
    form: ['At most every', 'Two wakes are at least so far apart. Example: 5m.'],
  },
  batch: {
    ...{ of: 'event', type: 'count', member: 'batch_up_to', least: 1, most: 1000, needs: EVENT },
    help: 'largest number of events in one wake, 1 to 1000',
    form: ['Events in one wake', 'At most so many, up to 1000.'],
  },
  deadline: {
    ...{ of: 'event', type: 'duration', member: 'deadline', needs: EVENT },
    help: 'fire when no event has come for this long',
    form: ['Deadline', 'Fires when no event has come for so long. Example: 1d.'],
  },
  repeat: {
    ...{ of: 'event', type: 'switch', needs: EVENT },
    help: 'wait for further events after a wake',
    form: ['Wait for further events after a wake'],
  },
  after: {
    ...{ of: 'after', type: 'text', member: 'alarm', placeholder: '<alarm>' },
    help: 'fire after the turn of another alarm, by its id or label, instead of at a time',
    form: ['Alarm', 'ID or label of the other alarm.'],
  },
  'after-outcome': {
    ...{ of: 'after', type: 'choice', member: 'on', choices: ['finished', 'failed', 'missed', 'any'] },
    ...{ needs: ['after'] },
    help: 'the outcome that counts: finished (default), failed, missed or any',
    form: ['Outcome', 'The outcome of its turn that counts.'],
  },
  delay: {
    ...{ of: 'after', type: 'duration', member: 'delay_seconds', needs: ['after'] },
    help: 'fire this long after it',
    form: ['Delay', 'Fires so long after it. Example: 10m.'],
  },
  'expect-every': {
    ...{ of: 'expect', type: 'duration', member: 'every' },
    help: 'fire when no event of --on, turn of --after or call of its address has come in this time',
    form: ['Expected every', 'Fires when nothing has come in this time. Example: 1d.'],
  },
  grace: {
    ...{ of: 'expect', type: 'duration', member: 'grace', needs: ['expect-every'] },
    help: 'and in this time after it',
    form: ['Grace', 'Waits so much longer. Example: 1h.'],
  },
  run: {
    ...{ of: 'run', type: 'command', member: 'argv' },
    help: 'run this in the sandbox in place of a turn, without a model; its output is the result',
    form: ['Run a command', 'Takes the place of the turn, without a model. Example: ./backup.sh --all'],
  },
  'run-timeout': {
    ...{ of: 'run', type: 'duration', member: 'timeout_seconds', needs: ['run'] },
    help: 'time limit of that command (default: 5m, at most 1d)',
    form: ['Time limit of the command', 'Default: 5m, at most 1d.'],
  },
} as const satisfies Readonly<Record<string, Part>>;

export type PartName = keyof typeof CONDITION_PARTS;
export const PART_NAMES = Object.keys(CONDITION_PARTS) as PartName[];
export const partOf = (name: PartName): Part => CONDITION_PARTS[name];

/** The parts of some fields, in the order of the table. */
export const partsOf = (...fields: readonly ObjectField[]): PartName[] =>
  PART_NAMES.filter((name) => fields.includes(partOf(name).of));

/** Given parts, as text. */
export type GivenParts = { readonly [N in PartName]?: string | undefined };
