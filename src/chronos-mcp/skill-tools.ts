/** The tool URIs in a skill's `§TOOLS` blocks, `matrix://tool/mcp/<alias>/<tool>@<version>` (contracts §8). */

/** One entry of a block; the parts are absent where the text is no tool URI. */
export type SkillTool = {
  /** Counts from 1. */
  line: number;
  text: string;
  parts: { alias: string; tool: string; version: string } | undefined;
};

const TOOL_URI = /^matrix:\/\/tool\/mcp\/([A-Za-z0-9_-]+)\/([A-Za-z0-9._-]+)@([0-9A-Za-z.+-]+)$/;

function readEntry(text: string, line: number): SkillTool {
  const match = TOOL_URI.exec(text);
  if (!match) return { line, text, parts: undefined };
  const [, alias, tool, version] = match;
  return { line, text, parts: { alias: alias!, tool: tool!, version: version! } };
}

/**
 * Reads the entries of every `§TOOLS` block: one per line, up to a line that says `end`. Blank lines and comments (`#`, `//`)
 * are passed over.
 *
 * @throws Error when a block has no `end`
 */
export function readSkillTools(text: string): SkillTool[] {
  const entries: SkillTool[] = [];
  let openedAt: number | undefined;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    const content = raw.trim();
    if (content.startsWith('§')) {
      if (openedAt !== undefined)
        throw new Error(`the §TOOLS block of line ${openedAt} has no end before line ${line}`);
      openedAt = /^§TOOLS\b/.test(content) ? line : undefined;
      continue;
    }
    if (openedAt === undefined || content === '' || content.startsWith('#') || content.startsWith('//')) continue;
    if (content === 'end') openedAt = undefined;
    else entries.push(readEntry(content, line));
  }
  if (openedAt !== undefined) throw new Error(`the §TOOLS block of line ${openedAt} has no end`);
  return entries;
}
