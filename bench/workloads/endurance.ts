/**
 * Lasting load: equal rates of creates and fires. With deletion after one window, lateness, resident memory and file
 * size of the last window must equal those of the first. Without deletion, only memory is read.
 */
import { statSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { Pool } from 'undici';
import { encodeJson } from '../../src/wire/json.ts';
import type { LastingLoad } from '../plan.ts';
import { residentMegabytes } from '../processes.ts';
import type { Lateness } from '../statistics.ts';
import { alarmBody } from '../systems/agent.ts';
import { startChronosd } from '../systems/chronosd.ts';
import { SQLITE_FILE } from '../systems/reveille-sqlite.ts';
import { type Context, figure } from './context.ts';
import { agentHeaders, UNBOUNDED } from './creates.ts';

export type LastingWindow = {
  lateness: Lateness;
  /** Of chronosd at the end of the window, MB. */
  residentMegabytes: number;
  /** Of the database's file and its log at the end of the window. */
  fileBytes: number;
};

export type LastingResult = {
  /** Creates, and fires, per second. */
  rate: number;
  windowSeconds: number;
  windows: LastingWindow[];
};

const CLIENTS = 32;
/** From a create to its fire: the first window is under full load. */
const DELAY_SECONDS = 10;
const PATIENCE_MS = 5_000;
/** Each client authenticates once, for a day. */
const SETTINGS = { ...UNBOUNDED, CHRONOS_TOKEN_TTL_SECONDS: '86400' };
/** How long the ledger and ended alarms are kept. */
const forgettingAfter = (seconds: number) => {
  const days = (seconds / 86_400).toFixed(6);
  return { CHRONOS_LEDGER_RETENTION_DAYS: days, CHRONOS_TERMINAL_RETENTION_DAYS: days };
};

/** Creates alarms at a rate, by clients that wait for each answer, until it is stopped; counts them by due time. */
async function keepCreating(url: string, rate: number) {
  const headers = await Promise.all(
    Array.from({ length: CLIENTS }, (_, client) => agentHeaders(url, `lasting-${client}`)),
  );
  const pool = new Pool(url, { connections: CLIENTS, pipelining: 1 });
  const body = encodeJson({ ...alarmBody, delay_seconds: DELAY_SECONDS });
  const dues: number[] = [];
  const startedAt = performance.now();
  let [created, stopped] = [0, false];
  const createOne = async (client: number) => {
    const request = { method: 'POST', path: '/v1/alarms', headers: headers[client]!, body } as const;
    const answer = await pool.request(request);
    if (answer.statusCode >= 300) throw new Error(`a create was answered ${await answer.body.text()}`);
    const { data } = (await answer.body.json()) as { data: { next_fire_at: string } };
    dues.push(Date.parse(data.next_fire_at));
  };
  const loop = async (client: number) => {
    while (!stopped) {
      const aheadMs = (1000 * created++) / rate - (performance.now() - startedAt);
      if (aheadMs > 0) await pause(aheadMs);
      if (!stopped) await createOne(client);
    }
  };
  const done = Promise.all(headers.map((_, client) => loop(client)));
  // A failure is reported when the caller awaits it.
  done.catch(() => {});
  return {
    /** Rejects as soon as a create is refused; resolves when the load was stopped. */
    done,
    /** Number of alarms due in [from, until), both epoch ms; deletes the counts before `until`. */
    countDue(from: number, until: number): number {
      const count = dues.reduce((sum, due) => sum + (due >= from && due < until ? 1 : 0), 0);
      dues.splice(0, dues.length, ...dues.filter((due) => due >= until));
      return count;
    },
    async stop(): Promise<void> {
      stopped = true;
      await done;
      await pool.close();
    },
  };
}

/** On SQLite: one process does all the work, so its figures are complete. */
async function lastingLoad(
  { bench, progress, reveille }: Context,
  { rate, windows: count, windowSeconds }: LastingLoad,
  settings: Record<string, string>,
): Promise<LastingResult> {
  const windows: LastingWindow[] = [];
  const system = reveille.find(({ store }) => store === 'sqlite');
  const result = { rate, windowSeconds, windows };
  if (!system) return result;
  const label = `lasting load of ${figure(rate)} creates and fires per second`;
  progress.step(label);
  const installation = await system.install();
  const { location } = installation;
  if (!('folder' in location)) throw new Error('SQLite has no folder');
  await bench.sink.reset();
  const chronosd = await startChronosd(bench, location, { ...SETTINGS, ...settings });
  try {
    const creating = await keepCreating(chronosd.url, rate);
    const begin = Date.now() + DELAY_SECONDS * 1000 + 1000;
    progress.step(label, begin + count * windowSeconds * 1000);
    for (let index = 0; index < count; index++) {
      const [from, until] = [begin + index * windowSeconds * 1000, begin + (index + 1) * windowSeconds * 1000];
      await Promise.race([pause(until + PATIENCE_MS - Date.now()), creating.done]);
      const { lateness } = await bench.sink.arrivals({ from, until, expected: creating.countDue(from, until) });
      await bench.sink.forget(until);
      const sizeOf = (suffix: string) => statSync(`${location.folder}/${SQLITE_FILE}${suffix}`).size;
      windows.push({
        lateness,
        residentMegabytes: residentMegabytes(chronosd.pid),
        fileBytes: sizeOf('') + sizeOf('-wal'),
      });
      progress.detail(`window ${index + 1} of ${count}`);
    }
    await creating.stop();
  } finally {
    await chronosd.stop();
    await installation.remove();
  }
  return result;
}

/** With deletion after the length of a window. */
export function measureEndurance(context: Context): Promise<LastingResult> {
  const load = context.plan.endurance;
  return lastingLoad(context, load, forgettingAfter(load.windowSeconds));
}

/** Without deletion, as by default. */
export function measureResident(context: Context): Promise<LastingResult> {
  return lastingLoad(context, context.plan.resident, {});
}
