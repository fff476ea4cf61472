/** What was agreed on about a server's tools: the names that its manifest declares, the definitions that the lock beside it pins. */
import { bijectionDifferences } from './bijection.ts';
import type { ServerSpec } from './manifest.ts';
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
