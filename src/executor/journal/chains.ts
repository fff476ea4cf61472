/**
 * The chains and what follows from them: reading one and checking it, putting an envelope at its end, ending one that was changed. All of it
 * is synchronous; what writes runs inside the caller's transaction.
 */
import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainHead, nextEnvelope } from '../receipt/chain.ts';
import { apply, type ChainState, isOver, statusOf } from '../receipt/chain-state.ts';
import type { SigningKey } from '../receipt/signing-key.ts';
import { breakEntries } from './break.ts';
import { type ChainReading, readChain } from './chain-reading.ts';
import { envelopeTable } from './envelope-table.ts';
import { type IntentRow, intentTable } from './intent-table.ts';
import { lostIntent } from './lost-intent.ts';
import type { outboxTable } from './outbox-table.ts';
import type { spendTable } from './spend-table.ts';

/** An intent as it stands in the journal. */
export type Held = { readonly row: IntentRow; readonly state: ChainState; readonly head: ChainHead };

/** @returns what is to be put down next; nothing when the intent stays as it is. Runs inside the transaction; what it throws undoes it. */
export type Decide = (state: ChainState) => readonly ReceiptEntry[];

/** What a change comes to, once it is on disk. */
export type Grown = {
  readonly held: Held;
  readonly entries: readonly ReceiptEntry[];
  /** Something new is owed to somebody. */
  readonly hasMessage: boolean;
  /** The chain was found changed: it has been ended, and nothing was decided. */
  readonly broken: boolean;
};

export type ChainParts = {
  readonly db: DatabaseSync;
  readonly key: SigningKey;
  readonly clock: Clock;
  readonly log: Logger;
  readonly spends: ReturnType<typeof spendTable>;
  readonly outbox: ReturnType<typeof outboxTable>;
};

const FORGED_HEAD = 'the last envelope is not the one that the executor put down';

export class Chains {
  readonly intents: ReturnType<typeof intentTable>;
  readonly envelopes: ReturnType<typeof envelopeTable>;
  readonly #parts: ChainParts;

  constructor(parts: ChainParts) {
    this.#parts = parts;
    this.intents = intentTable(parts.db);
    this.envelopes = envelopeTable(parts.db);
  }

  /** @throws ReveilleError `not_found` */
  row(intentId: string): IntentRow {
    const row = this.intents.get(intentId);
    if (row) return row;
    throw new ReveilleError(
      'not_found',
      'you have no intent with this id; "reveille intent list" (GET /intents) lists yours',
    );
  }

  /** Reads a chain and checks all of it. */
  read(row: IntentRow): ChainReading {
    const { publicKeyHex } = this.#parts.key;
    const { id, user, head, escalateStarted } = row;
    return readChain(this.envelopes.of(id), { publicKey: publicKeyHex, intentId: id, user, head, escalateStarted });
  }

  /** Whether the end of a chain is still the one that this process knows. */
  isAsBefore({ row, head }: Held): boolean {
    const now = this.intents.get(row.id)?.head;
    return now?.seq === head.seq && now.hash === head.hash && this.envelopes.endsIn(row.id, head);
  }

  /** @param known the intent as this process has left it, where it has */
  grow(intentId: string, known: Held | undefined, decide: Decide): Grown {
    if (known && this.isAsBefore(known)) return this.#decided(known, decide);
    const row = this.row(intentId);
    const reading = this.read(row);
    if (known && reading.head.hash !== known.head.hash) {
      const mayHaveStarted = reading.mayHaveStarted || known.state.escalateStarted;
      return this.end(row, { ...reading, broken: reading.broken ?? FORGED_HEAD, mayHaveStarted });
    }
    if (reading.broken !== undefined || !reading.state) return this.end(row, reading);
    return this.#decided({ row, state: reading.state, head: reading.head }, decide);
  }

  /** Ends a chain that was changed. */
  end(row: IntentRow, reading: ChainReading): Grown {
    const { clock, log } = this.#parts;
    const now = clock.now();
    const at = formatInstant(now);
    const state = reading.state ?? lostIntent(row.id, row.user);
    const entries = breakEntries(reading, state, { startedByRow: row.escalateStarted, at });
    this.envelopes.setAside(row.id, reading.head.seq, now);
    const about = { intent: row.id, user: row.user, good_seq: reading.head.seq, reason: reading.broken };
    log.error(about, 'the journal of an intent was changed');
    return { ...this.#appended({ row, state, head: reading.head }, entries), broken: true };
  }

  #decided(before: Held, decide: Decide): Grown {
    return { ...this.#appended(before, decide(before.state)), broken: false };
  }

  #appended(before: Held, entries: readonly ReceiptEntry[]): Omit<Grown, 'broken'> {
    let held = before;
    let hasMessage = false;
    for (const entry of entries) {
      const after = this.#append(held, entry);
      held = after.held;
      hasMessage ||= after.hasMessage;
    }
    if (entries.length > 0) this.#stand(held);
    return { held, entries, hasMessage };
  }

  /** Puts one more envelope down, and what follows from it. */
  #append({ row, state: before, head }: Held, entry: ReceiptEntry): { held: Held; hasMessage: boolean } {
    const { key, clock, spends, outbox } = this.#parts;
    const sealed = nextEnvelope({ head, entry, key });
    const { kind, body } = sealed.envelope;
    // As it will be read again, not as it was handed in.
    const said = { kind, body } as unknown as ReceiptEntry;
    const state = apply(before, said);
    this.envelopes.append(row.id, sealed);
    spends.take(before, said, clock.now());
    const hasMessage = outbox.take(state, said);
    return { held: { row, state, head: sealed.head }, hasMessage };
  }

  #stand({ row, state, head }: Held): void {
    this.intents.stand(row.id, {
      status: statusOf(state),
      isOver: isOver(state),
      head,
      escalateStarted: state.escalateStarted,
      keepsContext: state.compiled === undefined && !isOver(state),
    });
  }
}
