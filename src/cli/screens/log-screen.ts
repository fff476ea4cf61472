/** Log entries, turn outcomes and the stages of fires as text. Pure. */
import { formatDuration, formatLateness, LATE_REASON_TEXT } from '../../kit/clock/duration.ts';
import { wallTime } from '../../kit/clock/local-time.ts';
import { oneLine, printable } from '../../kit/text/hidden-characters.ts';
import type { FireView } from '../../wire/alarm.ts';
import { type AlarmNow, type Fire, firesOf, plainError } from '../../wire/fire.ts';
import { WAITS_FOR_ANSWER } from '../../wire/turn-report.ts';
import { usageText } from '../../wire/usage.ts';
import { reportsNothing } from '../../wire/wake.ts';
import type { LogEntry } from '../log/entries.ts';
import { wrap } from './columns.ts';
import { facts, type Reader } from './render.ts';

/** Under the time of day, so that the lines of one entry are aligned. */
const INDENT = '          ';
const NARROWEST = 20;
/** Shorter start times of a machine are not mentioned. */
const NOTICED_MS = 1000;

/** A reply that causes no notification. */
export const NOTHING_TEXT = 'nothing to report';

/** The agent's reply, wrapped, with a bar beside each line. */
export function replyLines(reply: string, look: Pick<Reader, 'width' | 'paint'>): string[] {
  if (reportsNothing(reply)) return [look.paint('dim', NOTHING_TEXT)];
  const width = Math.max(NARROWEST, look.width - INDENT.length - 2);
  const wrapped = reply.split('\n').flatMap((line) => wrap(printable(line), width));
  return wrapped.map((line) => `${look.paint('cyan', '│')} ${line}`);
}

/** A turn that failed with a temporary error. */
export function waitsWords(retryAt: number, error: string | undefined, look: Pick<Reader, 'now' | 'zone'>): string {
  if (error?.startsWith(WAITS_FOR_ANSWER)) return `turn ${oneLine(error)}, until ${wallTime(retryAt, look)}`;
  return `turn failed, next attempt ${wallTime(retryAt, look)}${because(error)}`;
}

const because = (error: string | undefined) => (error === undefined ? '' : `: ${oneLine(plainError(error))}`);

/** The word, its colour, and the text after it. */
function words(
  entry: LogEntry,
  look: Reader,
): [word: string, colour: 'green' | 'red' | 'yellow' | 'cyan', rest: string] {
  const {
    label = '',
    error,
    lateness_ms,
    late_because,
    missed_count = 0,
    machine_ready_ms = 0,
    status = '',
    intent_id = '',
    text,
  } = entry;
  const name = oneLine(label);
  const usage = usageText(entry.usage);
  const used = usage === undefined ? '' : ` (${usage})`;
  const earlier = missed_count > 0 ? `, with ${missed_count} before it` : '';
  switch (entry.kind) {
    case 'rang': {
      const slow =
        machine_ready_ms < NOTICED_MS ? '' : `; the machine took ${formatDuration(machine_ready_ms)} to start`;
      const stands = missed_count > 0 ? `, for ${missed_count} missed` : '';
      return ['fired', 'green', `${name}: ${formatLateness(lateness_ms ?? 0, late_because)}${stands}${slow}`];
    }
    case 'reply':
      return ['reply', 'cyan', `${name}${used}`];
    case 'turn_waits':
      return ['waits', 'yellow', `${name}: ${waitsWords(Date.parse(entry.retry_at!), error, look)}`];
    case 'turn_failed':
      return [
        'failed',
        'red',
        `${name}: the turn failed${used}${because(error)}; repeat it with: reveille alarm redrive ${entry.alarm_id}`,
      ];
    case 'turn_unknown':
      return ['unknown', 'yellow', `${name}: the outcome of the turn is not known${used}${because(error)}`];
    case 'skipped':
      return ['skipped', 'yellow', `${name}${earlier}${because(error)}`];
    case 'missed':
      return [
        'missed',
        'red',
        `${name}${earlier}${because(error)}${late_because ? `; ${LATE_REASON_TEXT[late_because]}` : ''}`,
      ];
    case 'wake_failed':
      if (status === 'unknown') return ['unknown', 'yellow', `${name}: delivery not known${because(error)}`];
      return ['failed', 'red', `${name}: not delivered${because(error)}`];
    case 'approval': {
      const { by, node_id = '' } = entry;
      const what = text === undefined ? intent_id : oneLine(text);
      const who = by === undefined ? '' : `, by ${oneLine(by)}`;
      return [status, status === 'approved' ? 'green' : 'yellow', `${what}: the step ${oneLine(node_id)}${who}`];
    }
    case 'task': {
      const waits = status === 'awaiting_approval' ? `; see: reveille intent show ${intent_id}` : '';
      const what = text === undefined ? intent_id : oneLine(text);
      return [
        'intent',
        status === 'completed' ? 'green' : 'yellow',
        `${what}: ${status.replaceAll('_', ' ')}${because(error)}${waits}`,
      ];
    }
  }
}

/** One entry: time, event, and the agent's reply below. */
export function renderEntry(entry: LogEntry, look: Reader): string[] {
  const [word, colour, rest] = words(entry, look);
  const time = wallTime(Date.parse(entry.at), look);
  const [first = '', ...others] = wrap(rest, Math.max(NARROWEST, look.width - time.length - word.length - 4));
  const reply =
    entry.kind !== 'task' && entry.kind !== 'approval' && entry.text !== undefined ? replyLines(entry.text, look) : [];
  return [
    `${look.paint('dim', time)}  ${look.paint(colour, word)}  ${first}`,
    ...[...others, ...reply].map((line) => `${INDENT}${line}`),
  ];
}

const FIRES_SHOWN = 3;

/** The outcome of the turn as text, with its error if any. */
function endOf({ state, error }: Fire): string {
  if (state === 'turn_done') return 'done';
  const why = error === undefined ? '' : `: ${oneLine(error)}`;
  return state === 'turn_failed' ? `failed${why}` : `outcome unknown${why}`;
}

/** Text for a fire without an accepted attempt; `undefined` if its turn is known. */
function notAccepted({ state, next }: Fire): string | undefined {
  if (state === 'missed') return 'no, it was missed';
  if (state === 'skipped') return 'no, it was skipped';
  if (state === 'delivery_unknown') return 'not known';
  if (state !== 'not_delivered') return undefined;
  return next.step === 'redrive' ? 'no, it was abandoned' : 'not yet';
}

/** The turn of a fire, unless it runs or has ended. */
function waitsFor({ state, next, error }: Fire, look: Reader): string | undefined {
  if (state === 'accepted') return 'accepted; no turn report yet';
  if (state !== 'turn_waits' || next.step !== 'retry') return undefined;
  return waitsWords(next.at ?? look.now, error, look).replace(/^turn /, '');
}

function stagesOf(fire: Fire, look: Reader): string[] {
  const { dueAt, lateness, turn } = fire;
  const at = (instant: number | undefined) => {
    if (instant === undefined) return undefined;
    const after = instant - dueAt;
    return after < 0 ? wallTime(instant, look) : `${wallTime(instant, look)}  +${formatDuration(after)}`;
  };
  const late = lateness === undefined ? '' : formatLateness(lateness.ms, lateness.because);
  const finished = at(fire.turnFinishedAt);
  return facts(
    [
      ['due', `${wallTime(dueAt, look)}  ${late}`.trimEnd()],
      ['machine ready', at(fire.machineReadyAt)],
      ['accepted', at(fire.acceptedAt) ?? notAccepted(fire)],
      ['turn started', at(fire.turnStartedAt)],
      ['turn finished', finished === undefined ? undefined : `${finished}  ${endOf(fire)}`],
      ['turn', waitsFor(fire, look)],
      ['used', usageText(turn?.usage)],
    ],
    look,
  ).concat(turn?.reply === undefined ? [] : replyLines(turn.reply, look).map((line) => `  ${line}`));
}

/**
 * One block per fire, latest first: its due time, and the time of each stage.
 *
 * @param attempts entries of the ledger, latest first
 */
export function renderFireStages(alarm: AlarmNow, attempts: readonly FireView[], look: Reader): string[] {
  const shown = firesOf(attempts, alarm).slice(0, FIRES_SHOWN);
  if (shown.length === 0) return [];
  const title = shown.length === 1 ? 'How far it got' : `How far the latest ${shown.length} got`;
  return [
    '',
    look.paint('dim', title),
    ...shown.flatMap((fire, n) => [...(n > 0 ? [''] : []), ...stagesOf(fire, look)]),
  ];
}
