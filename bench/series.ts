/** The jobs of a measurement: how many, and when each is due. Every system gets the same. Pure. */

/** Jobs that fall due one after the other, evenly spread over a span of time. */
export type Series = {
  /** Tells series of one measurement apart; part of the jobs' ids. At most 4095. */
  number: number;
  count: number;
  /** When the first is due, epoch ms. */
  firstDue: number;
  spanMs: number;
  /** How many users they are dealt out to; {@link OWNERS} unless told. Peers know no more than those. */
  owners?: number | undefined;
};

export type Job = { id: string; owner: string; due: number };

/** The users that jobs are dealt out to, one after the other. Peers know no owners; for them it is a member of the body. */
export const OWNERS = 200;

export function dueOf({ count, firstDue, spanMs }: Series, index: number): number {
  return firstDue + Math.floor((index * spanMs) / count);
}

export function ownerName(index: number, owners = OWNERS): string {
  return `user-${String(index % owners).padStart(5, '0')}`;
}

/** What every id of a series begins with; twelve hex digits of the index follow. A UUIDv7 by its form. */
export function idPrefix(number: number): string {
  return `01900000-0000-7${number.toString(16).padStart(3, '0')}-8000-`;
}

export function jobOf(series: Series, index: number): Job {
  const id = `${idPrefix(series.number)}${index.toString(16).padStart(12, '0')}`;
  return { id, owner: ownerName(index), due: dueOf(series, index) };
}

/** The part of a series that is due before an instant, epoch ms. */
export function dueBefore(series: Series, instant: number): Series {
  const { count, firstDue, spanMs } = series;
  const passed = Math.min(Math.max(Math.ceil(instant - firstDue), 0), spanMs);
  return { ...series, spanMs: passed, count: Math.ceil((passed * count) / spanMs) };
}

/** When the last job of a series is due, at the latest. */
export function endOf({ firstDue, spanMs }: Series): number {
  return firstDue + spanMs;
}
