/** Edit distance between words, for "did you mean" suggestions. */

/** Damerau–Levenshtein distance: insertions, deletions, substitutions and swaps of neighbours. */
export function editDistance(one: string, other: string): number {
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const change = row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      const swap = swapped ? before[j - 2]! + 1 : change;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, change, swap));
    }
    before = row;
    row = next;
  }
  return row[other.length]!;
}

/** Maximum distance of a suggestion. */
const CLOSE = 3;

/** The name that is closest to a word, if any is close enough. */
export function nearestOf(word: string, names: Iterable<string>): string | undefined {
  const [nearest] = [...names]
    .filter((name) => Math.abs(name.length - word.length) <= CLOSE)
    .map((name) => ({ name, distance: editDistance(word, name) }))
    .sort((one, other) => one.distance - other.distance);
  return nearest !== undefined && nearest.distance <= CLOSE && nearest.distance < word.length / 2
    ? nearest.name
    : undefined;
}
