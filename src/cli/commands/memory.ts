/**
 * `reveille memory`: Neo's memories. These commands open Neo's database themselves, also while Neo runs: a stopped Neo
 * has no address, and the port of a running one is known only to the router.
 */

import { existsSync } from 'node:fs';
import { type Cortex, cortexPath, openCortex } from '../../agents/neo/memory/cortex.ts';
import { MEMORY_KINDS, type StoredMemory } from '../../agents/neo/memory/memory.ts';
import { recall } from '../../agents/neo/memory/recall.ts';
import { shortTime } from '../../kit/clock/local-time.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { shortIds } from '../../kit/text/short-ids.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { showValue } from '../../wire/validate.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, wholeNumberFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { fit, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

export type MemoryListFlags = { query?: string; kind?: string; limit?: string; all?: boolean };
export type ForgetFlags = { all?: boolean; yes?: boolean };

const LIST_LIMIT = 100;
const LIST_MAX = 100_000;
const PAGE = 500;
const PREFIX = /^[0-9a-f][0-9a-f-]{5,}$/;
/** Memories listed when a prefix is ambiguous. */
const NAMED = 5;

/** Runs with the database open. Without a database `use` is not called, because reading must not create one. */
async function withCortex<T>(
  { settings, clock }: CliContext,
  use: (cortex: Cortex) => Promise<T>,
): Promise<T | undefined> {
  const path = cortexPath(settings.NEO_DATA_DIR!);
  if (!existsSync(path)) return undefined;
  const cortex = openCortex({ path, clock });
  try {
    return await use(cortex);
  } finally {
    await cortex.close();
  }
}

function recordOf(memory: StoredMemory) {
  return {
    id: memory.id,
    kind: memory.kind,
    text: memory.text,
    claim: memory.claim,
    salience: memory.salience,
    strength: memory.strength,
    created_at: formatInstant(memory.createdAt),
    last_seen_at: formatInstant(memory.lastSeenAt),
    turn_id: memory.turnId,
    conversation_id: memory.conversationId,
    superseded_by: memory.supersededBy,
  };
}

function render(memories: readonly StoredMemory[], total: number, look: Reader): string[] {
  if (memories.length === 0) return [total === 0 ? 'No memories.' : `None of ${total} memories.`];
  const ids = shortIds(memories.map(({ id }) => id));
  const rows = memories.map(({ id, kind, salience, lastSeenAt, text, supersededBy }) => [
    ids.get(id)!,
    supersededBy === undefined ? kind : `${kind}, outdated`,
    salience.toFixed(2),
    shortTime(lastSeenAt, look),
    oneLine(text),
  ]);
  const lines = table(['ID', 'KIND', 'WEIGHT', 'LAST', 'MEMORY'], rows, look);
  return [...lines, '', look.paint('dim', `${memories.length} of ${total} memories`)];
}

export async function memoryList(context: CliContext, flags: MemoryListFlags): Promise<void> {
  const { out, clock } = context;
  const kind = choiceFlag('--kind', flags.kind, MEMORY_KINDS);
  const given = wholeNumberFlag('--limit', flags.limit, 1, LIST_MAX);
  const limit = given ?? (flags.all ? LIST_MAX : LIST_LIMIT);
  const wanted = (memory: StoredMemory) =>
    (kind === undefined || memory.kind === kind) && (flags.all || memory.supersededBy === undefined);
  const found = await withCortex(context, async (cortex) => {
    const memories =
      flags.query === undefined
        ? cortex.list({ kind, superseded: flags.all ?? false, limit })
        : (await recall({ query: flags.query, limit: LIST_MAX, now: clock.now() }, { cortex, semantics: undefined }))
            .filter(wanted)
            .slice(0, limit);
    return { memories, total: cortex.count() };
  });
  const { memories, total } = found ?? { memories: [], total: 0 };
  out.list(memories.map(recordOf), () => render(memories, total, readerOf(context)));
}

/** The memory with an id in the command line. */
function findOne(cortex: Cortex, given: string): StoredMemory {
  const prefix = given.toLowerCase();
  if (!PREFIX.test(prefix)) {
    const right = 'a memory\'s id, or at least its first 6 characters; "reveille memory list" shows them';
    throw new UsageError(`the id must be ${right} (got ${showValue(given)})`);
  }
  const [only, ...others] = cortex.startingWith(prefix, NAMED + 1);
  if (!only) {
    const remedy = 'list ids with: reveille memory list';
    throw new ReveilleError('not_found', `no memory has an id that begins with ${prefix}; ${remedy}`);
  }
  if (others.length === 0) return only;
  const ids = shortIds([only, ...others].map(({ id }) => id));
  const named = [only, ...others].slice(0, NAMED).map(({ id, text }) => `${ids.get(id)} (${fit(oneLine(text), 30)})`);
  throw new ReveilleError('conflict', `${prefix} matches ${named.join(', ')}; give more of the id`);
}

export async function memoryForget(context: CliContext, flags: ForgetFlags, given: string | undefined): Promise<void> {
  if ((given === undefined) === !flags.all) throw new UsageError('give the id of a memory or --all, not both');
  if (flags.all && !flags.yes)
    throw new UsageError(
      '--all deletes all memories permanently; add --yes, and run "reveille memory export" first to keep a copy',
    );
  const { out } = context;
  const forgotten = await withCortex(context, async (cortex) => {
    if (given !== undefined) {
      const memory = findOne(cortex, given);
      await cortex.forget([memory.id]);
      out.result(recordOf(memory), `Forgotten: ${oneLine(memory.text)}`);
      return 1;
    }
    let count = 0;
    for (let page = cortex.after(0, PAGE); page.length > 0; page = cortex.after(0, PAGE))
      count += await cortex.forget(page.map(({ id }) => id));
    out.result({ forgotten: count }, `Forgotten: ${count} memories`);
    return count;
  });
  if (forgotten !== undefined) return;
  if (given !== undefined) throw new ReveilleError('not_found', 'there are no memories yet');
  out.result({ forgotten: 0 }, 'There are no memories yet.');
}

export async function memoryExport(context: CliContext): Promise<void> {
  await withCortex(context, async (cortex) => {
    for (let page = cortex.after(0, PAGE); page.length > 0; page = cortex.after(page.at(-1)!.seq, PAGE)) {
      for (const memory of page) {
        const turns = cortex.turnsOf(memory.seq).map(({ turnId, at }) => ({ turn_id: turnId, at: formatInstant(at) }));
        const line = { ...recordOf(memory), turns };
        context.out.result(line);
      }
    }
  });
}
