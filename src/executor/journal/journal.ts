/**
 * The executor's journal: one SQLite file, one process. Each intent is a chain of signed envelopes, and each event
 * appends one. All other tables derive from the chains and are written in the same transaction. A chain is checked
 * whenever it is read, and its end whenever it grows.
 */
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { v7 as uuidv7 } from 'uuid';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import { KeyedQueue } from '../../kit/queue/keyed-queue.ts';
import { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import { openDatabase } from '../../kit/sqlite/open.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { IntentRequest } from '../../wire/executor.ts';
import {
  type IntentReceipt,
  RECEIPT_FORMAT,
  type ReceiptEnvelope,
  SIGNED_APPROVALS,
} from '../../wire/intent-receipt.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { IntentBounds } from '../config.ts';
import type { ReceiptBodies, ReceiptEntry } from '../receipt/bodies.ts';
import { EMPTY_CHAIN, nextEnvelope, type SigningKey } from '../receipt/chain.ts';
import { type ChainState, isFinal } from '../receipt/chain-state.ts';
import { sha256Hex } from '../receipt/envelope.ts';
import { type AppendResult, Chains, type LoadedIntent, type ProposeEntries } from './chains.ts';
import { outboxTable, spendTable } from './derived-tables.ts';
import { type Enrollment, openRoster } from './roster.ts';
import { submitterTable } from './submitter-table.ts';

/** Retry-after for a user with too many open intents. */
const RETRY_AFTER_SECONDS = 60;
/** Size of the cache of checked final intents. */
const ENDED_KEPT = 256;
/** Changed intents, and envelopes, that {@link Journal.changesSince} returns at most. */
const CHANGES_MAX = 1000;

type JournalOptions = {
  /** The folder with `journal.db`; created when missing. */
  readonly dataDir: string;
  readonly key: SigningKey;
  readonly clock: Clock;
  readonly log: Logger;
  /** Limits on one user's open intents, so that no user can fill the disk. */
  readonly bounds: IntentBounds;
  /** Default: `operator`. */
  readonly enrollment?: Enrollment;
};

type ChangeResult = {
  readonly state: ChainState;
  readonly entries: readonly ReceiptEntry[];
  /** The chain was found tampered with: it was ended, and the proposal did not run. */
  readonly broken: boolean;
};

type ChangeListener = (intent: LoadedIntent, entries: readonly ReceiptEntry[]) => void;

/** An envelope with its place. */
type StoredEntry = { readonly intentId: string; readonly seq: number; readonly entry: ReceiptEntry };

export type Journal = ReturnType<typeof openJournal>;

/** Opens or creates the journal. Throws the errors of `openDatabase`, and `conflict` when another key has signed it. */
export function openJournal({ dataDir, key, clock, log, bounds, enrollment = 'operator' }: JournalOptions) {
  const path = join(dataDir, 'journal.db');
  const migrations = new URL('./migrations/', import.meta.url);
  const file = openDatabase({ path, migrations, clock, lock: 'exclusive' });
  const writes = new GroupCommit(file.db);
  try {
    writes.runNow(() => claimJournal(file.db, key.keyId, path));
  } catch (thrown) {
    file.close();
    throw thrown;
  }
  const spends = spendTable(file.db);
  const outbox = outboxTable(file.db, writes, clock);
  const chains = new Chains({ db: file.db, key, clock, log, spends, outbox });
  const { intents, envelopes } = chains;
  /** Cache of open intents, equal to the state on disk. */
  const memory = new Map<string, LoadedIntent>();
  /** Cache of final intents, as they were when their chain was checked. */
  const ended = new Map<string, LoadedIntent>();
  /** Changes of one intent run one after another. */
  const changes = new KeyedQueue();
  const listeners = new Set<ChangeListener>();

  function cache(intent: LoadedIntent): void {
    const { id } = intent.row;
    if (!isFinal(intent.state)) {
      memory.set(id, intent);
      return;
    }
    memory.delete(id);
    ended.delete(id);
    ended.set(id, intent);
    if (ended.size > ENDED_KEPT) ended.delete(ended.keys().next().value!);
  }

  /** @throws ReveilleError `rate_limited` when the user would exceed a limit on open intents */
  function checkBounds(user: string, { context }: IntentRequest): void {
    const open = intents.openOf(user);
    const contextBytes = context === undefined ? 0 : Buffer.byteLength(JSON.stringify(context));
    let what: string | undefined;
    if (open.intents >= bounds.openIntents) what = `you have ${open.intents} open intents (EXECUTOR_MAX_OPEN_INTENTS)`;
    else if (contextBytes > 0 && open.contextBytes + contextBytes > bounds.contextBytes)
      what = `${open.contextBytes} bytes of conversation are stored for your uncompiled intents, and ${contextBytes} more exceed the limit (EXECUTOR_MAX_CONTEXT_MIB)`;
    if (what === undefined) return;
    const message = `${what}; wait until some of them end, or cancel them`;
    throw new ReveilleError('rate_limited', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
  }

  /** Updates the caches after a change on disk and notifies the listeners. */
  function settle({ intent, entries, hasMessage }: Omit<AppendResult, 'broken'>): void {
    cache(intent);
    for (const listener of [...listeners]) listener(intent, entries);
    if (hasMessage) outbox.notifyListeners();
  }

  /** Reads the chain; ends it when it was tampered with. */
  function check(intentId: string): LoadedIntent {
    const row = chains.row(intentId);
    const reading = chains.read(row);
    if (reading.broken === undefined && reading.state) return { row, state: reading.state, head: reading.head };
    const result = writes.runNow(() => chains.end(row, reading));
    settle(result);
    return result.intent;
  }

  /** Like {@link load}, for any user. */
  function loadAny(intentId: string): LoadedIntent {
    const known = memory.get(intentId);
    if (known) return known;
    const before = ended.get(intentId);
    if (before && chains.isUnchanged(before)) return before;
    const fresh = check(intentId);
    cache(fresh);
    return fresh;
  }

  /**
   * The user's intent. Its chain is checked unless this process wrote all of it.
   *
   * @throws ReveilleError `not_found`, also for another user's intent
   */
  function load(user: string, intentId: string): LoadedIntent {
    // Do not reveal whether another user's intent exists.
    if (chains.row(intentId).user !== user) chains.row('');
    return loadAny(intentId);
  }

  /** Changes one intent; changes of the same intent are serialized. Resolves when the change is on disk. */
  function change(intentId: string, propose: ProposeEntries): Promise<ChangeResult> {
    return changes.run(intentId, async () => {
      const result = await writes.run(() => chains.change(intentId, memory.get(intentId), propose));
      settle(result);
      return { state: result.intent.state, entries: result.entries, broken: result.broken };
    });
  }

  return {
    /**
     * Records a task, or finds the one with the same idempotency key.
     *
     * @param hashes of the present manifest and policy; part of the receipt
     * @param refusal thrown instead of recording a new task
     * @throws ReveilleError `conflict` when the key belongs to another task, `rate_limited` when the user has too many
     *   open intents
     */
    async accept(
      user: string,
      request: IntentRequest,
      hashes: { readonly manifestSha256: string; readonly policySha256: string },
      refusal?: ReveilleError,
    ): Promise<{ intentId: string; isNew: boolean }> {
      const id = uuidv7({ msecs: clock.now() });
      const accepted = await writes.run(() => {
        const idempotencyKey = request.idempotency_key;
        const known = idempotencyKey === undefined ? undefined : intents.idOf(user, idempotencyKey);
        if (known !== undefined) {
          const difference = differenceOf(envelopes.first(known), request);
          if (difference !== undefined) throw new ReveilleError('conflict', difference);
          return { intentId: known };
        }
        if (refusal) throw refusal;
        checkBounds(user, request);
        const createdAt = clock.now();
        const entry: ReceiptEntry = {
          kind: 'intent.accepted',
          body: acceptedBody(id, user, request, { ...hashes, at: createdAt }),
        };
        const sealed = nextEnvelope({ head: EMPTY_CHAIN, entry, key });
        const { head } = sealed;
        intents.insert({ id, user, idempotencyKey, context: request.context, head, createdAt });
        envelopes.append(id, sealed);
        return { intentId: id, entry };
      });
      const { intentId, entry } = accepted;
      if (entry) settle({ intent: loadAny(intentId), entries: [entry], hasMessage: false });
      return { intentId, isNew: entry !== undefined };
    },

    load,
    loadAny,
    change,
    open: intents.open,
    list: intents.newest,
    spends: spends.of,

    /** The receipt; its chain is checked again from the first envelope to the last. */
    receipt(user: string, intentId: string): IntentReceipt {
      load(user, intentId);
      check(intentId);
      return {
        format: RECEIPT_FORMAT,
        intent_id: intentId,
        public_key: key.publicKeyHex,
        envelopes: [...chains.read(chains.row(intentId)).envelopes],
      };
    },

    outbox: outbox.messages,
    roster: openRoster({ db: file.db, writes, clock, executor: key.publicKeyHex, enrollment }),
    submitters: submitterTable(file.db, writes, clock),

    /**
     * The envelopes of a user's intents since an instant, epoch milliseconds, for events: their chains are not checked.
     *
     * @returns `undefined` when there are too many
     */
    changesSince(user: string, since: number): StoredEntry[] | undefined {
      const changed = intents.changedSince(user, since, CHANGES_MAX + 1);
      const found: StoredEntry[] = [];
      for (const intentId of changed) {
        const entries = [...envelopes.since(intentId, since)];
        found.push(...entries.reverse().map(({ seq, entry }) => ({ intentId, seq, entry })));
        if (found.length > CHANGES_MAX) return undefined;
      }
      return found;
    },

    /** Called after each change is on disk. @returns a function that unsubscribes */
    onChange(listener: ChangeListener): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },

    /** Waits for changes in progress. */
    async close(): Promise<void> {
      await changes.idle();
      await writes.drain();
      file.close();
    },
  };
}

/** @throws ReveilleError `conflict` when another key has signed the journal */
function claimJournal(db: DatabaseSync, keyId: string, path: string): void {
  db.prepare('INSERT INTO journal_key (only_row, key_id) VALUES (1, ?) ON CONFLICT DO NOTHING').run(keyId);
  const owner = db.prepare('SELECT key_id FROM journal_key').get()?.key_id as string;
  if (owner === keyId) return;
  const message = `${path} was signed with the key ${owner.slice(0, 16)}…, and executor.key is ${keyId.slice(0, 16)}…; put the old executor.key back, or move journal.db away to begin a new one`;
  throw new ReveilleError('conflict', message);
}

type Accepted = ReceiptBodies['intent.accepted'];

function acceptedBody(
  intentId: string,
  user: string,
  { prose, intent, idempotency_key, conversation_id, origin = 'person', context }: IntentRequest,
  { at, manifestSha256, policySha256 }: { at: number; manifestSha256: string; policySha256: string },
): Accepted {
  return {
    at: formatInstant(at),
    intent_id: intentId,
    principal: { user, ...(conversation_id !== undefined && { conversation_id }), origin },
    ...(idempotency_key !== undefined && { idempotency_key }),
    ...(prose !== undefined && { prose }),
    ...(intent !== undefined && { intent: intent.text }),
    ...(context !== undefined && {
      context: { pieces: context.map(({ from }) => from), sha256: sha256Hex(canonicalJson(context)) },
    }),
    manifest_sha256: manifestSha256,
    policy_sha256: policySha256,
    rules: SIGNED_APPROVALS,
  };
}

/**
 * The difference between a request and the intent with its idempotency key; `undefined` when it is the same task. The
 * submitted conversation does not count: it grows from one attempt to the next.
 *
 * @param first the text of the intent's first envelope
 */
export function differenceOf(first: string | undefined, { prose, intent }: IntentRequest): string | undefined {
  const names = 'idempotency_key belongs to your intent with';
  const remedy = 'send the same task to get its outcome, or use a new key for another task';
  let accepted: Partial<Accepted>;
  try {
    accepted = (JSON.parse(first ?? '') as ReceiptEnvelope).body;
  } catch (cause) {
    const message =
      'the journal of the intent with this idempotency_key was tampered with and cannot be compared; use another key';
    throw new ReveilleError('conflict', message, { cause });
  }
  if (accepted.prose !== prose) {
    const what = accepted.prose === undefined ? 'an intent instead of prose' : 'other prose';
    return `${names} ${prose === undefined ? 'prose instead of an intent' : what}; ${remedy}`;
  }
  return accepted.intent === intent?.text ? undefined : `${names} another intent; ${remedy}`;
}
