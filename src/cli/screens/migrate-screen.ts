/** The output of `reveille migrate`. Pure, except for the progress line. */
import type { AbandonResult } from '../../chronos/store/transfer/abandon.ts';
import type { Comparison } from '../../chronos/store/transfer/compare.ts';
import type { MoveResult } from '../../chronos/store/transfer/move.ts';
import type { Report, Step } from '../../chronos/store/transfer/progress.ts';
import type { Survey } from '../../chronos/store/transfer/survey.ts';
import type { Clock } from '../../kit/clock/clock.ts';
import { formatDuration } from '../../kit/clock/duration.ts';
import { localTime } from '../../kit/clock/local-time.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import { columns } from './columns.ts';
import type { Output } from './output.ts';
import type { Reader } from './render.ts';

const INDENT = '  ';
/** Digits of a checksum that are compared by eye; `--json` has all. */
const SHOWN_DIGITS = 16;
/** Work that has ended by then needs no progress line. */
const QUIET_MS = 2000;
const REDRAW_MS = 250;

const PASSWORD = '<password>';

const figure = (value: number) => Math.round(value).toLocaleString('en-US');
const rows = (count: number) => `${figure(count)} row${count === 1 ? '' : 's'}`;
const rate = (count: number, ms: number) => `${figure((count * 1000) / Math.max(ms, 1))} rows/s`;

/** Rows of cells under their headings; the column `ROWS` is aligned right. */
function table(headings: readonly string[], body: readonly (readonly string[])[], look: Reader): string[] {
  const at = headings.indexOf('ROWS');
  const width = Math.max(...[headings, ...body].map((cells) => cells[at]!.length));
  const aligned = [headings, ...body].map((cells) =>
    cells.map((cell, column) => (column === at ? cell.padStart(width) : cell)),
  );
  const [heading, ...lines] = columns(aligned, look.width - INDENT.length);
  return [look.paint('dim', `${INDENT}${heading}`), ...lines.map((line) => `${INDENT}${line}`)];
}

function comparisonRow({ table: name, source, target, equal }: Comparison): string[] {
  const checksum = `${source.sha256.slice(0, SHOWN_DIGITS)}…`;
  if (equal) return [name, figure(source.rows), 'equal', checksum];
  const counts = source.rows === target.rows ? figure(source.rows) : `${figure(source.rows)} ≠ ${figure(target.rows)}`;
  return [name, counts, 'DIFFERS', `${checksum} ≠ ${target.sha256.slice(0, SHOWN_DIGITS)}…`];
}

export function renderComparisons(tables: readonly Comparison[], look: Reader): string[] {
  const lines = table(['TABLE', 'ROWS', 'CONTENT', 'SHA-256'], tables.map(comparisonRow), look);
  return lines.map((line, at) => (at > 0 && !tables[at - 1]!.equal ? look.paint('red', line) : line));
}

/** The next step: where to put the address of the database. */
export type Next = {
  /** The line for `config.yaml`, without the password; absent when the file has it already. */
  line: string | undefined;
  /** Whether the enrollment mode is set already; with PostgreSQL chronosd does not start without it. */
  enrollmentSaid: boolean;
  configFile: string;
};

export function renderMoved(
  { outcome, from, to, since, tables, copied, copyMs }: MoveResult,
  next: Next,
  look: Reader,
): string[] {
  const heading =
    outcome === 'already'
      ? `Moved to ${to} already, at ${localTime(since, look)}; nothing was changed.`
      : `Moved to ${look.paint('bold', to)}`;
  const compared = tables.length === 0 ? [] : ['', ...renderComparisons(tables, look)];
  const pace =
    copied === 0 ? [] : ['', `${INDENT}${rows(copied)} in ${formatDuration(copyMs)}, ${rate(copied, copyMs)}`];
  const setting =
    next.line === undefined
      ? [`${next.configFile} names the database already. Start chronosd again.`]
      : [
          `Add this line to ${next.configFile}${next.line.includes(PASSWORD) ? `, with the password for ${PASSWORD}` : ''}; then start chronosd again:`,
          '',
          `${INDENT}${next.line}`,
        ];
  return [
    heading,
    ...compared,
    ...pace,
    '',
    ...setting,
    ...(next.enrollmentSaid
      ? []
      : ['', `It also needs "CHRONOS_ENROLLMENT: required", or "tofu" when only you have CHRONOS_TOKEN.`]),
    '',
    look.paint('dim', `chronosd does not start on ${from} any more; keep it as a backup.`),
  ];
}

const PLANS: Readonly<Record<Survey['plan'], (survey: Survey) => string>> = {
  begin: ({ to, bare }) => `Would move to ${to}, which ${bare ? 'has no tables yet' : 'is empty'}.`,
  restart: ({ to }) => `Would move to ${to}, after deleting the rows of an earlier, cancelled move.`,
  resume: ({ to, there }) => `Would continue the move to ${to}; ${rows(there)} are there.`,
  finish: ({ to }) => `Would only record that the move to ${to} is complete.`,
  done: ({ to }) => `Moved to ${to} already; would do nothing.`,
};

export function renderSurvey(survey: Survey, look: Reader): string[] {
  const { owner, tables } = survey;
  const body = tables.map(({ table: name, rows: count }) => [name, figure(count)]);
  return [
    `${PLANS[survey.plan](survey)} Nothing was changed.`,
    '',
    ...table(['TABLE', 'ROWS'], body, look),
    ...(owner === undefined ? [] : ['', `Stop process ${owner} first: it has the file open.`]),
  ];
}

export function renderAbandoned({ from, was, to, closed }: AbandonResult): string[] {
  if (was === 'home') return [`${from} is not being moved; nothing was changed.`];
  return [
    `${was === 'moving' ? 'Cancelled the move' : 'Moved back from'} ${to}.`,
    `chronosd fires the alarms from ${from} again; CHRONOS_POSTGRES_URI must not be set.`,
    closed
      ? `It does not start on ${to}; the next move into that database starts from the beginning.`
      : `${to} was not contacted: make sure that no chronosd starts on it.`,
  ];
}

/** The progress line: share, speed and remaining time. */
export function progressText(verb: string, done: number, begun: number, total: number, ms: number): string {
  const share = total === 0 ? 100 : Math.floor((done * 100) / total);
  const pace = ((done - begun) * 1000) / Math.max(ms, 1);
  const left = pace > 0 ? `  ${formatDuration(((total - done) / pace) * 1000)} left` : '';
  return `${INDENT}${verb.padEnd(9)}  ${String(share).padStart(3)} %  ${figure(done)} of ${rows(total)}  ${figure(pace)} rows/s${left}`;
}

/** Shows the progress of a move after two seconds. */
export function progressLine(out: Output, clock: Clock): Report {
  const begun = clock.monotonic();
  let drawn = Number.NEGATIVE_INFINITY;
  let phase: { name: Step['phase']; at: number; rows: number } | undefined;
  return (step) => {
    if (!('rows' in step)) return;
    const now = clock.monotonic();
    if (phase?.name !== step.phase) phase = { name: step.phase, at: now, rows: step.rows };
    if (now - begun < QUIET_MS || now - drawn < REDRAW_MS) return;
    drawn = now;
    out.progress(printable(progressText(step.phase, step.rows, phase.rows, step.total, now - phase.at)));
  };
}
