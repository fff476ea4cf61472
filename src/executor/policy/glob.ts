/** Patterns in which `*` stands for any characters, also none, also `/`; all others stand for themselves. Pure. */

/**
 * Whether the whole text fits. Nothing is normalised: characters are compared code unit by code unit.
 *
 * Given another pattern as `text`, a `true` means that every text that fits that pattern fits this one.
 */
export function fitsGlob(glob: string, text: string): boolean {
  const [head, ...rest] = glob.split('*') as [string, ...string[]];
  const tail = rest.pop();
  if (tail === undefined) return text === head;
  if (!text.startsWith(head) || text.length < head.length + tail.length || !text.endsWith(tail)) return false;
  let at = head.length;
  const end = text.length - tail.length;
  for (const part of rest) {
    // The leftmost place leaves the most to those that follow.
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
