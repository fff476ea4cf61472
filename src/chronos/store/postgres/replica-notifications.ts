/**
 * Notifications between replicas: an occurrence is due soon. They are an optimisation and may be lost: a pooler may drop
 * them, an engine may lack them. They save a sleeping replica the wait for its next poll.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { CancelTimer, Clock } from '../../../kit/clock/clock.ts';
import type { Logger } from '../../../kit/log/log.ts';
import type { PrimaryPool } from './pool.ts';
import { errorText } from './postgres-error.ts';
import { statement } from './statement.ts';

const CHANNEL = 'chronos_due';
const NOTIFY = statement('notify', 'SELECT pg_notify($1, $2)');

/** Polling finds later occurrences in time. */
const HORIZON_MS = 60_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

export class ReplicaNotifications {
  readonly #pool: PrimaryPool;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onRemoteDue: ((dueAt: number, bucket: number) => void) | undefined;
  /** Identifies this replica's own notifications, which it ignores. */
  readonly sender = randomUUID().slice(0, 8);
  /** Called with the membership messages of other replicas; see `membership.ts`. */
  onMember: ((member: string, message: string) => void) | undefined;
  /** The earliest due instant of each bucket. */
  #pending = new Map<number, number>();
  #sending = false;
  #client: pg.Client | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #retry: CancelTimer | undefined;
  #stopped = false;

  /**
   * @param onRemoteDue called with due instants of other replicas; without it, this replica only sends
   */
  constructor(pool: PrimaryPool, clock: Clock, log: Logger, onRemoteDue?: (dueAt: number, bucket: number) => void) {
    this.#pool = pool;
    this.#clock = clock;
    this.#log = log;
    this.#onRemoteDue = onRemoteDue;
  }

  /** Notifies the other replicas. Call it when the occurrence is durable. */
  notifyDue(dueAt: number, bucket: number, now: number): void {
    if (dueAt > now + HORIZON_MS || this.#stopped) return;
    this.#pending.set(bucket, Math.min(this.#pending.get(bucket) ?? dueAt, dueAt));
    if (!this.#sending) void this.#send();
  }

  /** Sends a membership message to the other replicas. */
  sendMembership(message: string): void {
    this.#pool.query(NOTIFY, [CHANNEL, `${this.sender} ${message}`]).catch((error: unknown) => {
      this.#log.debug({ reason: errorText(error) }, 'the other replicas could not be notified of this one');
    });
  }

  /** Listens until {@link stop}; returns at once. */
  listen(): void {
    if (this.#onRemoteDue && !this.#stopped) void this.#listen();
  }

  /** Listens to the server that accepts writes now. */
  reconnect(): void {
    if (!this.#client) return;
    this.#pauseMs = 0;
    this.#client
      .end()
      .catch((error: unknown) =>
        this.#log.debug({ reason: errorText(error) }, 'closing a connection for notifications'),
      );
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#retry?.();
    const client = this.#client;
    this.#client = undefined;
    await client?.end();
  }

  /**
   * Sends one notification at a time. Meanwhile notifications are merged: one for each bucket, with the earliest
   * instant.
   */
  async #send(): Promise<void> {
    this.#sending = true;
    for (let next = this.#next(); next && !this.#stopped; next = this.#next()) {
      const [bucket, dueAt] = next;
      this.#pending.delete(bucket);
      try {
        await this.#pool.query(NOTIFY, [CHANNEL, `${this.sender} ${dueAt} ${bucket}`]);
      } catch (error) {
        this.#log.debug({ reason: errorText(error) }, 'the other replicas could not be notified of a due occurrence');
      }
    }
    this.#sending = false;
  }

  #next(): [bucket: number, dueAt: number] | undefined {
    const [next] = this.#pending;
    return next;
  }

  async #listen(): Promise<void> {
    const client = new pg.Client({ ...this.#pool.clientConfig(this.#pool.primary), pipeline: false });
    this.#client = client;
    client.on('error', (error) =>
      this.#log.debug({ reason: errorText(error) }, 'the connection for notifications was lost'),
    );
    client.once('end', () => this.#listenLater(client));
    client.on('notification', ({ payload = '' }) => this.#receive(payload));
    try {
      await client.connect();
      await client.query(`LISTEN ${CHANNEL}`);
      this.#pauseMs = FIRST_PAUSE_MS;
    } catch (error) {
      this.#log.debug({ reason: errorText(error) }, 'no notifications for now');
      await client.end();
      this.#listenLater(client);
    }
  }

  #listenLater(lost: pg.Client): void {
    if (this.#client !== lost || this.#stopped) return;
    this.#client = undefined;
    this.#retry = this.#clock.after(this.#pauseMs, () => this.listen());
    this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
  }

  #receive(payload: string): void {
    // A replica of an earlier version sends no bucket, because it has only one.
    const [sender, instant, bucket = '0'] = payload.split(' ');
    const dueAt = Number(instant);
    if (sender === undefined || instant === undefined || sender === this.sender) return;
    if (Number.isSafeInteger(dueAt)) this.#onRemoteDue?.(dueAt, Number(bucket));
    else this.onMember?.(sender, instant);
  }
}
