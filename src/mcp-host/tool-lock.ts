/**
 * The lock beside a manifest (`agents/neo.lock.json`): the definition of each tool when a person reviewed and approved
 * it.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { JsonSyntaxError, readJsonWithPositions } from '../kit/json/strict-json.ts';
import { ReveilleError, systemCodeOf, thrownText } from '../wire/errors.ts';
import { checkInput } from '../wire/validate.ts';
import type { DeclaredTool, ServerSpec } from './manifest.ts';
import { definitionOf, digestOf, type ToolDefinition, toolDefinitionSchema } from './tool-definition.ts';

const toolLockSchema = z.strictObject({
  lock_version: z.literal(1),
  /** Alias to tool to SHA-256 of its definition. A server without an entry is not pinned. */
  servers: z.record(
    z.string(),
    z.record(z.string(), z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in lower-case hex')),
  ),
});
export type ToolLock = z.output<typeof toolLockSchema>;

export type ToolPins = Readonly<Record<string, string>>;

/** The definitions behind the pins of a lock, by alias. */
export type KnownTools = Readonly<Record<string, readonly ToolDefinition[]>>;

const knownToolsSchema = z.strictObject({
  tools_version: z.literal(1),
  servers: z.record(z.string(), z.array(toolDefinitionSchema)),
});

const REMEDY = 'run `reveille tools pin` after you have reviewed the change';

export function toolsPathOf(manifestPath: string): string {
  return `${manifestPath.replace(/\.json$/, '')}.tools.json`;
}

/**
 * Reads the definitions that are stored beside a manifest. They are trusted only as far as the pins confirm them. An
 * unreadable file therefore counts as none; the servers list their tools themselves.
 */
export function readKnownTools(manifestPath: string): KnownTools | undefined {
  try {
    const text = readFileSync(toolsPathOf(manifestPath), 'utf8');
    return knownToolsSchema.parse(JSON.parse(text)).servers as KnownTools;
  } catch {
    return undefined;
  }
}

/** Writes the definitions in one step, sorted by alias and name. */
export function writeKnownTools(manifestPath: string, known: KnownTools): void {
  const byName = (one: ToolDefinition, other: ToolDefinition) => (one.name < other.name ? -1 : 1);
  const servers = Object.keys(known)
    .sort()
    .map((alias) => [alias, known[alias]!.map(definitionOf).sort(byName)] as const);
  const path = toolsPathOf(manifestPath);
  const temporaryPath = `${path}.new`;
  writeFileSync(
    temporaryPath,
    `${JSON.stringify({ tools_version: 1, servers: Object.fromEntries(servers) }, null, 2)}\n`,
  );
  renameSync(temporaryPath, path);
}

export function lockPathOf(manifestPath: string): string {
  return `${manifestPath.replace(/\.json$/, '')}.lock.json`;
}

function parseLock(path: string, text: string): ToolLock {
  try {
    const { value, positionOf: placeOf } = readJsonWithPositions(text);
    const checked = checkInput(toolLockSchema, value);
    if ('value' in checked) return checked.value;
    const lines = checked.problems.map(({ path: at, sentence }) => {
      const { line, column } = placeOf(at);
      return `${path}:${line}:${column}: ${sentence}`;
    });
    throw new ReveilleError('invalid_request', lines.join('\n'));
  } catch (thrown) {
    if (!(thrown instanceof JsonSyntaxError)) throw thrown;
    const { line, column } = thrown.position;
    throw new ReveilleError('invalid_request', `${path}:${line}:${column}: this is not JSON: ${thrown.message}`);
  }
}

/**
 * @returns `undefined` where there is no such file
 * @throws ReveilleError `invalid_request` for an unreadable file: a broken lock does not count as none
 */
export function readLock(path: string): ToolLock | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if (systemCodeOf(cause) === 'ENOENT') return undefined;
    throw new ReveilleError('invalid_request', `the tool lock ${path} cannot be read: ${thrownText(cause)}`, { cause });
  }
  return parseLock(path, text);
}

/** Writes a lock in one step, sorted, so that a diff shows the changes. */
export function writeLock(path: string, lock: ToolLock): void {
  const aliases = Object.keys(lock.servers).sort();
  const servers = aliases.map((alias) => [alias, Object.fromEntries(Object.entries(lock.servers[alias]!).sort())]);
  const text = `${JSON.stringify({ lock_version: 1, servers: Object.fromEntries(servers) }, null, 2)}\n`;
  const temporaryPath = `${path}.new`;
  writeFileSync(temporaryPath, text);
  renameSync(temporaryPath, path);
}

/** A lock that pins these tools. */
export function lockOf(tools: readonly { alias: string; definition: ToolDefinition }[]): ToolLock {
  const servers: Record<string, Record<string, string>> = {};
  for (const { alias, definition } of tools) {
    servers[alias] ??= {};
    servers[alias][definition.name] = digestOf(definition);
  }
  return { lock_version: 1, servers };
}

/** How a server's tools differ from their pins; one sentence for each tool, with the remedy. */
export function pinDifferences(pins: ToolPins | undefined, live: readonly ToolDefinition[]): string[] {
  if (pins === undefined) return [];
  const names = new Set(live.map(({ name }) => name));
  const found = live.flatMap((definition) => {
    const { name } = definition;
    const pinned = Object.hasOwn(pins, name) ? pins[name] : undefined;
    if (pinned === undefined) return [`${JSON.stringify(name)} is not pinned; ${REMEDY}`];
    const digest = digestOf(definition);
    if (digest === pinned) return [];
    const digests = `pinned ${pinned.slice(0, 12)}, live ${digest.slice(0, 12)}`;
    return [
      `${JSON.stringify(name)} differs in description or schema from the pinned definition (${digests}); ${REMEDY}`,
    ];
  });
  const removed = Object.keys(pins).filter((name) => !names.has(name));
  return [
    ...found,
    ...removed.map((name) => `${JSON.stringify(name)} is pinned, but the server does not have it; ${REMEDY}`),
  ];
}

// Checks a server's tools against the names that its manifest declares and the definitions that the lock beside it
// pins.

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
