/**
 * Tool URIs, `matrix://tool/mcp/<alias>/<tool>@<version>` (docs/reference/manifests.md), as text, and the `§TOOLS`
 * blocks of a skill, which list the URIs of the tools that its runs need. With `§TOOLS only` its runs may use no other
 * tools.
 */
import { ReveilleError } from './errors.ts';

export type ToolUri = { alias: string; tool: string; version: string };

const TOOL_URI = /^matrix:\/\/tool\/mcp\/([^/@]+)\/([^/@]+)@([^/@]+)$/;

/** Reserved characters in a part are escaped, as in any URI. */
export function writeToolUri({ alias, tool, version }: ToolUri): string {
  // A lone surrogate has no UTF-8 form, so it cannot be escaped.
  const [one, two, three] = [alias, tool, version].map((part) => encodeURIComponent(part.toWellFormed()));
  return `matrix://tool/mcp/${one}/${two}@${three}`;
}

/** @returns `undefined` if the text is not a tool URI */
export function readToolUri(text: string): ToolUri | undefined {
  const match = TOOL_URI.exec(text);
  if (!match) return undefined;
  try {
    const [alias, tool, version] = match.slice(1).map(decodeURIComponent) as [string, string, string];
    return { alias, tool, version };
  } catch {
    // A percent sign without a valid escape.
    return undefined;
  }
}

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
