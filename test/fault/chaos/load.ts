/**
 * The load during faults. Users set alarms and series and cancel some. They lose answers (some on purpose) and repeat
 * the request under the same key. They also try to access alarms of other users.
 */
import type { AlarmCreateBody, ChronosClient } from '../../../src/chronos/client.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { RawJson } from '../../../src/wire/json.ts';
import { pause } from '../../support/cluster/processes.ts';
import type { ClusterUser } from '../../support/cluster/user.ts';
import { createdAnswer, definitionOf, viewAnswer } from '../checker/answers.ts';
import type { ClientLog } from './client-log.ts';

export type LoadPlan = {
  users: readonly ClusterUser[];
  log: ClientLog;
  random: () => number;
  /** Single alarms set per second, over all users. */
  perSecond: number;
  /** Number of running series. */
  series: readonly string[];
  /** Additional settings of an alarm of this user. */
  extras?: (user: ClusterUser, random: () => number) => Partial<AlarmCreateBody>;
};

/** Single alarms are due this long after they are set. */
const SHORTEST_DELAY_SECONDS = 1;
const LONGEST_DELAY_SECONDS = 3;
const CONVERSATIONS = 4;
const CANCELLED_SHARE = 0.1;
const INTRUSION_SHARE = 0.1;
/** Share of creates that the client gives up early, and its timeout then. */
const GIVEN_UP_SHARE = 0.08;
const GIVEN_UP_WITHIN_MS = 12;
/** Wait before a repetition: doubles each time. */
const REPEAT_AFTER_MS = 50;
const REPEAT_AFTER_AT_MOST_MS = 1000;
/** A user without answers sends no further requests: a late installation must be able to catch up. */
const MOST_AT_ONCE = 60;
const TICK_MS = 20;

/** Codes that a repetition cannot resolve, unless the error says so: the load itself is wrong. */
const FINAL: ReadonlySet<string> = new Set(['invalid_request', 'conflict', 'not_found']);

/** Names that are unique and not contained in each other: an intruder who sees one has received foreign data. */
function namesOf({ label }: ClusterUser, number: number) {
  const padded = String(number).padStart(6, '0');
  return {
    label: `label-${padded}`,
    conversation_id: `${label}.conversation-${number % CONVERSATIONS}`,
    idempotency_key: `key-${padded}`,
  };
}

type Acknowledged = { user: ClusterUser; id: string };

export class Load {
  readonly #plan: LoadPlan;
  readonly #running = new Set<Promise<void>>();
  readonly #series: Acknowledged[] = [];
  readonly #failures: unknown[] = [];
  #timer: NodeJS.Timeout | undefined;
  #serial = 0;
  #givenUp = false;
  /** Alarms that chronosd acknowledged, series included. */
  acknowledged = 0;
  /** Creates that were repeated under their key. */
  repeated = 0;

  constructor(plan: LoadPlan) {
    this.#plan = plan;
  }

  /** Sets the series, then one alarm after the other until {@link stop}. */
  async start(): Promise<void> {
    const { series, perSecond } = this.#plan;
    // All users authenticate before the first fault.
    for (const { clients } of this.#plan.users) for (const client of clients) await client.listAlarms({ limit: 1 });
    await Promise.all(series.map((expression) => this.#setSeries(expression)));
    const began = performance.now();
    let turns = 0;
    // By the clock and not by the tick: a late timer catches up.
    this.#timer = setInterval(() => {
      for (; turns < ((performance.now() - began) / 1000) * perSecond; turns++)
        if (this.#running.size < MOST_AT_ONCE) this.#track(this.#setOne());
    }, TICK_MS);
  }

  /**
   * Sets no new alarms, cancels the series, and resolves when every call was answered or abandoned.
   *
   * @param limitMs when calls without an answer are abandoned
   * @throws an error that shows that the load itself is wrong
   */
  async stop(limitMs: number): Promise<void> {
    clearInterval(this.#timer);
    for (const alarm of this.#series) this.#track(this.#cancel(alarm));
    const limit = setTimeout(() => this.abandon(), limitMs);
    while (this.#running.size > 0) await Promise.all(this.#running);
    clearTimeout(limit);
    if (this.#failures.length > 0) throw new AggregateError(this.#failures, 'the load could not be sustained');
  }

  /** Sets no new alarms and repeats no requests. */
  abandon(): void {
    clearInterval(this.#timer);
    this.#givenUp = true;
  }

  #track(work: Promise<void>): void {
    const tracked: Promise<void> = work
      .catch((error: unknown) => void this.#failures.push(error))
      .finally(() => this.#running.delete(tracked));
    this.#running.add(tracked);
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#plan.random() * from.length)]!;
  }

  async #setSeries(expression: string): Promise<void> {
    const user = this.#pick(this.#plan.users);
    const number = this.#serial++;
    const id = await this.#create(user, {
      kind: 'cron',
      cron_expr: expression,
      wake_message: `series of ${user.label} ${expression}`,
      ...namesOf(user, number),
    });
    if (id !== undefined) this.#series.push({ user, id });
  }

  async #setOne(): Promise<void> {
    const { random, extras, users } = this.#plan;
    const user = this.#pick(users);
    const number = this.#serial++;
    const delaySeconds = SHORTEST_DELAY_SECONDS + random() * (LONGEST_DELAY_SECONDS - SHORTEST_DELAY_SECONDS);
    const [cancelled, intruded] = [random() < CANCELLED_SHARE, random() < INTRUSION_SHARE];
    const cancelAfterMs = random() * LONGEST_DELAY_SECONDS * 1000;
    const id = await this.#create(user, {
      kind: 'once',
      // Every character of it must arrive.
      wake_message: `alarm ${number} \u0007 of ${user.label}  `,
      ...(number % 3 === 0 ? { payload: new RawJson(`{"n": 1234567890123456${number}.0}`) } : {}),
      delay_seconds: delaySeconds,
      ...namesOf(user, number),
      ...extras?.(user, random),
    });
    if (id === undefined) return;
    if (intruded) await this.#intrude({ user, id });
    if (!cancelled) return;
    await pause(cancelAfterMs);
    await this.#cancel({ user, id });
  }

  /** Creates an alarm with as many attempts as necessary; `undefined` when it was abandoned. */
  async #create(user: ClusterUser, body: AlarmCreateBody): Promise<string | undefined> {
    const { log, random } = this.#plan;
    const operation = { op: 'create', key: body.idempotency_key ?? null, definition: definitionOf(body) } as const;
    const timeoutMs = random() < GIVEN_UP_SHARE ? Math.round(random() * GIVEN_UP_WITHIN_MS) : undefined;
    const created = await this.#untilAnswered(user, (client, attempt) => {
      if (attempt > 0) this.repeated++;
      const signal = attempt === 0 && timeoutMs !== undefined ? AbortSignal.timeout(timeoutMs) : undefined;
      return log.ask(user.label, operation, () => client.createAlarm(body, { signal }), createdAnswer);
    });
    if (created) this.acknowledged++;
    return created?.id;
  }

  async #cancel({ user, id }: Acknowledged): Promise<void> {
    await this.#untilAnswered(user, (client) =>
      this.#plan.log.ask(user.label, { op: 'cancel', alarmId: id }, () => client.cancelAlarm(id), viewAnswer),
    );
  }

  /** Another user tries an action that only the owner may do. */
  async #intrude({ user, id }: Acknowledged): Promise<void> {
    const { users, log } = this.#plan;
    const intruder = this.#pick(users.filter((other) => other !== user));
    const client = this.#pick(intruder.clients);
    const trials: Record<string, () => Promise<unknown>> = {
      get: () => client.getAlarm(id),
      cancel: () => client.cancelAlarm(id),
      patch: () => client.patchAlarm(id, { label: 'mine' }),
      fires: () => client.listFires(id),
      trigger: () => client.triggerAlarm(id),
      list: () => client.listAlarms({ limit: 20 }),
    };
    const action = this.#pick(Object.keys(trials));
    await log
      .ask(intruder.label, { op: 'intrude', alarmId: id, action }, trials[action]!, (result) => ({
        answer: 'acknowledged',
        revealed: JSON.stringify(result),
      }))
      .catch((error: unknown) => {
        if (!(error instanceof ReveilleError)) throw error;
      });
  }

  /** Asks one replica after the other until one succeeds. */
  async #untilAnswered<T>(
    user: ClusterUser,
    ask: (client: ChronosClient, attempt: number) => Promise<T>,
  ): Promise<T | undefined> {
    const first = Math.floor(this.#plan.random() * user.clients.length);
    for (let attempt = 0; !this.#givenUp; attempt++) {
      try {
        return await ask(user.clients[(first + attempt) % user.clients.length]!, attempt);
      } catch (error) {
        if (!(error instanceof ReveilleError) || (FINAL.has(error.code) && !error.retryable)) throw error;
        await pause(Math.min(REPEAT_AFTER_AT_MOST_MS, REPEAT_AFTER_MS * 2 ** attempt));
      }
    }
    return undefined;
  }
}
