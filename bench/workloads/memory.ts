/** Recall time of Neo with many memories, by text alone: the time of an embedding endpoint is not part of it. */

import { type Cortex, cortexPath, openCortex } from '../../src/agents/neo/memory/cortex.ts';
import { MEMORY_KINDS, type NewMemory } from '../../src/agents/neo/memory/memory.ts';
import { recall } from '../../src/agents/neo/memory/recall.ts';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { randomFrom } from '../../test/support/random/random.ts';
import { percentile } from '../statistics.ts';
import { type Context, figure } from './context.ts';

/** One kind of query; times in milliseconds. */
export type MemoryRow = {
  query: string;
  memories: number;
  queries: number;
  p50: number;
  p99: number;
  max: number;
};

const WRITTEN_AT_ONCE = 500;
const DAY_MS = 86_400_000;
/** Different words: the first are in nearly every text and the last in hardly any, as in speech (Zipf). */
const VOCABULARY = 20_000;
const SYLLABLES = [
  'ka',
  'lo',
  'mi',
  'ren',
  'sta',
  'tor',
  'u',
  'vel',
  'is',
  'den',
  'ar',
  'pho',
  'gri',
  'on',
  'bel',
  'tu',
];

function wordAt(rank: number): string {
  let word = '';
  for (let rest = rank + SYLLABLES.length; rest > 0; rest = Math.floor(rest / SYLLABLES.length))
    word += SYLLABLES[rest % SYLLABLES.length];
  return word;
}

function speaker(seed: number) {
  const random = randomFrom(seed);
  const word = () => wordAt(Math.floor(VOCABULARY ** random()) - 1);
  const words = (count: number) => Array.from({ length: count }, word).join(' ');
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  return { random, words, pick };
}
type Speaker = ReturnType<typeof speaker>;

function invented({ random, words, pick }: Speaker, number: number): NewMemory {
  const text = `The user ${words(8 + Math.floor(random() * 12))} ticket-${number}`;
  const claim = { subject: words(1), attribute: words(1), value: words(1) };
  const member = random() < 0.2 ? { claim } : {};
  return { kind: pick(MEMORY_KINDS), text, salience: Math.round(random() * 100) / 100, ...member };
}

type Filling = { cortex: Cortex; one: Speaker; now: number };

/** Adds memories up to this number. */
async function fill(
  { cortex, one, now }: Filling,
  written: number,
  memories: number,
  onProgress: (done: number) => void,
): Promise<void> {
  for (let done = written; done < memories; done += WRITTEN_AT_ONCE) {
    const batch = Array.from({ length: WRITTEN_AT_ONCE }, (_, at) => invented(one, done + at));
    const at = now - Math.floor(one.random() * 700) * DAY_MS;
    await cortex.remember(batch, { turnId: `turn-${done}`, conversationId: 'bench', at });
    onProgress(done);
  }
}

/** The query, and its name in the table. */
const QUERIES: readonly { query: string; ask: (one: Speaker, memories: number) => string }[] = [
  { query: 'a question of six words', ask: ({ words }) => `what do you know about ${words(6)}` },
  { query: 'a message of 200 words', ask: ({ words }) => words(200) },
  { query: 'an identifier', ask: ({ random }, memories) => `ticket-${Math.floor(random() * memories)}` },
  { query: 'a word of nearly every memory', ask: () => 'user' },
  { query: 'nothing in particular', ask: () => '' },
];

/** Runs so many queries of one kind. */
async function timeQueries(
  cortex: Cortex,
  ask: (one: Speaker, memories: number) => string,
  { memories, queries, seed, now }: { memories: number; queries: number; seed: number; now: number },
): Promise<Pick<MemoryRow, 'p50' | 'p99' | 'max'>> {
  const one = speaker(seed);
  const times: number[] = [];
  for (let asked = 0; asked < queries; asked++) {
    const query = ask(one, memories);
    const startedAt = performance.now();
    await recall({ query, now }, { cortex, semantics: undefined });
    times.push(performance.now() - startedAt);
  }
  const sorted = Float64Array.from(times).sort();
  return { p50: percentile(sorted, 0.5)!, p99: percentile(sorted, 0.99)!, max: percentile(sorted, 1)! };
}

/**
 * Fills a file with invented memories, in steps, and queries it after each.
 *
 * @returns a line per kind of query and size
 */
export async function measureMemory({ bench, plan, progress }: Context): Promise<MemoryRow[]> {
  const { memories: sizes, queries } = plan.memory;
  const now = Date.now();
  const cortex = openCortex({ path: cortexPath(bench.makeFolder('memory')), clock: systemClock });
  const filling = { cortex, one: speaker(1), now };
  const rows: MemoryRow[] = [];
  let written = 0;
  try {
    for (const memories of sizes) {
      progress.step(`memory: writing ${figure(memories)} memories`);
      await fill(filling, written, memories, (done) => progress.detail(`${figure(done)} written`));
      written = memories;
      for (const [at, { query, ask }] of QUERIES.entries()) {
        progress.step(`memory: ${query}, ${figure(memories)} memories`);
        const times = await timeQueries(cortex, ask, { memories, queries, seed: 1000 + at, now });
        rows.push({ query, memories, queries, ...times });
      }
    }
  } finally {
    await cortex.close();
  }
  return rows;
}
