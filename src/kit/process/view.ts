/** What a program behind walls sees, and what can hold the walls. Pure. */
import { dirname, isAbsolute, relative } from 'node:path';

/** A folder or file that a program gets although it lies below a hidden place. */
export type Grant = { readonly path: string; readonly writable: boolean };

/** Another user of the system. */
export type ProgramUser = { readonly uid: number; readonly gid: number };

/** What holds the walls, or why nothing does, in words that finish the sentence "programs are not separated: …". */
export type Means =
  | { readonly kind: 'bubblewrap'; readonly path: string }
  | { readonly kind: 'seatbelt'; readonly path: string }
  | { readonly kind: 'none'; readonly why: string };

/** What a program finds: all paths are real and exist, and none of a list lies below another of the same list. */
export type View = {
  readonly hidden: readonly { readonly path: string; readonly isFolder: boolean }[];
  readonly shown: readonly Grant[];
  readonly kept: readonly string[];
};

/** Whether a path is a folder, or lies below it. */
export function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith('../') && !isAbsolute(way);
}

/**
 * The folders that lead to what is hidden or kept, from the outermost on. Walls stand at paths: a program that could
 * move one of these, and be started again, would find what was hidden at a path that nobody hides.
 */
export function leadingTo({ hidden, kept }: Pick<View, 'hidden' | 'kept'>): string[] {
  const found = new Set<string>();
  for (const path of [...hidden.map((place) => place.path), ...kept])
    for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder)) found.add(folder);
  // A path is longer than those of the folders that it lies in.
  return [...found]
    .filter((path) => !hidden.some((place) => isWithin(path, place.path)))
    .sort((one, other) => one.length - other.length);
}
