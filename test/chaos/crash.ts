/**
 * The crash test: daemons are killed (`kill -9`) at random moments while alarms are set and ring, and three independent logs are
 * held against each other afterwards: what the client was told, what chronosd's ledger says, and what Neo has.
 */
import type { AlarmCreateBody } from '../../src/chronos/client.ts';
import type { AlarmView, FireView } from '../../src/wire/alarm.ts';
import { ReveilleError } from '../../src/wire/errors.ts';
import { conversationViewSchema, type TurnView } from '../../src/wire/turn.ts';
import { House, type HousePlan, type HouseUser, type Victim } from '../house/house.ts';
import { pause, until } from '../house/processes.ts';

export type CrashPlan = HousePlan & {
  rounds: number;
  /** Alarms set in each round. */
  alarmsPerRound: number;
  seed: number;
  /** Called after each round. */
  onRound?: (round: number, victim: Victim) => void;
};

export type CrashReport = {
  rounds: number;
  kills: Record<Victim, number>;
  /** Alarms that chronosd acknowledged. */
  acknowledged: number;
  /** Creates whose answer was lost and that were repeated under their idempotency key. */
  repeatedCreates: number;
  turns: number;
  attempts: number;
  /** Attempts whose outcome nobody knows: killed in flight. */
  unknownAttempts: number;
  /** Every sentence is a broken promise. */
  violations: string[];
};

/** mulberry32: small, and the same numbers from the same seed everywhere. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Acknowledged = { user: HouseUser; id: string; key: string; message: string; conversation: string };

/** In each round alarms are set, and one daemon is killed, at random moments within this time. */
const SETTING_MS = 500;

/** Sets an alarm however often chronosd dies meanwhile; the idempotency key makes that safe. */
async function setStubbornly(user: HouseUser, alarm: AlarmCreateBody, onRepeat: () => void): Promise<string> {
  for (let attempt = 0; ; attempt++) {
    try {
      return (await user.clients[attempt % user.clients.length]!.createAlarm(alarm)).id;
    } catch (error) {
      if (!(error instanceof ReveilleError) || error.code === 'invalid_request' || error.code === 'conflict')
        throw error;
      onRepeat();
      await pause(50);
    }
  }
}

async function allActive(user: HouseUser): Promise<AlarmView[]> {
  return (await user.clients[0]!.listAlarms({ status: 'active', limit: 500 })).alarms;
}

async function allOf(user: HouseUser): Promise<AlarmView[]> {
  const found: AlarmView[] = [];
  let cursor: string | undefined;
  do {
    const page = await user.clients[0]!.listAlarms({ limit: 500, ...(cursor ? { cursor } : {}) });
    found.push(...page.alarms);
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}

export async function runCrashTest(plan: CrashPlan): Promise<CrashReport> {
  const random = randomFrom(plan.seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  const house = await House.open(plan);
  const victims: Victim[] = [
    'chronosd',
    'router',
    'neo',
    ...(plan.store === 'postgres' ? (['postgres'] as const) : []),
  ];
  const acknowledged: Acknowledged[] = [];
  const kills: Record<Victim, number> = { chronosd: 0, router: 0, neo: 0, postgres: 0 };
  let repeatedCreates = 0;
  let serial = 0;

  const setOne = async () => {
    const user = pick(house.users);
    const number = serial++;
    // Spread over the round, so that the kill meets some creates before, some during and some after it.
    await pause(random() * SETTING_MS);
    const alarm = {
      kind: 'once',
      wake_message: `alarm ${number} \u0007 of ${user.label}  `,
      delay_seconds: 1 + random() * 2,
      conversation_id: `conversation-${number % 40}`,
      idempotency_key: `key-${number}`,
    } as const;
    const id = await setStubbornly(user, alarm, () => repeatedCreates++);
    acknowledged.push({
      user,
      id,
      key: alarm.idempotency_key,
      message: alarm.wake_message,
      conversation: alarm.conversation_id,
    });
  };

  try {
    for (let round = 0; round < plan.rounds; round++) {
      const setting = Array.from({ length: plan.alarmsPerRound }, setOne);
      await pause(random() * SETTING_MS);
      const victim = pick(victims);
      if (victim === 'neo') {
        // A sleeping Neo cannot be killed; over the rounds every one of them is awake often enough.
        if (house.users.map((user) => house.killNeo(user)).some(Boolean)) kills.neo++;
      } else if (victim === 'postgres') {
        kills.postgres++;
        await house.interruptPostgres(random() * SETTING_MS);
      } else {
        const name = victim === 'chronosd' ? pick(house.replicas) : victim;
        await house.kill(name);
        kills[victim]++;
        await house.start(name);
      }
      await Promise.all(setting);
      plan.onRound?.(round, victim);
    }
    return await judge(house, acknowledged, { rounds: plan.rounds, kills, repeatedCreates });
  } finally {
    await house.close();
  }
}

/** Promise 5: after a crash, whatever is overdue is on its way within this time. */
const OVERDUE_LIMIT_MS = 20_000;

/**
 * Waits until nothing is owed any more. An alarm may wait on the retry ladder, for minutes when it met one crash after the other;
 * what it may not do is to be overdue with nobody working on it.
 */
async function drained(house: House): Promise<string[]> {
  for (;;) {
    const active = (await Promise.all(house.users.map(allActive))).flat();
    if (active.length === 0) return [];
    const stuck = active.filter(
      (alarm) => !alarm.in_flight && Date.parse(alarm.next_fire_at ?? '') < Date.now() - OVERDUE_LIMIT_MS,
    );
    if (stuck.length > 0)
      return stuck.map(
        (alarm) => `${alarm.idempotency_key} has been due since ${alarm.next_fire_at} and nobody delivers it`,
      );
    await pause(250);
  }
}

async function judge(
  house: House,
  acknowledged: Acknowledged[],
  sofar: Pick<CrashReport, 'rounds' | 'kills' | 'repeatedCreates'>,
): Promise<CrashReport> {
  const violations: string[] = [];
  violations.push(...(await drained(house)));

  const alarms = new Map<string, AlarmView>();
  const fires = new Map<string, FireView[]>();
  for (const user of house.users) {
    const byKey = new Map<string, string>();
    for (const alarm of await allOf(user)) {
      alarms.set(alarm.id, alarm);
      const key = alarm.idempotency_key ?? '';
      if (byKey.has(key)) violations.push(`${key} made two alarms: ${byKey.get(key)} and ${alarm.id}`);
      byKey.set(key, alarm.id);
      fires.set(alarm.id, (await user.clients[0]!.listFires(alarm.id)).fires);
    }
  }
  await house.stop();

  const turns = new Map<string, TurnView[]>();
  for (const user of house.users) {
    const conversations = new Set(acknowledged.filter((one) => one.user === user).map((one) => one.conversation));
    await house.readNeo(user, async (get) => {
      for (const conversation of conversations) {
        await until(
          `${conversation} is done`,
          async () => {
            const text = await get(`/conversations/${conversation}`).catch(() => '{"turns":[]}');
            return !/"status":"(queued|running)"/.test(text);
          },
          20_000,
        ).catch((error: Error) => violations.push(error.message));
        const text = await get(`/conversations/${conversation}`).catch(() => undefined);
        if (text === undefined) continue;
        const { turns: found } = conversationViewSchema.parse(JSON.parse(text));
        for (const turn of found) {
          const fireId = turn.fire_id ?? '';
          turns.set(fireId, [...(turns.get(fireId) ?? []), turn]);
        }
      }
    });
  }

  for (const { id, key, message } of acknowledged) {
    const alarm = alarms.get(id);
    if (!alarm) {
      violations.push(`${key} was acknowledged as ${id} and is lost`);
      continue;
    }
    if (alarm.status !== 'fired') violations.push(`${key} is ${alarm.status}: ${alarm.last_error ?? 'no error'}`);
    const attempts = fires.get(id) ?? [];
    const fireIds = new Set(attempts.map((fire) => fire.fire_id));
    if (fireIds.size > 1) violations.push(`${key} has ${fireIds.size} occurrences, it is owed one`);
    if (!attempts.some((fire) => fire.outcome === 'delivered'))
      violations.push(`${key} has no delivered attempt in the ledger`);
    for (const fire of attempts)
      if (fire.lateness_ms < 0) violations.push(`${key} started ${-fire.lateness_ms} ms early`);
    const found = [...fireIds].flatMap((fireId) => turns.get(fireId) ?? []);
    if (found.length !== 1) violations.push(`${key} has ${found.length} turns, it is owed exactly one`);
    if (found[0] && found[0].message !== message) violations.push(`${key} arrived with another message`);
    if (found[0] && found[0].status !== 'done')
      violations.push(`the turn of ${key} is ${found[0].status}: ${found[0].error}`);
  }
  const allAttempts = [...fires.values()].flat();
  const turnCount = [...turns.values()].flat().length;
  if (turnCount !== acknowledged.length)
    violations.push(`${turnCount} turns for ${acknowledged.length} acknowledged alarms`);
  return {
    ...sofar,
    acknowledged: acknowledged.length,
    turns: turnCount,
    attempts: allAttempts.length,
    unknownAttempts: allAttempts.filter((fire) => fire.outcome === 'unknown').length,
    violations,
  };
}

/** The figures in one line. */
export function summarize(report: CrashReport): string {
  const { kills } = report;
  return [
    `${report.rounds} rounds`,
    `kill -9: ${kills.chronosd} chronosd, ${kills.router} router, ${kills.neo} neo${kills.postgres > 0 ? `, ${kills.postgres} PostgreSQL (stopped immediate)` : ''}`,
    `${report.acknowledged} alarms acknowledged`,
    `${report.turns} turns`,
    `${report.attempts} attempts (${report.unknownAttempts} with unknown outcome)`,
    `${report.repeatedCreates} creates repeated`,
    `${report.violations.length} violations`,
  ].join(' · ');
}
