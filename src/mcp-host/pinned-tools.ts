/**
 * Checks a server's tools against the names that its manifest declares and the definitions that the lock beside it
 * pins.
 */
import type { DeclaredTool, ServerSpec } from './manifest.ts';
import type { ToolDefinition } from './tool-definition.ts';
import { pinDifferences, type ToolPins } from './tool-lock.ts';

/** The server's tools differ from the declared or pinned tools. */
export class ToolMismatch extends Error {
  override name = 'ToolMismatch';
  /** One sentence for each tool that differs. */
  readonly differences: readonly string[];

  constructor(differences: readonly string[]) {
    super(differences.join('; '));
    this.differences = differences;
  }
}

export class PinnedTools {
  readonly #declared: ServerSpec['tools'];
  readonly #pins: ToolPins | undefined;

  /** @param pins the pinned definitions; `undefined` where the lock does not name the server */
  constructor({ tools }: ServerSpec, pins: ToolPins | undefined) {
    this.#declared = tools;
    this.#pins = pins;
  }

  /** Whether nothing is declared or pinned. Then the server may have any tools, each name once. */
  get isEmpty(): boolean {
    return this.#declared === undefined && this.#pins === undefined;
  }

  /** One sentence for each tool that differs; empty when none does. */
  differences(live: readonly ToolDefinition[]): string[] {
    return [...nameDifferences(this.#declared, live), ...pinDifferences(this.#pins, live)];
  }

  /** @throws Mismatch when a tool differs */
  check(live: readonly ToolDefinition[]): void {
    const differences = this.differences(live);
    if (differences.length > 0) throw new ToolMismatch(differences);
  }
}

/**
 * @param declared `undefined` accepts any tools, as long as no name is listed twice
 * @returns one sentence for each tool that differs; empty when none does
 */
function nameDifferences(
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
      found.push(`${JSON.stringify(name)} is declared in the manifest, but the server does not have it`);
  }
  return found;
}
