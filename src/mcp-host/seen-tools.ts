/**
 * The tools of each server when it was first seen, or when a person last approved them: `mcp-seen.json` in the data
 * folder. It detects changes of an unpinned server, at a new listing and after a restart. A review shows the earlier
 * definitions.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Logger } from '../kit/log/log.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { systemCodeOf } from '../wire/errors.ts';
import { definitionOf, digestOf, type ToolDefinition, toolDefinitionSchema } from './tool-definition.ts';

/** Longer definitions are stored as their digest alone. In UTF-16 units. */
const LONGEST_KEPT = 64 * 1024;

const seenSchema = z.strictObject({
  seen_version: z.literal(1),
  servers: z.record(
    z.string(),
    z.record(z.string(), z.strictObject({ sha256: z.string(), definition: toolDefinitionSchema.optional() })),
  ),
});

/** A definition as it was seen; only its digest if it was too long to store. */
export type SeenTool = { readonly sha256: string; readonly definition?: ToolDefinition | undefined };
/** By the tools' names. */
type SeenServer = Readonly<Record<string, SeenTool>>;

const PARTS = [
  ['description', 'description'],
  ['inputSchema', 'input schema'],
  ['outputSchema', 'output schema'],
  ['annotations', 'annotations'],
] as const;

/** The changed parts of a definition: `description and annotations`. */
export function changedParts(before: SeenTool, now: ToolDefinition): string {
  const { definition: old } = before;
  if (old === undefined) return 'description, schema or annotations';
  const same = (one: unknown, other: unknown) =>
    one === undefined || other === undefined ? one === other : canonicalJson(one) === canonicalJson(other);
  const parts = PARTS.filter(([member]) => !same(old[member], now[member])).map(([, label]) => label);
  return parts.length > 1 ? `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}` : (parts[0] ?? 'definition');
}

/** One sentence for each tool that has changed. */
function differences(before: SeenServer, live: readonly ToolDefinition[]): string[] {
  const names = new Set(live.map(({ name }) => name));
  const now = live.flatMap((definition) => {
    const { name } = definition;
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (old === undefined) return [`${JSON.stringify(name)} is new`];
    if (old.sha256 === digestOf(definition)) return [];
    return [`${JSON.stringify(name)} has a changed ${changedParts(old, definition)}`];
  });
  const removed = Object.keys(before).filter((name) => !names.has(name));
  return [...now, ...removed.map((name) => `${JSON.stringify(name)} was removed`)];
}

function toSeenTool(definition: ToolDefinition): SeenTool {
  const kept = definitionOf(definition);
  const sha256 = digestOf(definition);
  return JSON.stringify(kept).length > LONGEST_KEPT ? { sha256 } : { sha256, definition: kept };
}

export class SeenTools {
  readonly #path: string;
  readonly #log: Logger;

  /** @param dataDir of the daemon whose servers these are */
  constructor(dataDir: string, log: Logger) {
    this.#path = join(dataDir, 'mcp-seen.json');
    this.#log = log;
  }

  /** The stored tools of a server. */
  of(alias: string): SeenServer | undefined {
    const servers = this.#read();
    return Object.hasOwn(servers, alias) ? servers[alias] : undefined;
  }

  /** Compares the tools of an unpinned server with the first seen ones. @returns one sentence for each difference */
  changes(alias: string, live: readonly ToolDefinition[]): readonly string[] {
    const before = this.of(alias);
    if (before !== undefined) return differences(before, live);
    this.approve(alias, live);
    return [];
  }

  /** Stores the tools that a person approved, or the first seen ones. */
  approve(alias: string, live: readonly ToolDefinition[]): void {
    const tools = Object.fromEntries(live.map((definition) => [definition.name, toSeenTool(definition)]));
    const servers = this.#read();
    if (Object.hasOwn(servers, alias) && canonicalJson(servers[alias]) === canonicalJson(tools)) return;
    this.#write({ ...servers, [alias]: tools });
  }

  #read(): Readonly<Record<string, SeenServer>> {
    try {
      return seenSchema.parse(JSON.parse(readFileSync(this.#path, 'utf8'))).servers as Record<string, SeenServer>;
    } catch (err) {
      const isMissing = systemCodeOf(err) === 'ENOENT';
      // Only the stored definitions are lost; the servers work.
      if (!isMissing)
        this.#log.warn({ err, file: this.#path }, 'the earlier tool definitions of the servers cannot be read');
      return {};
    }
  }

  #write(servers: Readonly<Record<string, SeenServer>>): void {
    const temporaryPath = `${this.#path}.${process.pid}.new`;
    try {
      writeFileSync(temporaryPath, `${JSON.stringify({ seen_version: 1, servers })}\n`, { mode: 0o600 });
      renameSync(temporaryPath, this.#path);
    } catch (err) {
      this.#log.warn({ err, file: this.#path }, 'the tool definitions of a server cannot be stored');
    }
  }
}
