/**
 * Matches runs with targets: the question of Jepsen's analysis of a scheduler. A target is a window in which one run is
 * due; a run matches at most one. Pure.
 */

/** Both ends are included. */
export type Window = { from: number; until: number };

export type Matching = {
  /** For each window the index of its point; `undefined` if it has none. */
  pointOf: (number | undefined)[];
  /** Indices of points that match no window, in order of time. */
  left: number[];
};

/**
 * Gives as many windows as possible their own point. In order of time, each point goes to the open window that ends
 * first. That window has the fewest later candidates, so no other choice matches more.
 */
export function matchWindows(windows: readonly Window[], points: readonly number[]): Matching {
  const pointOf: (number | undefined)[] = windows.map(() => undefined);
  const left: number[] = [];
  const opening = [...windows.keys()].sort((one, other) => windows[one]!.from - windows[other]!.from);
  const inTime = [...points.keys()].sort((one, other) => points[one]! - points[other]!);
  /** Indices of windows that have begun and have no point yet; the last one ends first. */
  const open: number[] = [];
  let begun = 0;
  for (const point of inTime) {
    const at = points[point]!;
    for (; begun < opening.length && windows[opening[begun]!]!.from <= at; begun++) insert(open, opening[begun]!);
    while (open.length > 0 && windows[open.at(-1)!]!.until < at) open.pop();
    const window = open.pop();
    if (window === undefined) left.push(point);
    else pointOf[window] = point;
  }
  return { pointOf, left };

  function insert(line: number[], window: number): void {
    const { until } = windows[window]!;
    let position = line.length;
    while (position > 0 && windows[line[position - 1]!]!.until < until) position--;
    line.splice(position, 0, window);
  }
}
