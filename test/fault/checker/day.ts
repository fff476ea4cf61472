/**
 * A working store under a clock that the test moves: small models of clients, a dispatcher and a receiver around a real
 * store. They use only the store's port, and each keeps its log. Concurrent actions of a real installation run here one
 * after the other.
 */
import { randomUUID } from 'node:crypto';
import type { AlarmState, Attempt, Transition } from '../../../src/chronos/alarm/alarm.ts';
import { differingFields, draftAlarm, editAlarm, firstOccurrence } from '../../../src/chronos/alarm/definition.ts';
import {
  cancelAlarm,
  pauseAlarm,
  redriveAlarm,
  resumeAlarm,
  triggerAlarm,
} from '../../../src/chronos/alarm/lifecycle.ts';
import { catchUp } from '../../../src/chronos/alarm/series.ts';
import {
  interruptedAttempt,
  retryDelayMs,
  settleDelivered,
  settleFailed,
  settleInterrupted,
  settleMissed,
  settleReplaced,
} from '../../../src/chronos/alarm/settlement.ts';
import { type Body, createInput, LIMITS, NOW, patchInput } from '../../../src/chronos/alarm/testing/alarm-state.ts';
import { nextFireAt, viewAlarm } from '../../../src/chronos/alarm/view.ts';
import type { AlarmCreateBody, AlarmPatchBody } from '../../../src/chronos/client.ts';
import type { AlarmStore, Claim } from '../../../src/chronos/store/store.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { RawJson } from '../../../src/wire/json.ts';
import { formatInstant } from '../../../src/wire/rfc3339.ts';
import { changeOf, createdAnswer, definitionOf, failedAnswer, viewAnswer } from './answers.ts';
import type { Answer, Operation } from './history.ts';
import type { ClientRecorder, ReceiverRecorder } from './journal.ts';

/** How long a wake takes to arrive, and its answer to return. */
const TRIP_MS = 3;

/**
 * The receiver's reaction to a wake: it accepts it, refuses it for now or for good, accepts it but its answer is lost,
 * or accepts it while the sender dies. `unsent` dies before sending.
 */
export type Reception = 'accepts' | 'busy' | 'gone' | 'loses answer' | 'sender dies' | 'unsent';

/** The outcome of a create's answer: it arrives, or is lost after or before the alarm was stored. */
export type Loss = 'none' | 'stored' | 'not stored';

/** How long after its last sign of life a process counts as gone. */
const GONE_MS = 2000;

const LOST: Answer = { answer: 'lost', reason: 'the connection was cut' };

function onTheWire({ payload, ...body }: Body): Record<string, unknown> {
  return payload === undefined ? body : { ...body, payload: new RawJson(payload) };
}

export class Day {
  now = NOW;
  /** The reactions to an alarm's wakes, in order; later wakes are accepted. */
  readonly receptions = new Map<string, Reception[]>();
  readonly #store: AlarmStore;
  readonly #client: ClientRecorder;
  readonly #receiver: ReceiverRecorder;
  readonly #accepted = new Set<string>();

  constructor(store: AlarmStore, client: ClientRecorder, receiver: ReceiverRecorder) {
    this.#store = store;
    this.#client = client;
    this.#receiver = receiver;
  }

  /** Sets an alarm. Resolves to its id even if the client does not learn it, or to none if nothing was stored. */
  async set(user: string, body: Body, { loss = 'none' as Loss } = {}): Promise<string> {
    const wire = onTheWire({ wake_message: `a word from ${user}`, ...body });
    const operation: Operation = {
      op: 'create',
      key: (body.idempotency_key as string | undefined) ?? null,
      definition: definitionOf(wire as unknown as AlarmCreateBody),
    };
    let id = '';
    await this.#ask(user, operation, async () => {
      if (loss === 'not stored') return LOST;
      const input = createInput({ wake_message: `a word from ${user}`, ...body });
      const alarm = draftAlarm(input, { id: randomUUID(), owner: user, now: this.now, limits: LIMITS });
      const entry = { alarm, occurrence: firstOccurrence(alarm, this.now, LIMITS) };
      const answer = await this.#store.create(entry, { maxActive: 1000 });
      if (answer.result === 'too_many' || answer.result === 'too_much')
        throw new ReveilleError('rate_limited', 'too many');
      const { state } = answer;
      if (answer.result === 'key_taken' && differingFields(state.alarm, alarm).length > 0)
        throw new ReveilleError('conflict', `the key belongs to ${state.alarm.id}`);
      id = state.alarm.id;
      if (loss === 'stored') return LOST;
      const next = nextFireAt(state);
      return createdAnswer({
        id,
        status: state.alarm.status,
        deduped: answer.result === 'key_taken',
        ...(next === undefined ? {} : { next_fire_at: formatInstant(next) }),
      });
    });
    return id;
  }

  cancel(user: string, alarmId: string): Promise<void> {
    return this.#act(user, { op: 'cancel', alarmId }, (state) => cancelAlarm(state, this.now));
  }

  pause(user: string, alarmId: string): Promise<void> {
    return this.#act(user, { op: 'pause', alarmId }, (state) => pauseAlarm(state, this.now));
  }

  resume(user: string, alarmId: string): Promise<void> {
    return this.#act(user, { op: 'resume', alarmId }, (state) => resumeAlarm(state, this.now));
  }

  redrive(user: string, alarmId: string): Promise<void> {
    return this.#act(user, { op: 'redrive', alarmId }, (state) => redriveAlarm(state, this.now));
  }

  read(user: string, alarmId: string): Promise<void> {
    return this.#act(user, { op: 'read', alarmId }, (state) => state);
  }

  update(user: string, alarmId: string, patch: Body): Promise<void> {
    const change = changeOf(onTheWire(patch) as unknown as AlarmPatchBody);
    return this.#act(user, { op: 'update', alarmId, change }, (state) =>
      editAlarm(state, patchInput(patch), this.now, LIMITS),
    );
  }

  trigger(user: string, alarmId: string): Promise<void> {
    return this.#ask(user, { op: 'trigger', alarmId }, async () => {
      let fireId = '';
      const state = await this.#update(user, alarmId, (before) => {
        const triggered = triggerAlarm(before, this.now);
        fireId = triggered.fireId;
        return triggered.state;
      });
      return viewAnswer({ ...viewAlarm(state), fire_id: fireId });
    });
  }

  /** Another user's attempt to cancel. */
  intrude(user: string, alarmId: string): Promise<void> {
    return this.#ask(user, { op: 'intrude', alarmId, action: 'cancel' }, async () => {
      const state = await this.#update(user, alarmId, (before) => cancelAlarm(before, this.now));
      return { ...viewAnswer(viewAlarm(state)), revealed: JSON.stringify(state.alarm) } as Answer;
    });
  }

  /** Another user's list of their own alarms. */
  list(user: string, alarmId: string): Promise<void> {
    return this.#ask(user, { op: 'intrude', alarmId, action: 'list' }, async () => {
      const states = await this.#store.list(user, { limit: 100 });
      return { answer: 'acknowledged', revealed: JSON.stringify(states) };
    });
  }

  /** Lets time pass, with a dispatcher that delivers due occurrences. */
  async pass(ms: number): Promise<void> {
    const until = this.now + ms;
    for (;;) {
      const next = await this.#store.nextDueAt(new Set());
      if (next === undefined || next > until) break;
      this.now = Math.max(this.now, next);
      await this.work();
    }
    this.now = Math.max(this.now, until);
  }

  /** Lets time pass without a dispatcher. */
  sleep(ms: number): void {
    this.now += ms;
  }

  /** Claims due occurrences and leaves them with their holder. */
  claim(): Promise<Claim[]> {
    return this.#store.claim({ now: this.now, limit: 100, perOwner: 100, inFlight: new Map() });
  }

  /** One round of a dispatcher. */
  async work(): Promise<void> {
    for (const claim of await this.claim()) await this.deliver(claim);
  }

  /** The process of a claim dies, and others notice it. */
  async #vanish(claim: Claim): Promise<void> {
    this.now += GONE_MS;
    const { occurrence } = claim;
    const at = this.now;
    await this.#complete(claim, interruptedAttempt(occurrence, at), (state) =>
      settleInterrupted(state, occurrence.fireId, at),
    );
  }

  /** One claim to its end, or to the end of its holder. */
  async deliver(claim: Claim): Promise<void> {
    const { alarm, occurrence } = claim;
    const { fireId } = occurrence;
    const replacement = occurrence.attempt === 1 ? catchUp(alarm, occurrence, this.now) : undefined;
    if (replacement) return this.#complete(claim, null, (state) => settleReplaced(state, fireId, replacement));
    const startedAt = this.now;
    const record = (outcome: Attempt['outcome'], httpStatus: number | null, error: string | null): Attempt => ({
      fireId,
      alarmId: alarm.id,
      owner: alarm.owner,
      scheduledFor: occurrence.scheduledFor,
      attempt: occurrence.attempt,
      startedAt,
      finishedAt: this.now,
      outcome,
      httpStatus,
      error,
      missedCount: occurrence.missedCount,
      machineReadyMs: null,
      lateBecause: null,
      cause: null,
    });
    const lateMs = startedAt - occurrence.scheduledFor;
    if (alarm.maxLatenessSeconds !== null && lateMs > alarm.maxLatenessSeconds * 1000)
      return this.#complete(claim, record('missed', null, 'too late'), (state) =>
        settleMissed(state, fireId, 'too late'),
      );

    const reception = this.receptions.get(alarm.id)?.shift() ?? 'accepts';
    if (reception === 'unsent') return this.#vanish(claim);
    const status = this.#receive(claim, reception);
    if (reception === 'sender dies') return this.#vanish(claim);
    if (reception === 'accepts')
      return this.#complete(claim, record('delivered', status, null), (state) =>
        settleDelivered(state, fireId, startedAt),
      );
    const lost = reception === 'loses answer';
    const error = lost ? 'no answer' : `the router answered ${status}`;
    const retryAt = (failure: number) => this.now + retryDelayMs(failure, { random: 0 });
    await this.#complete(claim, record(lost ? 'unknown' : 'failed', lost ? null : status, error), (state) =>
      settleFailed(state, fireId, { error, final: reception === 'gone', retryAt }),
    );
  }

  /** The receiver: it logs the wake, and one turn for each occurrence that it has not accepted before. */
  #receive({ alarm, occurrence }: Claim, reception: Reception): number {
    const { fireId, attempt, missedCount } = occurrence;
    const content = {
      fireId,
      user: alarm.owner,
      conversation: alarm.conversationId,
      message: alarm.wakeMessage,
      payload: alarm.payload,
    };
    this.now += TRIP_MS;
    const answered = this.#receiver.woken({ ...content, attempt, missedCount }, this.now);
    const known = this.#accepted.has(fireId);
    const refusals: Partial<Record<Reception, number>> = { busy: 503, gone: 410 };
    const status = refusals[reception] ?? (known ? 200 : 202);
    if (status < 300 && !known) {
      this.#accepted.add(fireId);
      this.#receiver.turn({ ...content, status: 'done' }, this.now);
    }
    answered(status, this.now);
    this.now += TRIP_MS;
    return status;
  }

  async #complete({ occurrence }: Claim, attempt: Attempt | null, settle: Transition): Promise<void> {
    const { owner, alarmId, fireId, fence } = occurrence;
    await this.#store.complete([{ key: { owner, alarmId, fireId, fence }, attempt, settle }]);
  }

  async #update(user: string, alarmId: string, transition: Transition): Promise<AlarmState> {
    const state = await this.#store.update(user, alarmId, transition);
    if (!state) throw new ReveilleError('not_found', 'you have no alarm with this id');
    return state;
  }

  #act(user: string, operation: Operation & { alarmId: string }, transition: Transition): Promise<void> {
    return this.#ask(user, operation, async () =>
      viewAnswer(viewAlarm(await this.#update(user, operation.alarmId, transition))),
    );
  }

  /** A call, with a short delay in both directions. */
  async #ask(user: string, operation: Operation, call: () => Promise<Answer>): Promise<void> {
    const answered = this.#client.invoke(user, operation, this.now);
    this.now++;
    const answer = await call().catch(failedAnswer);
    this.now++;
    answered(answer, this.now);
  }
}
