/** The fields `check`, `event`, `after`, `expect` and `run` of an alarm as one readable line each. Pure. */
import type { ObjectField } from '../../wire/conditions.ts';
import { joinCommand } from './command-line.ts';
import { type Conditions, durationText, scalarText, secondsText } from './conditions.ts';

/** The name of an alarm, by its id; the id where it is not known. */
export type NameOfAlarm = (id: string) => string;

type Value<N extends ObjectField> = NonNullable<Conditions[N]>;

const listed = (texts: readonly (string | false | undefined)[]) => texts.filter((text) => text).join(', ');
const inBrackets = (text: string) => (text === '' ? '' : ` (${text})`);

function checkText({ http, command, path, on_error, max_skips, wake_at_least_every }: Value<'check'>): string {
  const { status, etag, pointer, equals, changed } = http ?? {};
  const verdict = http && [
    status !== undefined && `status ${status}`,
    etag && 'changed',
    equals !== undefined && `${pointer} is ${scalarText(equals)}`,
    changed && `${pointer} changed`,
  ];
  const what = http
    ? `${http.url}${inBrackets(listed(verdict!) || 'status 200 to 299')}`
    : command
      ? joinCommand(command.argv)
      : `${path!.path} (changed)`;
  return listed([
    what,
    on_error === 'skip' && 'does not wake when that fails',
    max_skips !== undefined && `wakes after ${max_skips} ${max_skips === 1 ? 'skip' : 'skips'}`,
    wake_at_least_every !== undefined && `wakes at least every ${durationText(wake_at_least_every)}`,
  ]);
}

const turnText = (outcome: string | undefined, name: string) =>
  outcome === undefined || outcome === 'finished'
    ? `the turn of ${name}`
    : outcome === 'missed'
      ? `a missed fire of ${name}`
      : outcome === 'any'
        ? `the turn of ${name}, whatever its outcome`
        : `a failed turn of ${name}`;

function sourceText(event: Value<'event'>, nameOf: NameOfAlarm): string {
  switch (event.source) {
    case 'webhook':
      return `webhook${event.verify === undefined || event.verify === 'standard' ? '' : ` (${event.verify})`}`;
    case 'file':
      return `changes of ${event.path}`;
    case 'process':
      return `the exit of process ${event.pid}`;
    case 'alarm':
      return turnText(event.on, nameOf(event.alarm));
    case 'mcp':
      return `${event.name} of the MCP server ${event.server}`;
  }
}

function eventText(event: Value<'event'>, nameOf: NameOfAlarm): string {
  const { filter, quiet_for, at_most_every, batch_up_to, deadline, repeat } = event;
  const where = filter && (filter.equals === undefined ? 'is there' : `is ${scalarText(filter.equals)}`);
  return listed([
    sourceText(event, nameOf),
    filter && `if ${filter.pointer || 'the event'} ${where}`,
    quiet_for !== undefined && `once quiet for ${durationText(quiet_for)}`,
    at_most_every !== undefined && `at most every ${durationText(at_most_every)}`,
    batch_up_to !== undefined && `up to ${batch_up_to} in one wake`,
    deadline !== undefined && `fires after ${durationText(deadline)} without one`,
    repeat === 'always' && 'repeats',
  ]);
}

const everyText = ({ every, grace }: Value<'expect'>) =>
  `${durationText(every)}${grace === undefined ? '' : ` (grace ${durationText(grace)})`}`;

/** A field after the name of its row: `https://… (changed)`, `webhook (github)`, `./backup.sh --all`. */
export function conditionText<N extends ObjectField>(
  field: N,
  value: Value<N>,
  nameOf: NameOfAlarm = (id) => id,
): string {
  const { check, event, after, expect, run }: Conditions = { [field]: value };
  if (check) return checkText(check);
  if (event) return eventText(event, nameOf);
  if (after)
    return `${turnText(after.on, nameOf(after.alarm))}${after.delay_seconds ? `, ${secondsText(after.delay_seconds)} later` : ''}`;
  if (expect) return `an event every ${everyText(expect)}`;
  return `${joinCommand(run!.argv)}${run!.timeout_seconds === undefined ? '' : `, at most ${secondsText(run!.timeout_seconds)}`}`;
}

/** When an alarm without a time fires: `after the turn of "nightly"`, `waits for webhook (github)`. */
export function waitText({ event, after, expect }: Conditions, nameOf?: NameOfAlarm): string {
  const source = event
    ? `waits for ${conditionText('event', event, nameOf)}`
    : after && `${expect ? 'waits for' : 'after'} ${conditionText('after', after, nameOf)}`;
  const awaited = event === undefined && after === undefined ? 'a call of its address' : 'one';
  const missing = expect && `expects ${awaited} every ${everyText(expect)}`;
  return listed([source, missing ?? undefined]) || 'waits for events';
}
