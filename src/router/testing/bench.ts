/** Shared parts of the router's tests: folders, fixture machines, and an HTTP client of the router. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { COMPILED } from '../../../test/support/quick-start.ts';
import { atEnd, temporaryFolder } from '../../../test/support/temporary.ts';
import { openAgentHost } from '../../agents/host.ts';
import { type Clock, systemClock } from '../../kit/clock/clock.ts';
import { type Logger, silentLogger } from '../../kit/log/log.ts';
import type { Sandbox } from '../../kit/process/isolation.ts';
import type { WireError } from '../../wire/errors.ts';
import { parseRouterConfig } from '../config.ts';
import { type RouterOptions, type RunningRouter, startRouter } from '../daemon.ts';
import type { MachineView } from '../machines/machine-schema.ts';
import type { PagesOf, ServicesOf } from '../public/listener.ts';
import type { WakeNotice } from '../wake.ts';

export const WAKE_TOKEN = 'wake-token-of-the-tests';
export const ADMIN_TOKEN = 'admin-token-of-the-tests';
export const DAEMON_FIXTURE = fileURLToPath(new URL('./daemon.fixture.ts', import.meta.url));
export const ALARM_ID = '018f3b1c-0000-7000-8000-000000000001';

export type FixtureEvent = {
  event: string;
  pid: number;
  argv?: string[];
  cwd?: string;
  env?: Record<string, string>;
  headers?: Record<string, string>;
  url?: string;
  body?: string;
};

/** The members of an answer's `data` that the tests read. */
type AnswerData = Partial<MachineView> & {
  token?: string;
  machines?: MachineView[];
  count?: number;
  next_cursor?: string;
  turn_id?: string;
};

export type Answer = {
  status: number;
  headers: Headers;
  text: string;
  /** The body as an envelope; empty when it is not one. */
  json: { data: AnswerData; error: WireError };
};
/** An event that a fixture daemon recorded. */
export function eventsOf(folder: string, event?: string): FixtureEvent[] {
  let text = '';
  try {
    text = readFileSync(join(folder, 'events.jsonl'), 'utf8');
  } catch {
    return [];
  }
  const events = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as FixtureEvent);
  return event === undefined ? events : events.filter((one) => one.event === event);
}

/** The body of a PUT for a machine that runs the fixture daemon. */
export function fixtureMachine(folder: string, mode?: string, more: object = {}, env: Record<string, string> = {}) {
  return {
    provider: 'process',
    spec: {
      command: [process.execPath, DAEMON_FIXTURE],
      env: { FIXTURE_DIR: folder, ...COMPILED, ...(mode ? { FIXTURE_MODE: mode } : {}), ...env },
    },
    ...more,
  };
}

let fires = 1_700_000_000_000;

export function wakeBody(userId: string, more: object = {}): Record<string, unknown> {
  return {
    user_id: userId,
    conversation_id: 'conv-1',
    message: 'resume the work',
    alarm_id: ALARM_ID,
    origin: 'chronos',
    fire_id: `${ALARM_ID}@${fires++}`,
    scheduled_for: '2026-06-15T08:10:00.000Z',
    attempt: 1,
    missed_count: 0,
    ...more,
  };
}

/** A client of a router at an address. */
export function clientOf(url: string) {
  const send = async (method: string, path: string, token: string, body?: unknown, headers: object = {}) => {
    const answer = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      redirect: 'manual',
    });
    const text = await answer.text();
    let json = {};
    try {
      json = JSON.parse(text);
    } catch {
      // A daemon may answer with any body.
    }
    return { status: answer.status, headers: answer.headers, text, json } as Answer;
  };
  const admin = (method: string, path: string, body?: unknown) =>
    send(method, `/admin/machines${path}`, ADMIN_TOKEN, body);
  return {
    send,
    admin,
    async put(userId: string, body: unknown) {
      const answer = await admin('PUT', `/${userId}`, body);
      assert.equal(answer.status, 200, answer.text);
      return answer;
    },
    wake: (userId: string, more?: object) => send('POST', '/internal/wake', WAKE_TOKEN, wakeBody(userId, more)),
    /**
     * One wake, sent until it is accepted. If the computer cannot read a request for 10 s, the router answers before it
     * has read it and ends the connection, which the client may notice first.
     */
    async wakeTaken(userId: string): Promise<Answer> {
      const body = wakeBody(userId);
      for (;;) {
        const answer = await send('POST', '/internal/wake', WAKE_TOKEN, body).catch((error: Error) => {
          if ((error.cause as NodeJS.ErrnoException | undefined)?.code !== 'ECONNRESET') throw error;
        });
        if (answer && answer.status !== 408) return answer;
      }
    },
  };
}

export type Bench = RunningRouter & ReturnType<typeof clientOf> & { notices: WakeNotice[]; dataDir: string };

/** A router in this process, closed at the end of the test. */
export async function startBench(
  t: TestContext,
  {
    clock = systemClock,
    log = silentLogger,
    settings = {},
    environment = process.env,
    pagesOf,
    servicesOf,
    sandbox,
    checkSecrets,
  }: {
    checkSecrets?: RouterOptions['checkSecrets'];
    pagesOf?: PagesOf;
    servicesOf?: ServicesOf;
    sandbox?: Sandbox;
    clock?: Clock;
    log?: Logger;
    settings?: Record<string, string>;
    environment?: NodeJS.ProcessEnv;
  } = {},
): Promise<Bench> {
  const dataDir = settings.ROUTER_DATA_DIR ?? temporaryFolder(t);
  const notices: WakeNotice[] = [];
  const config = parseRouterConfig({
    ROUTER_PORT: '0',
    ROUTER_DATA_DIR: dataDir,
    ROUTER_WAKE_TOKEN: WAKE_TOKEN,
    ROUTER_ADMIN_TOKEN: ADMIN_TOKEN,
    // A router in the test's own process is not killed.
    ROUTER_ORPHAN_SECONDS: '0',
    ...settings,
  });
  const onWake = (notice: WakeNotice) => notices.push(notice);
  const router = await startRouter({
    openAgents: openAgentHost,
    config,
    clock,
    log,
    version: '0.0.0',
    environment,
    onWake,
    ...{ pagesOf, servicesOf },
    sandbox,
    ...(checkSecrets && { checkSecrets }),
  });
  atEnd(t, () => router.close());
  return { ...router, ...clientOf(router.url), notices, dataDir };
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    // An orphan may have no parent that reaps it.
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return process.platform !== 'linux';
  }
}
