/**
 * Finds memories by their meaning, if an embedding model is configured. Vectors are made in the background. A query
 * without a vector in time uses words alone, and after a failure the endpoint is skipped for a while.
 */
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../../../wire/errors.ts';
import type { Cortex } from './cortex.ts';
import type { Embed } from './embedding-endpoint.ts';
import { cosineOf, Sketches, sketchOf } from './sketch.ts';

export type SemanticsOptions = {
  cortex: Pick<Cortex, 'vectors' | 'write'>;
  embed: Embed;
  /** The model's name: vectors of different models cannot be compared. */
  model: string;
  clock: Clock;
  log: Logger;
};

export type Semantics = {
  /** There may be memories without a vector. */
  wake(): void;
  /** Memories near a query, nearest first; `undefined` when the endpoint does not answer. */
  near(query: string, limit: number): Promise<readonly number[] | undefined>;
  /** The current problem, as a sentence. */
  warning(): string | undefined;
  close(): Promise<void>;
};

/** The longest time that a turn waits for the vector of its query. */
const QUERY_MS = 2000;
const BATCH_MS = 60_000;
/** How long queries skip the endpoint after a failure. */
const PAUSE_MS = 30_000;
const RETRY_MS = [5_000, 30_000, 120_000, 600_000];
/** Characters of a text that are embedded: models accept a few thousand tokens. */
const TEXT_MAX = 2000;
const BATCH = 64;
/** Rows that are read before the event loop runs other work. */
const PAGE = 2000;
/** An endpoint that refuses more memories than this in a row refuses all of them. */
const MAX_REFUSALS = 3;
/** How many sketches are compared for each wanted memory: sketches order only roughly. */
const OVERSAMPLE = 8;
/** Texts with a smaller similarity are never near. */
const NEAR = 0.2;

const yieldToLoop = () => new Promise((resolve) => setImmediate(resolve));

/** Makes the search; vectors are made from the first `wake` on. */
export function createSemantics({ cortex, embed, model, clock, log }: SemanticsOptions): Semantics {
  const { vectors } = cortex;
  const stopping = new AbortController();
  const { signal } = stopping;
  let space = vectors.spaceOf(`${model}/`);
  /** Memories up to this one have a vector, or cannot have one. */
  let cursor = 0;
  let sketches: Promise<Sketches> | undefined;
  let batchSize = BATCH;
  /** Memories refused in a row. */
  let refused = 0;
  let failures = 0;
  let isWakePending = false;
  let pausedUntil = 0;
  let problem: string | undefined;
  let cancelRetry: (() => void) | undefined;
  let working: Promise<void> | undefined;

  /** The model makes vectors of these dimensions; if they changed, all vectors are made again. */
  function enter(dimensions: number): string {
    const present = `${model}/${dimensions}`;
    if (space !== present) {
      space = present;
      cursor = 0;
      sketches = undefined;
    }
    return present;
  }

  async function readSketches(from: string): Promise<Sketches> {
    const read = new Sketches(Number(from.slice(model.length + 1)));
    for (let after = 0; !signal.aborted; ) {
      const page = vectors.sketches(from, after, PAGE);
      for (const { seq, sketch } of page) read.add(seq, sketch);
      if (page.length < PAGE) break;
      after = page.at(-1)!.seq;
      await yieldToLoop();
    }
    return read;
  }

  function well(): void {
    failures = 0;
    problem = undefined;
  }

  function failed(thrown: unknown): void {
    pausedUntil = clock.monotonic() + PAUSE_MS;
    if (problem === undefined) log.warn({ err: thrown }, 'no embeddings; only full-text search finds memories');
    problem = `only full-text search finds memories: ${toReveilleError(thrown).message}`;
  }

  /** Makes the next vectors. @returns false when there are none to be made */
  async function embedBatch(): Promise<boolean> {
    const newest = vectors.newestSeq();
    let batch: { seq: number; text: string }[] = [];
    while (batch.length === 0 && cursor < newest) {
      const through = Math.min(cursor + PAGE, newest);
      batch = vectors.missing(cursor, through, space ?? '', batchSize);
      if (batch.length === 0) {
        cursor = through;
        await yieldToLoop();
      }
    }
    if (batch.length === 0 || signal.aborted) return false;
    const texts = batch.map(({ text }) => text.slice(0, TEXT_MAX).toWellFormed());
    let made: Float32Array[];
    try {
      made = await embed(texts, { signal, timeoutMs: BATCH_MS });
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError) || thrown.code !== 'invalid_request') throw thrown;
      // The endpoint may refuse one of the texts: they are sent one by one, and that one is left out.
      if (batch.length === 1 && ++refused > MAX_REFUSALS) throw thrown;
      if (batch.length === 1) {
        log.warn({ seq: batch[0]!.seq, reason: thrown.message }, 'the embedding endpoint refuses a memory');
        cursor = batch[0]!.seq;
      }
      batchSize = 1;
      return true;
    }
    const present = enter(made[0]!.length);
    refused = 0;
    if (batchSize < BATCH) batchSize *= 2;
    await cortex.write(() => {
      for (const [at, { seq }] of batch.entries()) vectors.put(seq, present, made[at]!);
    });
    const known = await sketches;
    if (known && space === present) {
      for (const [at, { seq }] of batch.entries()) known.add(seq, sketchOf(made[at]!));
    }
    well();
    return true;
  }

  async function work(): Promise<void> {
    try {
      while (isWakePending && !signal.aborted) {
        isWakePending = false;
        while (await embedBatch());
      }
    } catch (thrown) {
      if (signal.aborted) return;
      failed(thrown);
      const delay = RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]!;
      cancelRetry = clock.after(delay, () => {
        cancelRetry = undefined;
        wake();
      });
    }
  }

  function wake(): void {
    isWakePending = true;
    if (working || cancelRetry || signal.aborted) return;
    working = work().finally(() => {
      working = undefined;
      // A wake came since the last query.
      if (isWakePending) wake();
    });
  }

  async function nearest(vector: Float32Array, limit: number): Promise<number[]> {
    const present = enter(vector.length);
    sketches ??= readSketches(present).catch((thrown: unknown) => {
      sketches = undefined;
      throw thrown;
    });
    const candidates = (await sketches).nearest(sketchOf(vector), limit * OVERSAMPLE);
    return vectors
      .vectors(present, candidates)
      .map(({ seq, vector: other }) => ({ seq, cosine: cosineOf(vector, other) }))
      .filter(({ cosine }) => cosine >= NEAR)
      .sort((one, other) => other.cosine - one.cosine || other.seq - one.seq)
      .slice(0, limit)
      .map(({ seq }) => seq);
  }

  return {
    wake,

    async near(query, limit) {
      if (clock.monotonic() < pausedUntil || signal.aborted) return undefined;
      try {
        const text = query.slice(0, TEXT_MAX).toWellFormed();
        const [vector] = (await embed([text], { signal, timeoutMs: QUERY_MS })) as [Float32Array];
        const found = await nearest(vector, limit);
        well();
        return found;
      } catch (thrown) {
        if (!signal.aborted) failed(thrown);
        return undefined;
      }
    },

    warning: () => problem,

    async close() {
      stopping.abort();
      cancelRetry?.();
      await working;
      await sketches?.catch(() => {});
    },
  };
}
