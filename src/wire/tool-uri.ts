/** Tool URIs, `matrix://tool/mcp/<alias>/<tool>@<version>` (docs/contracts.md §8), as text. */

export type ToolUri = { alias: string; tool: string; version: string };

const TOOL_URI = /^matrix:\/\/tool\/mcp\/([^/@]+)\/([^/@]+)@([^/@]+)$/;

/** Characters that would end a part are escaped, as in any URI. */
export function writeToolUri({ alias, tool, version }: ToolUri): string {
  // A lone surrogate has no UTF-8, and so no escape.
  const [one, two, three] = [alias, tool, version].map((part) => encodeURIComponent(part.toWellFormed()));
  return `matrix://tool/mcp/${one}/${two}@${three}`;
}

/** @returns `undefined` for what is no tool URI */
export function readToolUri(text: string): ToolUri | undefined {
  const match = TOOL_URI.exec(text);
  if (!match) return undefined;
  try {
    const [alias, tool, version] = match.slice(1).map(decodeURIComponent) as [string, string, string];
    return { alias, tool, version };
  } catch {
    // A percent sign that begins no escape.
    return undefined;
  }
}
