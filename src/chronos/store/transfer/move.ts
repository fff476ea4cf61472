/**
 * Moves a SQLite installation into PostgreSQL.
 *
 * Both sides record the state of the move, and chronosd opens neither side during the move. The file is closed from
 * step 2 on, the database until the copy has been compared. The states are written in an order in which a process that
 * ends at any moment leaves at most one side open:
 *
 * 1. The database is closed (`arriving`). No chronosd that saw it open may be connected.
 *
 * 2. The file is closed (`moving`). It does not change from here on.
 *
 * 3. Rows are copied, each batch in one transaction with its progress.
 *
 * 4. Both sides are read completely and compared.
 *
 * 5. The file records that the copy is complete (`verified`). From now on only the database knows whether it is in use.
 *
 * 6. The database is opened (`arrived`).
 *
 * 7. The file records that (`moved`).
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { errorText } from '../postgres/postgres-error.ts';
import type { TargetState } from '../postgres/transfer-state.ts';
import type { SourcePhase, SourceState } from '../sqlite/transfer-state.ts';
import { type Comparison, compare } from './compare.ts';
import { type Plan, planOf } from './plan.ts';
import { advance, formatProgress, parseProgress, type Report, rowsOf } from './progress.ts';
import { Source } from './source.ts';
import { keyOf, MOVING_TABLES, type Values } from './tables.ts';
import { Target } from './target.ts';

/** A batch ends with this many rows or characters, at the first of the two limits. */
const BATCH_ROWS = 1000;
const BATCH_CHARACTERS = 2 * 1024 * 1024;

function weigh(row: Values): number {
  return row.reduce<number>((sum, value) => sum + (typeof value === 'string' ? value.length : 8), 0);
}

function* batchesOf(rows: Iterable<Values>): Generator<Values[]> {
  let batch: Values[] = [];
  let weight = 0;
  for (const row of rows) {
    batch.push(row);
    weight += weigh(row);
    if (batch.length < BATCH_ROWS && weight < BATCH_CHARACTERS) continue;
    yield batch;
    batch = [];
    weight = 0;
  }
  if (batch.length > 0) yield batch;
}

/**
 * Copies missing rows.
 *
 * @param total the final number of rows
 * @returns how many rows this call has copied
 */
async function copyRows(
  { source, target, total, report }: { source: Source; target: Target; total: number; report: Report },
  targetState: TargetState,
): Promise<number> {
  let progress = parseProgress(targetState.progress);
  let { step } = targetState;
  const before = rowsOf(progress);
  // One batch is written while the next is read.
  let pendingWrite: Promise<void> = Promise.resolve();
  for (const table of MOVING_TABLES) {
    for (const batch of batchesOf(source.rows(table, progress[table.name]?.after))) {
      progress = advance(progress, table, batch.length, keyOf(table, batch.at(-1)!));
      const stored = target.put(table, batch, {
        transfer: targetState.transfer,
        step,
        progress: formatProgress(progress),
      });
      stored.catch(() => undefined);
      step++;
      const rows = rowsOf(progress) - batch.length;
      await pendingWrite;
      report({ phase: 'copying', rows, total });
      pendingWrite = stored;
    }
  }
  await pendingWrite;
  report({ phase: 'copying', rows: rowsOf(progress), total });
  return rowsOf(progress) - before;
}

export type MoveOptions = {
  /** The SQLite file. */
  from: string;
  /** The PostgreSQL database. */
  to: string;
  clock: Clock;
  log: Logger;
  /** Called at every step. */
  report?: Report;
};

export type MoveResult = {
  /** `moved` now, `already` before; `differs`: the copy is not equal, and neither side was opened. */
  outcome: 'moved' | 'already' | 'differs';
  from: string;
  /** The database, `host:port/database`. */
  to: string;
  /** When the alarms were moved, epoch ms. */
  since: number;
  /** Empty when nothing was compared. */
  tables: Comparison[];
  /** Rows that this call has copied, and the duration. */
  copied: number;
  copyMs: number;
};

class Move {
  readonly #source: Source;
  readonly #target: Target;
  readonly #clock: Clock;
  readonly #report: Report;

  constructor(source: Source, target: Target, { clock, report }: MoveOptions) {
    this.#source = source;
    this.#target = target;
    this.#clock = clock;
    this.#report = report ?? (() => {});
  }

  async run(): Promise<MoveResult> {
    const sourceState = this.#ensureIdentity();
    const targetState = await this.#target.state();
    const plan = planOf({
      path: this.#source.path,
      sourceState,
      name: this.#target.name,
      targetState,
      empty: await this.#target.isEmpty(),
    });
    if (plan === 'done') return this.#result('already');
    if (plan === 'finish') {
      this.#mark('moved');
      return this.#result('moved');
    }
    return this.#complete(await this.#prepare(plan, sourceState, targetState));
  }

  /** Gives the file an identity if it has none. */
  #ensureIdentity(): SourceState {
    const known = this.#source.state;
    if (known) return known;
    const sourceState: SourceState = {
      source: randomUUID(),
      state: 'home',
      transfer: null,
      target: null,
      since: this.#clock.now(),
    };
    this.#source.writeState(sourceState);
    return sourceState;
  }

  /** Closes both sides. */
  async #prepare(plan: Plan, sourceState: SourceState, former: TargetState | undefined): Promise<TargetState> {
    if (plan === 'resume') {
      await this.#target.refuseReplicas();
      return this.#target.resume(former!.transfer);
    }
    const transfer = randomUUID();
    let targetState: TargetState;
    if (plan === 'begin') {
      targetState = await this.#target.begin(sourceState.source, transfer);
      try {
        await this.#target.refuseReplicas();
      } catch (error) {
        await this.#target.withdraw(transfer);
        throw error;
      }
    } else {
      targetState = await this.#target.restart(former!, transfer);
      await this.#target.refuseReplicas();
      await this.#target.clear();
    }
    this.#source.writeState({
      ...sourceState,
      state: 'moving',
      transfer,
      target: this.#target.name,
      since: this.#clock.now(),
    });
    this.#report({ phase: 'began' });
    return targetState;
  }

  /** Copies, compares, and opens the database. */
  async #complete(targetState: TargetState): Promise<MoveResult> {
    const [source, target, report] = [this.#source, this.#target, this.#report];
    const total = MOVING_TABLES.reduce((sum, table) => sum + source.count(table), 0);
    const began = this.#clock.monotonic();
    const copied = await copyRows({ source, target, total, report }, targetState);
    const copyMs = this.#clock.monotonic() - began;
    await target.analyze();
    const tables = await compare({ source, target, total, report });
    if (!tables.every(({ equal }) => equal)) return { ...this.#result('differs'), tables, copied, copyMs };
    this.#mark('verified');
    report({ phase: 'verified' });
    await target.openForUse(targetState.transfer);
    report({ phase: 'arrived' });
    this.#mark('moved');
    return { ...this.#result('moved'), tables, copied, copyMs };
  }

  #mark(state: SourcePhase): void {
    this.#source.writeState({ ...this.#source.state!, state, since: this.#clock.now() });
  }

  #result(outcome: MoveResult['outcome']): MoveResult {
    const { path, state: sourceState } = this.#source;
    return { outcome, from: path, to: this.#target.name, since: sourceState!.since, tables: [], copied: 0, copyMs: 0 };
  }
}

/** Adds that the copy is kept, where the same command may succeed later. */
function resumable(error: unknown, source: Source): unknown {
  const pendingWrite = source.state?.state === 'moving' || source.state?.state === 'verified';
  if (!(error instanceof ReveilleError) || error.code !== 'unavailable' || !error.retryable || !pendingWrite)
    return error;
  return new ReveilleError(
    error.code,
    `${error.message}. Copied rows are kept: run the same command again to continue`,
    { cause: error },
  );
}

/**
 * Moves the alarms, or continues an interrupted move.
 *
 * @throws ReveilleError when either side refuses; completed steps are kept and safe
 */
export async function move(options: MoveOptions): Promise<MoveResult> {
  const source = new Source(options.from, options.clock);
  try {
    const target = await Target.open({ uri: options.to, clock: options.clock, log: options.log });
    try {
      return await new Move(source, target, options).run();
    } finally {
      await target.close();
    }
  } catch (error) {
    if (error instanceof ReveilleError && error.code === 'internal')
      options.log.error({ reason: errorText(error.cause ?? error) }, 'the move was interrupted');
    throw resumable(error, source);
  } finally {
    source.close();
  }
}
