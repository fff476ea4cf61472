import assert from 'node:assert/strict';
import { test } from 'node:test';
import { styleText } from 'node:util';
import { DEFAULT_PROFILE } from '../../chronometric/profile/profile.ts';
import type { ActiveSpan, Session } from '../../chronometric/state/state.ts';
import { callContextOf } from '../../chronometric/tools/call-context.ts';
import { viewDay, viewWeek } from '../../chronometric/view/day-view.ts';
import { textWidth } from './columns.ts';
import type { Reader } from './render.ts';
import { renderDay, renderWeek } from './time-screen.ts';

const ZONE = 'Europe/Berlin';
const at = (clock: string) => Date.parse(`2026-06-15T${clock}:00+02:00`);
const span = (from: string, to: string): ActiveSpan => ({ from: at(from), to: at(to) });
const minutes = (count: number) => count * 60_000;

const session = (id: number, from: string, to: string, rest: Partial<Session>): Session => ({
  id: `00000000-0000-4000-8000-00000000000${id}`,
  intent: 'tune the regex',
  startedAt: at(from),
  lastSeenAt: at(to),
  activeMs: minutes(71),
  activeSinceBreakMs: minutes(71),
  ...rest,
});

const PLANNED = session(1, '08:52', '10:31', {
  intent: 'draft the migration plan',
  summary:
    'plan written: three phases, two open questions for Ana about the read replicas; the cut-over is on Thursday',
  endedAt: at('10:31'),
  ending: 'ended',
});
const OPEN = session(2, '13:20', '14:31', { intent: '  tune the regex\nuntil it stops matching commas ' });
const SPANS = [span('08:52', '09:40'), span('09:52', '10:55'), span('13:20', '14:31')];

function screen(
  sessions: readonly Session[],
  spans: readonly ActiveSpan[],
  { width = 80, now = at('14:32'), paint }: { width?: number; now?: number; paint?: Reader['paint'] } = {},
): string[] {
  const record = { sessionsBetween: () => sessions, spansBetween: () => spans };
  const look: Reader = { now, zone: ZONE, width, paint: paint ?? ((_, text) => text) };
  return renderDay(viewDay(record, callContextOf(now, ZONE, { profile: DEFAULT_PROFILE })), look);
}

test('a day is a bar over its hours, and row by row the intentions and their outcomes', () => {
  assert.deepEqual(screen([PLANNED, OPEN], SPANS), [
    'Monday 15 June 2026  Europe/Berlin (CEST)',
    '',
    '08:00   10:00   12:00   14:00',
    '   ███████▒▒·········██████',
    '',
    '08:52–10:31  1 h 27 min  draft the migration plan',
    '                         → plan written: three phases, two open questions for',
    '                           Ana about the read replicas; the cut-over is on',
    '                           Thursday',
    '                         away 12 min at 09:40',
    '10:31–10:55  24 min      no session',
    '10:55–13:20  2 h 25 min  away',
    '13:20–now    1 h 11 min  tune the regex until it stops matching commas',
    '                         open',
    '                         break due (gentle): 1 h 11 min active without one',
    '',
    'Active 3 h 2 min, 2 h 38 min of it in 2 sessions. Away 2 h 37 min.',
  ]);
});

test('a narrow terminal gets the text below the times, and no line that is too long', () => {
  const lines = screen([PLANNED, OPEN], SPANS, { width: 40 });
  assert.ok(
    lines.every((line) => textWidth(line) <= 40),
    lines.join('\n'),
  );
  assert.deepEqual(lines.slice(6, 14), [
    '08:52–10:31  1 h 27 min',
    '  draft the migration plan',
    '  → plan written: three phases, two open',
    '    questions for Ana about the read',
    '    replicas; the cut-over is on Thursd…',
    '  away 12 min at 09:40',
    '10:31–10:55  24 min  no session',
    '10:55–13:20  2 h 25 min  away',
  ]);
});

test('colours change nothing but colours', () => {
  const paint: Reader['paint'] = (style, text) => styleText(style, text, { validateStream: false });
  const coloured = screen([PLANNED, OPEN], SPANS, { paint });
  assert.match(coloured[0]!, /^\u001b\[1mMonday/);
  assert.match(coloured.join('\n'), /\u001b\[33mbreak due/);
  const plain = coloured.map((line) => line.replaceAll(/\u001b\[\d+m/g, ''));
  assert.deepEqual(plain, screen([PLANNED, OPEN], SPANS));
});

test('text of people cannot control the terminal, and wide characters are counted as wide', () => {
  const intent = `修复 🐛 \u001b]0;evil\u0007\u202egnp.exe\u2069 שלום ${'\u0301'.repeat(3)}\ud800 ${'漢'.repeat(60)}`;
  for (const width of [30, 40, 80, 200]) {
    const lines = screen([session(1, '13:20', '14:31', { intent, summary: `\r\n\t${intent}\u0000` })], SPANS, {
      width,
    });
    const text = lines.join('\n');
    assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/u);
    assert.ok(text.isWellFormed());
    assert.ok(
      lines.every((line) => textWidth(line) <= Math.max(width, 37)),
      `${width}\n${text}`,
    );
    assert.match(text, /修复 🐛/);
  }
});

test('an open session without recent activity is not current, and one from another day is marked', () => {
  const away = screen([OPEN], [span('13:20', '14:31')], { now: at('16:00') });
  assert.ok(away.some((line) => line.startsWith('13:20–14:31')));
  assert.ok(away.some((line) => line.includes('open, last seen 1 h 29 min ago')));
  assert.ok(!away.join('\n').includes('break due'), 'a break is active');
  const older = { ...OPEN, startedAt: OPEN.startedAt - minutes(1440), lastSeenAt: OPEN.lastSeenAt - minutes(1440) };
  assert.deepEqual(screen([older], [], { now: at('09:00') }).slice(1, 4), [
    '',
    'Still open from 14 June 2026, 13:20; it was last seen 14 June 2026, 14:31:',
    '  tune the regex until it stops matching commas',
  ]);
});

test('a night that is an hour longer has its hours in the bar, and a note', () => {
  const now = Date.parse('2026-10-25T03:30:00+01:00');
  const night = { from: Date.parse('2026-10-25T00:00:00+02:00'), to: now };
  const lines = screen([], [night], { now });
  assert.deepEqual(lines.slice(2, 4), ['00:00   02:00   03:00', '▒'.repeat(18)]);
  assert.ok(lines.includes('00:00–03:30  4 h 30 min  no session'));
  assert.equal(lines.at(-1), 'The clock is put back on this day: it has 25 hours.');
});

test('a week has a line for each day and its sessions', () => {
  const now = at('14:32');
  const record = {
    sessionsBetween: (from: number, to: number) =>
      [PLANNED, OPEN].filter((one) => one.startedAt >= from && one.startedAt < to),
    spansBetween: (from: number, to: number) => SPANS.filter((one) => one.from >= from && one.to <= to),
  };
  const week = viewWeek(record, callContextOf(now, ZONE, { profile: DEFAULT_PROFILE }));
  const lines = renderWeek(week, { now, zone: ZONE, width: 60, paint: (_, text) => text });
  assert.deepEqual(lines, [
    'The seven days to 15 June 2026',
    'Europe/Berlin (CEST)',
    '',
    ...['Tue  9', 'Wed 10', 'Thu 11', 'Fri 12', 'Sat 13', 'Sun 14'].map((day) => `${day} Jun  -`),
    `Mon 15 Jun  3 h 2 min    ${'█'.repeat(24)}`,
    '    draft the migration plan → plan written: three phases,…',
    '    tune the regex until it stops matching commas (open)',
    '',
    'Active 3 h 2 min, 2 h 38 min of it in 2 sessions. Away 2 h',
    '37 min.',
  ]);
  const narrow = renderWeek(week, { now, zone: ZONE, width: 40, paint: (_, text) => text });
  // Both have output.
  assert.deepEqual(narrow.slice(10, 12), [
    '    draft the migrati… → plan written:…',
    '    tune the regex until it stop… (open)',
  ]);
});
