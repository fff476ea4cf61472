/**
 * Durable creates over HTTP. They are compared with the bare insert rate of the same database (one row, one
 * transaction). They are also compared with the same clients at a server that reads the body, answers and stores
 * nothing.
 */
import { Pool } from 'undici';
import { createChronosClient } from '../../src/chronos/client.ts';
import { agentIdentity } from '../../src/kit/identity/agent.ts';
import { generateKey } from '../../src/kit/identity/keys.ts';
import { PRINCIPAL_HEADER } from '../../src/wire/agent.ts';
import { encodeJson } from '../../src/wire/json.ts';
import { bareInserts } from '../bare-inserts.ts';
import { rotated } from '../plan.ts';
import { median } from '../statistics.ts';
import { alarmBody } from '../systems/agent.ts';
import { CHRONOS_TOKEN, startChronosd } from '../systems/chronosd.ts';
import type { ReveilleSystem } from '../systems/system.ts';
import type { Context } from './context.ts';

/** Per second. */
type Rates = { creates: number; inserts: number };

export type CreatesRow = {
  system: string;
  title: string;
  clients: number;
  creates: number;
  inserts: number;
  /** Requests per second to a server that stores nothing. */
  posts: number;
  /** Ratio of creates to inserts. */
  ratio: number;
  rounds: Rates[];
};

const WARMUP_MS = 1_000;

/** Repeats `work` in so many parallel loops, and counts the completions within the time after a warm-up. */
export async function countPerSecond(
  loops: number,
  seconds: number,
  work: (loop: number) => Promise<void>,
): Promise<number> {
  const startsAt = performance.now() + WARMUP_MS;
  const endsAt = startsAt + seconds * 1000;
  let count = 0;
  const repeat = async (loop: number) => {
    for (;;) {
      await work(loop);
      const now = performance.now();
      if (now >= endsAt) return;
      if (now >= startsAt) count++;
    }
  };
  await Promise.all(Array.from({ length: loops }, (_, loop) => repeat(loop)));
  return count / seconds;
}

/** Requests per second by clients that keep their connections and wait for each answer. */
async function postsPerSecond(
  url: string,
  headers: readonly Record<string, string>[],
  seconds: number,
): Promise<number> {
  const { origin, pathname } = new URL(url);
  const pool = new Pool(origin, { connections: headers.length, pipelining: 1 });
  const body = encodeJson(alarmBody);
  try {
    return await countPerSecond(headers.length, seconds, async (client) => {
      const request = { method: 'POST', path: pathname, headers: headers[client]!, body } as const;
      const response = await pool.request(request);
      if (response.statusCode >= 300) throw new Error(`a create was answered ${await response.body.text()}`);
      await response.body.dump();
    });
  } finally {
    await pool.close();
  }
}

/** Headers of a new agent that keeps its principal token. */
export async function agentHeaders(url: string, label: string) {
  const identity = agentIdentity(label, generateKey());
  const { token } = await createChronosClient({ url, token: CHRONOS_TOKEN }).authenticate(identity);
  return {
    authorization: `Bearer ${CHRONOS_TOKEN}`,
    [PRINCIPAL_HEADER]: token,
    'content-type': 'application/json',
  };
}

/** Each client is its own agent. */
async function createsPerSecond(url: string, clients: number, seconds: number): Promise<number> {
  const headers = await Promise.all(
    Array.from({ length: clients }, (_, client) => agentHeaders(url, `creator-${Date.now()}-${client}`)),
  );
  return postsPerSecond(`${url}/v1/alarms`, headers, seconds);
}

/**
 * A few owners may create more than an installation normally allows. All other settings, and the check of the limits,
 * are unchanged.
 */
export const UNBOUNDED = {
  CHRONOS_MAX_ACTIVE_ALARMS: '100000000',
  CHRONOS_MAX_STORED_ALARMS: '100000000',
  CHRONOS_MAX_STORED_MIB: '100000000',
  CHRONOS_MAX_STORED_MIB_IN_ALL: '100000000',
  CHRONOS_CREATES_PER_MINUTE: '100000000',
  CHRONOS_CREATES_PER_MINUTE_IN_ALL: '100000000',
};

async function measure({ bench, plan }: Context, system: ReveilleSystem, clients: number): Promise<Rates> {
  const { seconds } = plan.creates;
  const installation = await system.install();
  try {
    const inserts = await bareInserts(installation.location, clients, (work) => countPerSecond(clients, seconds, work));
    const chronosd = await startChronosd(bench, installation.location, UNBOUNDED);
    try {
      return { creates: await createsPerSecond(chronosd.url, clients, seconds), inserts };
    } finally {
      await chronosd.stop();
    }
  } finally {
    await installation.remove();
  }
}

export async function measureCreates(context: Context): Promise<CreatesRow[]> {
  const { bench, plan, progress, reveille } = context;
  const rows: CreatesRow[] = [];
  for (const clients of plan.creates.clients) {
    const found = new Map<ReveilleSystem, Rates[]>();
    const posts: number[] = [];
    const headers = Array.from({ length: clients }, () => ({ 'content-type': 'application/json' }));
    for (let round = 0; round < plan.rounds; round++) {
      progress.step(
        `creates by ${clients} clients: a server that stores nothing, round ${round + 1} of ${plan.rounds}`,
      );
      posts.push(await postsPerSecond(bench.sink.url, headers, plan.creates.seconds));
      for (const system of rotated(reveille, round)) {
        progress.step(`creates by ${clients} clients: ${system.title}, round ${round + 1} of ${plan.rounds}`);
        found.set(system, [...(found.get(system) ?? []), await measure(context, system, clients)]);
      }
    }
    for (const [{ name, title }, rounds] of found) {
      const creates = median(rounds.map((round) => round.creates))!;
      const inserts = median(rounds.map((round) => round.inserts))!;
      const ratio = median(rounds.map((round) => round.creates / round.inserts))!;
      rows.push({ system: name, title, clients, creates, inserts, posts: median(posts)!, ratio, rounds });
    }
  }
  return rows;
}
