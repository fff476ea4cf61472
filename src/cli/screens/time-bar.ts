/** A day as a bar: hours from left to right, what was active in them. Pure. */
import { formatWithOffset } from '../../kit/clock/wall-clock.ts';
import type { DayView } from '../../wire/chronometric-view.ts';
import type { Look } from './render.ts';
import { clockOf } from './time-words.ts';

const HOUR_MS = 3_600_000;
const QUARTER_MS = HOUR_MS / 4;
/** Cells that an hour may take, the most first: each is a quarter, a half or a whole hour. */
const CELLS_PER_HOUR = [4, 2, 1] as const;
/** `08:00` and a blank. */
const LABEL_WIDTH = 6;

type Kind = 'session' | 'loose' | 'away' | 'nothing';

const GLYPHS: Readonly<Record<Kind, string>> = { session: '█', loose: '▒', away: '·', nothing: ' ' };

/** What most of a stretch of time was; anything active counts before being away does, so that nothing short is lost. */
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

/**
 * Full hours by the wall clock of the day; zones differ from UTC by quarters of an hour, so that quarters are where
 * they are.
 */
function hourBefore(instant: string): number {
  const minutes = Number(clockOf(instant).slice(3));
  const quarter = Math.floor(Date.parse(instant) / QUARTER_MS) * QUARTER_MS;
  return quarter - Math.floor(minutes / 15) * QUARTER_MS;
}

/** Cells of one kind beside each other are coloured together. */
function painted(kinds: readonly Kind[], look: Look): string {
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

/** @returns two lines, or none where there is nothing to show or no room for it */
export function dayBar(view: DayView, look: Look): string[] {
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
