/** Tool URIs, `matrix://tool/mcp/<alias>/<tool>@<version>` (docs/reference/manifests.md), as text. */

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
