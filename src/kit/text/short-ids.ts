/** Ids shortened as far as they stay unique. Pure. */

/** The millisecond part of a UUIDv7: it distinguishes alarms of different milliseconds. */
export const ID_PREFIX = 13;

/** The shortest unique beginning of each id, as in git. */
export function shortIds(ids: readonly string[]): Map<string, string> {
  const sorted = [...new Set(ids)].sort();
  const shared = (one: string, other = '') => {
    let at = 0;
    while (at < one.length && one[at] === other[at]) at++;
    return at;
  };
  return new Map(
    sorted.map((id, at) => {
      const needed = Math.max(shared(id, sorted[at - 1]), shared(id, sorted[at + 1])) + 1;
      return [id, id.slice(0, Math.max(ID_PREFIX, needed))];
    }),
  );
}
