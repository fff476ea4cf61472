/** Log entries and turn outcomes as text. Pure. */
import { formatDuration, formatLateness, LATE_REASON_TEXT } from '../../kit/clock/duration.ts';
import { wallTime } from '../../kit/clock/local-time.ts';
import { oneLine, printable } from '../../kit/text/hidden-characters.ts';
import { plainError } from '../../wire/fire.ts';
import type { LogEntry } from '../log/entries.ts';
import { wrap } from './columns.ts';
import type { Reader } from './render.ts';

/** Under the time of day, so that the lines of one entry are aligned. */
const INDENT = '          ';
const NARROWEST = 20;
/** Shorter start times of a machine are not mentioned. */
const NOTICED_MS = 1000;

/** The agent's reply, wrapped, with a bar beside each line. */
export function replyLines(reply: string, look: Pick<Reader, 'width' | 'paint'>): string[] {
  const width = Math.max(NARROWEST, look.width - INDENT.length - 2);
  const wrapped = reply.split('\n').flatMap((line) => wrap(printable(line), width));
  return wrapped.map((line) => `${look.paint('cyan', '│')} ${line}`);
}

/** A turn that failed with a temporary error. */
export function waitsWords(retryAt: number, error: string | undefined, look: Pick<Reader, 'now' | 'zone'>): string {
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
  switch (entry.kind) {
    case 'rang': {
      const slow =
        machine_ready_ms < NOTICED_MS ? '' : `; the machine took ${formatDuration(machine_ready_ms)} to start`;
      const stands = missed_count > 0 ? `, for ${missed_count} missed` : '';
      return ['fired', 'green', `${name}: ${formatLateness(lateness_ms ?? 0, late_because)}${stands}${slow}`];
    }
    case 'reply':
      return ['reply', 'cyan', name];
    case 'turn_waits':
      return ['waits', 'yellow', `${name}: ${waitsWords(Date.parse(entry.retry_at!), error, look)}`];
    case 'turn_failed':
      return [
        'failed',
        'red',
        `${name}: the turn failed${because(error)}; repeat it with: reveille alarm redrive ${entry.alarm_id}`,
      ];
    case 'turn_unknown':
      return ['unknown', 'yellow', `${name}: the outcome of the turn is not known${because(error)}`];
    case 'missed':
      return ['missed', 'red', `${name}${because(error)}${late_because ? `; ${LATE_REASON_TEXT[late_because]}` : ''}`];
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
