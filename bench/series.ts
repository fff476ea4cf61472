/** The jobs of a measurement: their number and due times, equal for all systems. Pure. */

/** Jobs that fall due one after the other, evenly spread over a span of time. */
export type Series = {
  /** Distinguishes the series of one measurement; part of the jobs' ids. At most 4095. */
  number: number;
  count: number;
  /** Due time of the first job, epoch ms. */
  firstDue: number;
  spanMs: number;
  /** Number of users that share the jobs; {@link OWNERS} by default. Peers know no more than those. */
  owners?: number | undefined;
};

export type Job = { id: string; owner: string; due: number };

/** The users of the jobs, in rotation. Peers have no owners; for them it is a field of the body. */
export const OWNERS = 200;

export function dueOf({ count, firstDue, spanMs }: Series, index: number): number {
  return firstDue + Math.floor((index * spanMs) / count);
}

export function ownerName(index: number, owners = OWNERS): string {
  return `user-${String(index % owners).padStart(5, '0')}`;
}

/** Prefix of every id of a series; twelve hex digits of the index follow. The form is a UUIDv7. */
export function idPrefix(number: number): string {
  return `01900000-0000-7${number.toString(16).padStart(3, '0')}-8000-`;
}

export function jobOf(series: Series, index: number): Job {
  const id = `${idPrefix(series.number)}${index.toString(16).padStart(12, '0')}`;
  return { id, owner: ownerName(index), due: dueOf(series, index) };
}

/** The part of a series that is due before a time, epoch ms. */
export function dueBefore(series: Series, instant: number): Series {
  const { count, firstDue, spanMs } = series;
  const passed = Math.min(Math.max(Math.ceil(instant - firstDue), 0), spanMs);
  return { ...series, spanMs: passed, count: Math.ceil((passed * count) / spanMs) };
}

/** Latest due time of a series. */
export function endOf({ firstDue, spanMs }: Series): number {
  return firstDue + spanMs;
}
