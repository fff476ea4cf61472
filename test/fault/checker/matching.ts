/**
 * Which run answers which target: the question of Jepsen's analysis of a scheduler. A target is a window in which one
 * run is owed; a run answers at most one. Pure.
 */

/** Both ends belong to it. */
export type Window = { from: number; until: number };

export type Matching = {
  /** For each window the index of its point; `undefined` where it has none. */
  pointOf: (number | undefined)[];
  /** Indices of points that answer no window, in order of time. */
  left: number[];
};

/**
 * Gives as many windows as possible a point of their own. Going through the points in order of time, each goes to the
 * window that ends first among those that are open: it has the least to hope for from later points, so no other choice
 * matches more.
 */
export function matchWindows(windows: readonly Window[], points: readonly number[]): Matching {
  const pointOf: (number | undefined)[] = windows.map(() => undefined);
  const left: number[] = [];
  const opening = [...windows.keys()].sort((one, other) => windows[one]!.from - windows[other]!.from);
  const inTime = [...points.keys()].sort((one, other) => points[one]! - points[other]!);
  /** Indices of windows that have begun and have no point yet, the one that ends first at the end. */
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
    let place = line.length;
    while (place > 0 && windows[line[place - 1]!]!.until < until) place--;
    line.splice(place, 0, window);
  }
}
