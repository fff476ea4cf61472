/**
 * What was agreed on about a server's tools: the names that its manifest declares, the definitions that the lock beside
 * it pins.
 */
import type { DeclaredTool, ServerSpec } from './manifest.ts';
import type { ToolDefinition } from './tool-definition.ts';
import { pinDifferences, type ToolPins } from './tool-lock.ts';

/** A server's tools are not those that it may have. */
export class Mismatch extends Error {
  override name = 'Mismatch';
  /** A sentence about each tool that differs. */
  readonly differences: readonly string[];

  constructor(differences: readonly string[]) {
    super(differences.join('; '));
    this.differences = differences;
  }
}

export class Agreement {
  readonly #declared: ServerSpec['tools'];
  readonly #pins: ToolPins | undefined;

  /** @param pins the definitions that were agreed on; `undefined` where the lock does not name the server */
  constructor({ tools }: ServerSpec, pins: ToolPins | undefined) {
    this.#declared = tools;
    this.#pins = pins;
  }

  /** Whether nothing was agreed on: then the server may have whatever tools it likes, each once. */
  get isEmpty(): boolean {
    return this.#declared === undefined && this.#pins === undefined;
  }

  /** A sentence about each tool that differs; none when they are as agreed. */
  differences(live: readonly ToolDefinition[]): string[] {
    return [...bijectionDifferences(this.#declared, live), ...pinDifferences(this.#pins, live)];
  }

  /** @throws Mismatch when the tools are not as agreed */
  check(live: readonly ToolDefinition[]): void {
    const differences = this.differences(live);
    if (differences.length > 0) throw new Mismatch(differences);
  }
}

/**
 * @param declared `undefined`: whatever the server has is right, as long as no name is there twice
 * @returns a sentence about each tool that differs; none when they are the same
 */
function bijectionDifferences(
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
