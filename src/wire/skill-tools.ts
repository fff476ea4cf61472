/**
 * The `§TOOLS` blocks of a skill: the tool URIs, `matrix://tool/mcp/<alias>/<tool>@<version>` (docs/contracts.md §8),
 * that a run under it may use.
 */
import { ReveilleError } from './errors.ts';

/** One entry of a block. */
export type SkillEntry = {
  /** Counts from 1. */
  readonly line: number;
  readonly text: string;
};

/**
 * Reads the entries of every `§TOOLS` block: one per line, up to a line that says `end`. Blank lines and comments (`#`,
 * `//`) are passed over.
 *
 * @returns `undefined` for a skill without such a block, which limits nothing
 * @throws ReveilleError `invalid_request` when a block has no `end`
 */
export function readSkillTools(skill: string): SkillEntry[] | undefined {
  let entries: SkillEntry[] | undefined;
  let openedAt: number | undefined;
  const refuseOpen = (where: string) => {
    if (openedAt === undefined) return;
    throw new ReveilleError('invalid_request', `the §TOOLS block of line ${openedAt} has no end${where}`);
  };
  for (const [index, raw] of skill.split(/\r?\n/).entries()) {
    const line = index + 1;
    const text = raw.trim();
    if (text.startsWith('§')) {
      refuseOpen(` before line ${line}`);
      if (!/^§TOOLS\b/.test(text)) continue;
      openedAt = line;
      entries ??= [];
    } else if (openedAt === undefined || text === '' || /^(#|\/\/)/.test(text)) {
    } else if (text === 'end') {
      openedAt = undefined;
    } else {
      entries!.push({ line, text });
    }
  }
  refuseOpen('');
  return entries;
}
