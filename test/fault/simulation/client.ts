/**
 * An owner's agent: sets, edits and cancels alarms, repeats requests without an answer, and sometimes tries a forbidden
 * action.
 */
import { mintPrincipalToken } from '../../../src/chronos/auth/principal.ts';
import type { AlarmCreateBody, AlarmPage, AlarmPatchBody, TriggeredAlarm } from '../../../src/chronos/client.ts';
import { type AlarmCreated, type AlarmView, RAW_ALARM_FIELDS } from '../../../src/wire/alarm.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { encodeJson, parseJsonObject } from '../../../src/wire/json.ts';
import { changeOf, createdAnswer, definitionOf, failedAnswer, viewAnswer } from '../checker/answers.ts';
import type { Answer, Operation } from '../checker/history.ts';
import { Api, leavesOpen } from './api.ts';
import { AlarmAuthor } from './author.ts';
import type { Dice } from './dice.ts';
import { PRINCIPAL_SECRET, type World } from './world.ts';

/** The fields of its alarms that an owner reads. */
const JUST_NOW_MS = 60_000;
const SOON_MS = 3_000;
/** Repetitions of a request without an answer before the client gives up. */
const REPEATS = 6;

/** An alarm that this client has set, as far as it knows. */
type Known = { id: string; kind: 'once' | 'cron'; dueAt: number };

/** An owner's actions, by weight. */
const ACTIONS = {
  once: 30,
  series: 9,
  flock: 3,
  get: 4,
  list: 3,
  fires: 3,
  cancel: 12,
  pause: 6,
  resume: 9,
  edit: 10,
  trigger: 6,
  redrive: 7,
  intrude: 6,
};

type Lifecycle = 'cancel' | 'pause' | 'resume' | 'trigger' | 'redrive';

const ROUTES: Record<Lifecycle, (id: string) => { method: string; path: string }> = {
  cancel: (id) => ({ method: 'DELETE', path: `/v1/alarms/${id}` }),
  pause: (id) => ({ method: 'POST', path: `/v1/alarms/${id}/pause` }),
  resume: (id) => ({ method: 'POST', path: `/v1/alarms/${id}/resume` }),
  trigger: (id) => ({ method: 'POST', path: `/v1/alarms/${id}/trigger` }),
  redrive: (id) => ({ method: 'POST', path: `/v1/alarms/${id}/redrive` }),
};

export class Client {
  readonly owner: string;
  readonly publicKey: string;
  /** The ids of all its alarms in the final listing. */
  listed: readonly string[] = [];
  readonly #world: World;
  readonly #dice: Dice;
  readonly #author: AlarmAuthor;
  readonly #api: Api;
  readonly #known: Known[] = [];
  #busy = 0;
  #resting = false;

  constructor(world: World, owner: string) {
    this.#world = world;
    this.owner = owner;
    this.#dice = world.dice.fork(`client ${owner}`);
    this.#author = new AlarmAuthor(owner, this.#dice.fork('author'));
    this.publicKey = owner.padEnd(64, '0').replaceAll(/[^0-9a-f]/g, '0');
    const principal = mintPrincipalToken(
      { owner, publicKey: this.publicKey },
      world.scenario.start * 2,
      PRINCIPAL_SECRET,
    );
    this.#api = new Api(world, this.#dice.fork('network'), principal);
  }

  /** No request of this client waits for an answer. */
  get isIdle(): boolean {
    return this.#busy === 0;
  }

  /** Acts at random moments until {@link rest}. Several actions may run in parallel. */
  async live(): Promise<void> {
    const { actionEveryMs } = this.#world.scenario;
    while (!this.#resting) {
      await this.#world.pause(-Math.log(1 - this.#dice.next()) * actionEveryMs);
      if (this.#resting) return;
      this.#busy++;
      void this.#act().finally(() => {
        this.#busy--;
      });
    }
  }

  rest(): void {
    this.#resting = true;
  }

  /** Lists all its alarms, page by page, and cancels the endless series. */
  async cancelAll(): Promise<void> {
    this.#busy++;
    try {
      const alarms = await this.#listAll();
      this.listed = alarms.map(({ id }) => id);
      for (const { id, kind, status } of alarms) {
        if (kind === 'cron' && status === 'active') await this.#cancelUntilAnswered(id);
      }
    } finally {
      this.#busy--;
    }
  }

  async #listAll(): Promise<AlarmView[]> {
    const found: AlarmView[] = [];
    let cursor = '';
    do {
      const query = `limit=${this.#dice.whole(1, 30)}${cursor && `&cursor=${cursor}`}`;
      const page = JSON.parse(await this.#api.requestUntilAnswered('GET', `/v1/alarms?${query}`)) as AlarmPage;
      found.push(...page.alarms);
      cursor = page.next_cursor ?? '';
    } while (cursor !== '');
    return found;
  }

  async #act(): Promise<void> {
    try {
      await this.#do(this.#dice.weighted(ACTIONS));
    } catch (error) {
      // Refusals and missing answers are in the log; every other error is a defect of the simulation.
      if (!(error instanceof ReveilleError)) throw error;
    }
  }

  async #do(action: keyof typeof ACTIONS): Promise<unknown> {
    const now = this.#world.outsideNow();
    switch (action) {
      case 'once':
        return this.#create(this.#author.once(now));
      case 'series':
        return this.#create(this.#author.series(now));
      case 'flock':
        return Promise.allSettled(this.#author.flock(now).map((body) => this.#create(body)));
      case 'list':
        return this.#api.request('GET', `/v1/alarms?limit=${this.#dice.whole(1, 20)}`);
      case 'intrude':
        return this.#intrude();
    }
    const alarm = this.#pick();
    if (!alarm) return undefined;
    switch (action) {
      case 'get':
        return this.#recorded(
          { op: 'read', alarmId: alarm.id },
          () => this.#view('GET', `/v1/alarms/${alarm.id}`),
          viewAnswer,
        );
      case 'fires':
        return this.#api.request('GET', `/v1/alarms/${alarm.id}/fires?limit=${this.#dice.whole(1, 20)}`);
      case 'edit':
        return this.#edit(alarm, this.#author.edit(alarm.kind, now));
      default:
        return this.#perform(action, alarm.id);
    }
  }

  /** One of the known alarms: one that is about to fire or is overdue, or any one, newer ones more often. */
  #pick(): Known | undefined {
    const now = this.#world.outsideNow();
    const firing = this.#known.filter(({ dueAt }) => dueAt > now - JUST_NOW_MS && dueAt < now + SOON_MS);
    if (firing.length > 0 && this.#dice.chance(0.4)) return this.#dice.pick(firing);
    const count = this.#known.length;
    return this.#known[Math.floor(count * (1 - this.#dice.next() ** 2))];
  }

  async #create(body: AlarmCreateBody): Promise<void> {
    const operation: Operation = { op: 'create', key: body.idempotency_key ?? null, definition: definitionOf(body) };
    for (let repeat = 0; ; repeat++) {
      try {
        const { id, next_fire_at } = await this.#recorded(
          operation,
          async () => JSON.parse(await this.#api.request('POST', '/v1/alarms', encodeJson(body))) as AlarmCreated,
          createdAnswer,
        );
        if (!this.#known.some((known) => known.id === id))
          this.#known.push({ id, kind: body.kind === 'once' ? 'once' : 'cron', dueAt: Date.parse(next_fire_at ?? '') });
        // Some agents send a request twice.
        if (repeat > 0 || body.idempotency_key === undefined || !this.#dice.chance(0.1)) return;
      } catch (error) {
        if (!leavesOpen(error) || body.idempotency_key === undefined || repeat >= REPEATS) throw error;
        this.#world.weather.count('create repeated');
        await this.#world.pause(this.#dice.magnitude(10, 5_000));
      }
    }
  }

  async #perform(action: Lifecycle, alarmId: string): Promise<void> {
    const { method, path } = ROUTES[action](alarmId);
    this.#world.watch.excuse(alarmId, action === 'resume' || action === 'redrive');
    const view = await this.#recorded({ op: action, alarmId }, () => this.#view(method, path), viewAnswer);
    if (view.status === 'cancelled') this.#world.watch.cancelled(alarmId, view.in_flight);
  }

  async #cancelUntilAnswered(alarmId: string): Promise<void> {
    for (;;) {
      try {
        return await this.#perform('cancel', alarmId);
      } catch (error) {
        if (!leavesOpen(error)) throw error;
        await this.#world.pause(500);
      }
    }
  }

  async #edit({ id }: Known, patch: AlarmPatchBody): Promise<void> {
    this.#world.watch.excuse(id, true);
    await this.#recorded(
      { op: 'update', alarmId: id, change: changeOf(patch) },
      () => this.#view('PATCH', `/v1/alarms/${id}`, encodeJson(patch)),
      viewAnswer,
    );
  }

  /** Tries to access another owner's alarm. */
  async #intrude(): Promise<void> {
    const other = this.#dice.pick(this.#world.clients);
    const alarm = other === this ? undefined : other.#pick();
    if (!alarm) return;
    const id = alarm.id;
    const [action, method, path, body] = this.#dice.pick([
      ['get', 'GET', `/v1/alarms/${id}`],
      ['list', 'GET', '/v1/alarms?limit=500'],
      ['fires', 'GET', `/v1/alarms/${id}/fires`],
      ['cancel', 'DELETE', `/v1/alarms/${id}`],
      ['pause', 'POST', `/v1/alarms/${id}/pause`],
      ['trigger', 'POST', `/v1/alarms/${id}/trigger`],
      ['patch', 'PATCH', `/v1/alarms/${id}`, '{"wake_message":"not yours"}'],
    ] as [string, string, string, string?][]);
    await this.#recorded(
      { op: 'intrude', alarmId: id, action },
      () => this.#api.request(method, path, body),
      (text) => ({ answer: 'acknowledged', revealed: text }),
    );
  }

  /** Runs a call and logs the request and its outcome. */
  async #recorded<T>(operation: Operation, run: () => Promise<T>, answerText: (value: T) => Answer): Promise<T> {
    const { trace, recorder } = this.#world;
    const answered = recorder.invoke(this.owner, operation, this.#world.outsideNow());
    const about = 'alarmId' in operation ? operation.alarmId : (operation.key ?? '');
    trace.note(this.owner, operation.op, about);
    let answer: Answer | undefined;
    try {
      const value = await run();
      answer = answerText(value);
      return value;
    } catch (error) {
      answer = failedAnswer(error);
      throw error;
    } finally {
      if (answer) {
        answered(answer, this.#world.outsideNow());
        trace.note(this.owner, `${operation.op} ${about}`, describe(answer));
      }
    }
  }

  async #view(method: string, path: string, body?: string): Promise<AlarmView | TriggeredAlarm> {
    return parseJsonObject(await this.#api.request(method, path, body), RAW_ALARM_FIELDS) as AlarmView | TriggeredAlarm;
  }
}

function describe(answer: Answer): string {
  switch (answer.answer) {
    case 'acknowledged':
      return `ok ${answer.alarmId ?? ''} ${answer.status ?? ''}${answer.inFlight ? ' in flight' : ''}`;
    case 'refused':
      return `refused: ${answer.code} ${answer.message}`;
    case 'lost':
      return `lost: ${answer.reason}`;
  }
}
