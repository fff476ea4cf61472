/** Whether the tools of a server are those that the manifest declares: no more, no fewer, each once. */
import type { DeclaredTool } from './manifest.ts';
import type { ToolDefinition } from './tool-definition.ts';

/**
 * @param declared `undefined`: whatever the server has is right, as long as no name is there twice
 * @returns a sentence about each tool that differs; none when they are the same
 */
export function bijectionDifferences(
  declared: ReadonlyMap<string, DeclaredTool> | undefined,
  live: readonly ToolDefinition[],
): string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  for (const { name } of live) {
    const shown = JSON.stringify(name);
    if (seen.has(name)) found.push(`${shown} is listed twice by the server`);
    else if (declared && !declared.has(name)) found.push(`${shown} is not declared in the manifest`);
    seen.add(name);
  }
  for (const name of declared?.keys() ?? []) {
    if (!seen.has(name))
      found.push(`${JSON.stringify(name)} is declared in the manifest and the server does not have it`);
  }
  return found;
}
