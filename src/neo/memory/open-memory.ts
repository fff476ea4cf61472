/** Neo's memory: wires the file, the searches, the learner and the rendering. Nothing else does. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { storageError } from '../../kit/sqlite/sqlite-error.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import type { Turn } from '../turn.ts';
import { type Cortex, cortexPath, openCortex } from './cortex.ts';
import { renderDigest, renderProfile, renderRelevant } from './digest.ts';
import type { Embed } from './embedding-endpoint.ts';
import { type Ask, createLearner, type Learner, type LearnerOptions } from './learner.ts';
import type { NewMemory, Remembered, Source, StoredMemory } from './memory.ts';
import { type RecallRequest, type Recollection, recall } from './recall.ts';
import { createSemantics } from './semantics.ts';

export type MemoryOptions = {
  /** The folder that holds `cortex.db`; made when missing. */
  dataDir: string;
  clock: Clock;
  log: Logger;
  /** Where the learner reads turns. */
  turns: LearnerOptions['turns'];
  /** The cheap model; without it nothing is learned in the background. */
  ask?: Ask | undefined;
  /** The embedding model; without it memories are found by their words. */
  embedding?: { model: string; embed: Embed } | undefined;
};

export type Memory = {
  /** @throws ReveilleError `unavailable` when the file cannot be read */
  recall(request: RecallRequest): Promise<readonly Recollection[]>;
  /**
   * What `memory_recall` answers: what is remembered about the query (or what matters most), and the profile.
   *
   * @throws ReveilleError `unavailable` when the file cannot be read
   */
  digest(query: string | undefined): Promise<string>;
  /** Memories that bear on a turn and are not in the profile, rendered for the system block. Never rejects. */
  relevantTo(turn: Pick<Turn, 'message' | 'label'>, limit: number): Promise<string | undefined>;
  /** What is always shown: preferences, and what is known about the person. Never throws. */
  profile(): string | undefined;
  /** @throws ReveilleError `invalid_request` for what cannot be kept, `unavailable` when nothing was stored */
  remember(items: readonly NewMemory[], source: Source): Promise<readonly Remembered[]>;
  /** Absent without a model to learn with. */
  readonly learner: Pick<Learner, 'offer'> | undefined;
  /** What is wrong with memory at present, as sentences. */
  warnings(): readonly string[];
  /** Stops what runs in the background, keeps what is queued, closes the file. */
  close(): Promise<void>;
};

/** Memories of each kind in the profile, in the order in which they are shown. */
const PROFILE = [
  ['preference', 16],
  ['goal', 8],
  ['pattern', 6],
] as const;
const FACTS_ABOUT_PERSON = 12;
const DIGEST_LIMIT = 12;

function profileOf(cortex: Cortex): StoredMemory[] {
  const pinned = PROFILE.flatMap(([kind, limit]) => cortex.pinned(kind, limit));
  return [...pinned, ...cortex.factsAboutPerson(FACTS_ABOUT_PERSON)];
}

/**
 * Opens the memory of a data folder; learning goes on where the last process left it.
 *
 * @throws what `openDatabase` throws: `unavailable` when the file is damaged, `conflict` when it is a newer version's
 */
export function openMemory(options: MemoryOptions): Memory {
  const cortex = openCortex({ path: cortexPath(options.dataDir), clock: options.clock });
  try {
    return memoryIn(cortex, options);
  } catch (thrown) {
    void cortex.close();
    throw storageError(thrown);
  }
}

function memoryIn(cortex: Cortex, { clock, log, turns, ask, embedding }: MemoryOptions): Memory {
  const semantics = embedding && createSemantics({ cortex, clock, log, ...embedding });
  const learner = ask && createLearner({ cortex, ask, turns, clock, log, onLearned: () => semantics?.wake() });
  semantics?.wake();
  let trouble: string | undefined;

  function note(thrown: unknown): void {
    if (trouble === undefined) log.error({ err: thrown }, 'memory cannot be read; turns go on without it');
    trouble = `memory cannot be read: ${toReveilleError(thrown).message}`;
  }

  const find = (request: RecallRequest) => recall(request, { cortex, semantics });

  return {
    recall: find,

    async digest(query) {
      const found = await find({ query, limit: DIGEST_LIMIT, now: clock.now() });
      const shown = new Set(found.map(({ seq }) => seq));
      const profile = profileOf(cortex).filter(({ seq }) => !shown.has(seq));
      return renderDigest(found, profile, query !== undefined && query.trim() !== '');
    },

    async relevantTo({ message, label = '' }, limit) {
      const query = `${label}\n${message}`;
      if (query.trim() === '') return undefined;
      try {
        const pinned = new Set(profileOf(cortex).map(({ seq }) => seq));
        const found = await find({ query, limit: limit + pinned.size, now: clock.now() });
        trouble = undefined;
        return renderRelevant(found.filter(({ seq }) => !pinned.has(seq)).slice(0, limit));
      } catch (thrown) {
        note(thrown);
        return undefined;
      }
    },

    profile() {
      try {
        return renderProfile(profileOf(cortex));
      } catch (thrown) {
        note(thrown);
        return undefined;
      }
    },

    async remember(items, source) {
      const remembered = await cortex.remember(items, source);
      semantics?.wake();
      return remembered;
    },

    learner,

    warnings() {
      const said = [trouble, semantics?.warning(), learner?.warning()];
      return said.filter((warning) => warning !== undefined);
    },

    async close() {
      await Promise.all([semantics?.close(), learner?.close()]);
      await cortex.close();
    },
  };
}

/** Memory, or the sentence that says why there is none: Neo runs without it. */
export function openMemoryOrWarn(options: MemoryOptions): { memory?: Memory; warnings: readonly string[] } {
  try {
    return { memory: openMemory(options), warnings: [] };
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    options.log.error({ err: thrown }, 'Neo runs without memory');
    return { warnings: [`Neo runs without memory: ${thrown.message}`] };
  }
}
