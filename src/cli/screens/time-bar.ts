/** A day as a bar: hours from left to right with active time. Pure. */
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { DayView } from '../../wire/chronometric-view.ts';
import type { Reader } from './render.ts';
import { clockOf } from './time-text.ts';

const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / 4;
/** Cells of an hour, the widest first: each is a quarter, a half or a whole hour. */
const CELLS_PER_HOUR = [4, 2, 1] as const;
/** `08:00` and a blank. */
const LABEL_WIDTH = 6;

type Kind = 'session' | 'loose' | 'away' | 'nothing';

const GLYPHS: Readonly<Record<Kind, string>> = { session: '█', loose: '▒', away: '·', nothing: ' ' };

/** The kind of most of an interval. Active time wins, so that no short interval disappears. */
function kindOf(view: DayView, from: number, to: number): Kind {
  const spent: Record<Kind, number> = { session: 0, loose: 0, away: 0, nothing: 0 };
  for (const stretch of view.stretches) {
    const shared = Math.min(to, Date.parse(stretch.to)) - Math.max(from, Date.parse(stretch.from));
    const kind = stretch.kind === 'away' ? 'away' : stretch.session_id === null ? 'loose' : 'session';
    spent[kind] += Math.max(0, shared);
  }
  const active = spent.session + spent.loose;
  if (active === 0) return spent.away > 0 ? 'away' : 'nothing';
  if (active < (to - from) / 4 && spent.away > active) return 'away';
  return spent.session >= spent.loose ? 'session' : 'loose';
}

/** Full hours of the day by the wall clock. Zones differ from UTC by quarter hours, so steps are quarters. */
function hourBefore(instant: string): number {
  const minutes = Number(clockOf(instant).slice(3));
  const quarter = Math.floor(Date.parse(instant) / QUARTER_MS) * QUARTER_MS;
  return quarter - Math.floor(minutes / 15) * QUARTER_MS;
}

/** Adjacent cells of one kind are coloured together. */
function painted(kinds: readonly Kind[], look: Reader): string {
  let bar = '';
  for (let at = 0; at < kinds.length; ) {
    const kind = kinds[at]!;
    const next = kinds.findIndex((other, place) => place > at && other !== kind);
    const end = next < 0 ? kinds.length : next;
    const cells = GLYPHS[kind].repeat(end - at);
    if (kind === 'nothing') bar += end === kinds.length ? '' : cells;
    else bar += look.paint(kind === 'session' ? 'green' : 'dim', cells);
    at = end;
  }
  return bar;
}

/** @returns two lines; none without data or without space */
export function dayBar(view: DayView, look: Reader): string[] {
  const [first] = view.stretches;
  const last = view.stretches.at(-1);
  if (!first || !last) return [];
  const from = hourBefore(first.from);
  const hours = Math.max(1, Math.ceil((Date.parse(last.to) - from) / HOUR_MS));
  const perHour = CELLS_PER_HOUR.find((cells) => hours * cells <= look.width);
  if (perHour === undefined) return [];
  const cellMs = HOUR_MS / perHour;
  const kinds = Array.from({ length: hours * perHour }, (_, cell) =>
    kindOf(view, from + cell * cellMs, from + (cell + 1) * cellMs),
  );
  if (kinds.every((kind) => kind === 'nothing')) return [];
  const step = Math.max(1, Math.ceil(LABEL_WIDTH / perHour));
  let scale = '';
  for (let hour = 0; hour < hours; hour += step) {
    if (hour * perHour + LABEL_WIDTH - 1 > look.width) break;
    const label = formatWithOffset(view.timezone, from + hour * HOUR_MS);
    scale = `${scale.padEnd(hour * perHour)}${clockOf(label)}`;
  }
  return [look.paint('dim', scale), painted(kinds, look)];
}
