/**
 * The chains of the journal: reads and checks one, appends to one, ends a tampered one. All methods are synchronous;
 * writes run inside the caller's transaction.
 */
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { ContextPiece, IntentStatus } from '../../wire/executor.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { ReceiptEntry } from '../receipt/bodies.ts';
import { type ChainHead, nextEnvelope, type Sealed, type SigningKey } from '../receipt/chain.ts';
import { apply, type ChainState, isFinal, statusOf } from '../receipt/chain-state.ts';
import { sha256Hex } from '../receipt/envelope.ts';
import { breakEntries, type ChainReading, type EnvelopeRow, lostIntent, readChain } from './chain-reading.ts';
import type { outboxTable, spendTable } from './derived-tables.ts';

/** An intent as it is in the journal. */
export type LoadedIntent = { readonly row: IntentRow; readonly state: ChainState; readonly head: ChainHead };

/**
 * @returns the entries to record next; none leaves the intent unchanged. Runs inside the transaction; an error rolls it
 *   back.
 */
export type ProposeEntries = (state: ChainState) => readonly ReceiptEntry[];

/** The result of a change, once it is on disk. */
export type AppendResult = {
  readonly intent: LoadedIntent;
  readonly entries: readonly ReceiptEntry[];
  /** The outbox has a new message. */
  readonly hasMessage: boolean;
  /** The chain was found tampered with: it was ended, and the proposal did not run. */
  readonly broken: boolean;
};

type ChainParts = {
  readonly db: DatabaseSync;
  readonly key: SigningKey;
  readonly clock: Clock;
  readonly log: Logger;
  readonly spends: ReturnType<typeof spendTable>;
  readonly outbox: ReturnType<typeof outboxTable>;
};

const FORGED_HEAD = 'the last envelope is not the one that the executor recorded';

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

  /** Whether the stored end of a chain is still the one that this process knows. */
  isUnchanged({ row, head }: LoadedIntent): boolean {
    const now = this.intents.get(row.id)?.head;
    return now?.seq === head.seq && now.hash === head.hash && this.envelopes.endsIn(row.id, head);
  }

  /** @param known the intent as this process last left it, if it did */
  change(intentId: string, known: LoadedIntent | undefined, propose: ProposeEntries): AppendResult {
    if (known && this.isUnchanged(known)) return this.#applyProposal(known, propose);
    const row = this.row(intentId);
    const reading = this.read(row);
    if (known && reading.head.hash !== known.head.hash) {
      const mayHaveStarted = reading.mayHaveStarted || known.state.escalateStarted;
      return this.end(row, { ...reading, broken: reading.broken ?? FORGED_HEAD, mayHaveStarted });
    }
    if (reading.broken !== undefined || !reading.state) return this.end(row, reading);
    return this.#applyProposal({ row, state: reading.state, head: reading.head }, propose);
  }

  /** Ends a tampered chain. */
  end(row: IntentRow, reading: ChainReading): AppendResult {
    const { clock, log } = this.#parts;
    const now = clock.now();
    const at = formatInstant(now);
    const state = reading.state ?? lostIntent(row.id, row.user);
    const entries = breakEntries(reading, state, { startedByRow: row.escalateStarted, at });
    this.envelopes.setAside(row.id, reading.head.seq, now);
    const details = { intent: row.id, user: row.user, good_seq: reading.head.seq, reason: reading.broken };
    log.error(details, 'the journal of an intent was tampered with');
    return { ...this.#appendAll({ row, state, head: reading.head }, entries), broken: true };
  }

  #applyProposal(before: LoadedIntent, propose: ProposeEntries): AppendResult {
    return { ...this.#appendAll(before, propose(before.state)), broken: false };
  }

  #appendAll(before: LoadedIntent, entries: readonly ReceiptEntry[]): Omit<AppendResult, 'broken'> {
    let intent = before;
    let hasMessage = false;
    for (const entry of entries) {
      const after = this.#append(intent, entry);
      intent = after.intent;
      hasMessage ||= after.hasMessage;
    }
    if (entries.length > 0) this.intents.updateStatus(intent, this.#parts.clock.now());
    return { intent, entries, hasMessage };
  }

  /** Appends one envelope and writes the rows that derive from it. */
  #append({ row, state: before, head }: LoadedIntent, entry: ReceiptEntry) {
    const { key, clock, spends, outbox } = this.#parts;
    const sealed = nextEnvelope({ head, entry, key });
    const { kind, body } = sealed.envelope;
    // The entry as it will be read back, not as it was passed in.
    const read = { kind, body } as unknown as ReceiptEntry;
    const state = apply(before, read);
    this.envelopes.append(row.id, sealed);
    spends.record(before, read, clock.now());
    const hasMessage = outbox.record(state, read);
    return { intent: { row, state, head: sealed.head }, hasMessage };
  }
}

type IntentRow = {
  readonly seq: number;
  readonly id: string;
  readonly user: string;
  /** Kept until the intent is compiled. */
  readonly context: readonly ContextPiece[] | undefined;
  readonly head: ChainHead;
  readonly escalateStarted: boolean;
  readonly createdAt: number;
};

type Row = Record<string, SQLOutputValue>;

function contextOf(text: string | null): readonly ContextPiece[] | undefined {
  if (text === null) return undefined;
  try {
    return JSON.parse(text) as ContextPiece[];
  } catch {
    // The text was changed; it will not match the hash in the first envelope.
    return undefined;
  }
}

function rowOf(row: Row): IntentRow {
  return {
    seq: row.seq as number,
    id: row.id as string,
    user: row.user_id as string,
    context: contextOf(row.context as string | null),
    head: { seq: row.head_seq as number, hash: row.head_hash as string },
    escalateStarted: row.escalate_started === 1,
    createdAt: row.created_at as number,
  };
}

function intentTable(db: DatabaseSync) {
  const insert = db.prepare(`
    INSERT INTO intents (id, user_id, idempotency_key, context, status, is_over, head_seq, head_hash, escalate_started, created_at, changed_at)
    VALUES (?1, ?2, ?3, ?4, 'drafting', 0, ?5, ?6, 0, ?7, ?7)`);
  const byId = db.prepare('SELECT * FROM intents WHERE id = ?');
  const byKey = db.prepare('SELECT id FROM intents WHERE user_id = ? AND idempotency_key = ?');
  const updateStatus = db.prepare(`
    UPDATE intents SET status = ?, is_over = ?, head_seq = ?, head_hash = ?, escalate_started = max(escalate_started, ?),
                       context = CASE WHEN ? THEN context END, changed_at = ?
    WHERE id = ?`);
  const open = db.prepare('SELECT id, user_id FROM intents WHERE is_over = 0 ORDER BY seq');
  const openOf = db.prepare(`
    SELECT count(*) AS intents, coalesce(sum(octet_length(context)), 0) AS context_bytes
    FROM intents WHERE user_id = ? AND is_over = 0`);
  const newest = db.prepare('SELECT id FROM intents WHERE user_id = ? ORDER BY seq DESC LIMIT ?');
  const changed = db.prepare(
    'SELECT id FROM intents WHERE user_id = ? AND changed_at >= ? ORDER BY changed_at LIMIT ?',
  );
  const newestWith = db.prepare('SELECT id FROM intents WHERE user_id = ? AND status = ? ORDER BY seq DESC LIMIT ?');

  return {
    insert(intent: {
      readonly id: string;
      readonly user: string;
      readonly idempotencyKey: string | undefined;
      readonly context: readonly ContextPiece[] | undefined;
      readonly head: ChainHead;
      readonly createdAt: number;
    }): void {
      const { id, user, idempotencyKey, context, head, createdAt } = intent;
      const pieces = context === undefined ? null : JSON.stringify(context);
      insert.run(id, user, idempotencyKey ?? null, pieces, head.seq, head.hash, createdAt);
    },

    get(id: string): IntentRow | undefined {
      const row = byId.get(id);
      return row && rowOf(row);
    },

    idOf: (user: string, key: string) => byKey.get(user, key)?.id as string | undefined,

    updateStatus({ row, state, head }: LoadedIntent, changedAt: number): void {
      const isOver = Number(isFinal(state));
      const keepsContext = Number(state.compiled === undefined && !isFinal(state));
      const [status, started] = [statusOf(state), Number(state.escalateStarted)];
      updateStatus.run(status, isOver, head.seq, head.hash, started, keepsContext, changedAt, row.id);
    },

    /** Intents of the user that have changed since an instant, by their last change. */
    changedSince: (user: string, since: number, limit: number): string[] =>
      changed.all(user, since, limit).map(({ id }) => id as string),

    /** Open intents in order of acceptance. */
    open: () => open.all().map((row) => ({ id: row.id as string, user: row.user_id as string })),

    /** Number of the user's open intents, and the size of the conversation kept for them. */
    openOf(user: string): { intents: number; contextBytes: number } {
      const row = openOf.get(user)!;
      return { intents: row.intents as number, contextBytes: row.context_bytes as number };
    },

    newest(user: string, limit: number, status: IntentStatus | undefined): string[] {
      const rows = status === undefined ? newest.all(user, limit) : newestWith.all(user, status, limit);
      return rows.map(({ id }) => id as string);
    },
  };
}

/** `undefined` for a text that was changed and is none any more. */
function entryOf(envelope: string): ReceiptEntry | undefined {
  try {
    const { kind, body } = JSON.parse(envelope) as ReceiptEntry;
    return Number.isNaN(Date.parse(body.at)) ? undefined : ({ kind, body } as ReceiptEntry);
  } catch {
    return undefined;
  }
}

function envelopeTable(db: DatabaseSync) {
  const insert = db.prepare('INSERT INTO envelopes (intent_id, seq, envelope) VALUES (?, ?, ?)');
  const of = db.prepare('SELECT seq, envelope FROM envelopes WHERE intent_id = ? ORDER BY seq');
  const first = db.prepare('SELECT envelope FROM envelopes WHERE intent_id = ? ORDER BY seq LIMIT 1');
  const backwards = db.prepare('SELECT seq, envelope FROM envelopes WHERE intent_id = ? ORDER BY seq DESC');
  const last = db.prepare('SELECT seq, envelope FROM envelopes WHERE intent_id = ? ORDER BY seq DESC LIMIT 1');
  const copyAside = db.prepare(`
    INSERT INTO set_aside (intent_id, seq, envelope, at)
    SELECT intent_id, seq, envelope, ? FROM envelopes WHERE intent_id = ? AND seq > ?`);
  const remove = db.prepare('DELETE FROM envelopes WHERE intent_id = ? AND seq > ?');

  return {
    append: (intentId: string, { envelope, text }: Sealed): void => void insert.run(intentId, envelope.seq, text),

    of: (intentId: string): EnvelopeRow[] =>
      of.all(intentId).map(({ seq, envelope }) => ({ seq: seq as number, text: envelope as string })),

    /** The last envelope, and those before it since an instant, last first. They are not checked. */
    *since(intentId: string, instant: number): Generator<{ seq: number; entry: ReceiptEntry }> {
      for (const { seq, envelope } of backwards.iterate(intentId)) {
        const entry = entryOf(envelope as string);
        if (entry) yield { seq: seq as number, entry };
        if (!entry || Date.parse(entry.body.at) < instant) return;
      }
    },

    /** The envelope of the acceptance. */
    first: (intentId: string) => first.get(intentId)?.envelope as string | undefined,

    /** Whether the last row of the chain is this envelope. */
    endsIn(intentId: string, { seq, hash }: ChainHead): boolean {
      const row = last.get(intentId);
      return row !== undefined && row.seq === seq && sha256Hex(row.envelope as string) === hash;
    },

    /** Moves the rows after `goodSeq` aside. */
    setAside(intentId: string, goodSeq: number, at: number): void {
      copyAside.run(at, intentId, goodSeq);
      remove.run(intentId, goodSeq);
    },
  };
}
