/** Work that is begun before it is its turn. */

/**
 * Gives what comes of items, in their order, while work on the next ones is under way.
 *
 * @param width on how many at a time
 * @throws what work on an item throws, when it is the item's turn; all that was begun has ended by then
 */
export async function* ahead<Item, Done>(
  items: Iterable<Item>,
  width: number,
  begin: (item: Item) => Promise<Done>,
): AsyncGenerator<Done, void, void> {
  const begun: Promise<Done>[] = [];
  try {
    for (const item of items) {
      const work = begin(item);
      // What it throws is thrown when it is its turn.
      work.catch(() => {});
      begun.push(work);
      if (begun.length >= width) yield await begun.shift()!;
    }
    while (begun.length > 0) yield await begun.shift()!;
  } finally {
    await Promise.allSettled(begun);
  }
}
