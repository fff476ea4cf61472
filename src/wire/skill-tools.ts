/**
 * The `§TOOLS` blocks of a skill: the URIs of the tools that its runs need,
 * `matrix://tool/mcp/<alias>/<tool>@<version>` (docs/reference/manifests.md). With `§TOOLS only` its runs may use no other
 * tools.
 */
import { ReveilleError } from './errors.ts';

/** One line of a block. */
export type SkillEntry = {
  /** 1 for the first line. */
  readonly line: number;
  readonly text: string;
};

export type SkillTools = {
  readonly entries: readonly SkillEntry[];
  /** Whether a block excludes all other tools. */
  readonly limits: boolean;
};

/**
 * Reads the entries of every `§TOOLS` block: one per line, up to a line `end`. Blank lines and comments (`#`, `//`) are
 * skipped.
 *
 * @returns no entries and no limits for a skill without such a block
 * @throws ReveilleError `invalid_request` if a block has no `end`, or another heading than these two
 */
export function readSkillTools(skill: string): SkillTools {
  const entries: SkillEntry[] = [];
  let limits = false;
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
      const heading = text.replace(/\s+/g, ' ');
      if (heading !== '§TOOLS' && heading !== '§TOOLS only') {
        const got = JSON.stringify(heading.slice(0, 60));
        const message = `line ${line} must be "§TOOLS", for required tools, or "§TOOLS only", for no other tools (got ${got})`;
        throw new ReveilleError('invalid_request', message);
      }
      limits ||= heading !== '§TOOLS';
      openedAt = line;
    } else if (openedAt === undefined || text === '' || /^(#|\/\/)/.test(text)) {
    } else if (text === 'end') {
      openedAt = undefined;
    } else {
      entries.push({ line, text });
    }
  }
  refuseOpen('');
  return { entries, limits };
}
