/** What a person reads of a store's alarms: `reveille log` and the pages of the console, through chronosd's HTTP API. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import type { TestContext } from 'node:test';
import { startChronosServer } from '../../../src/chronos/http/server.ts';
import type { AlarmStore } from '../../../src/chronos/store/store.ts';
import { localBackend } from '../../../src/cli/access/console-backend.ts';
import type { CliProcess } from '../../../src/cli/cli-process.ts';
import { createContext } from '../../../src/cli/context.ts';
import { homeAt, loadOrMakeSecrets, makeHome, writeRun } from '../../../src/cli/home/home.ts';
import type { LogEntry } from '../../../src/cli/log/entries.ts';
import { createConsole } from '../../../src/console/console.ts';
import { makeCode } from '../../../src/console/sessions.ts';
import { type Clock, systemClock } from '../../../src/kit/clock/clock.ts';
import { loadOrCreateKey } from '../../../src/kit/identity/keys.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { NotificationChannels } from '../../../src/notify/client.ts';
import { formatInstant } from '../../../src/wire/rfc3339.ts';
import { reveille } from '../../support/command-line.ts';
import { atEnd, temporaryFolder } from '../../support/temporary.ts';

/** A line of the log: the event, and the text after it. */
export type LogLine = { readonly word: string; readonly text: string };
/** A fire on the page of its alarm. */
export type ShownFire = { readonly dueAt: number; readonly state: string; readonly missed: number };

const ORIGIN = 'http://127.0.0.1';
const LOG_LINE = /^[\d-]{10} [\d:]{8} {2}(\S+) {2}(.*)$/;

/** The lines of `reveille log`, each with its continuation lines. */
function logLines(text: string): LogLine[] {
  const lines: LogLine[] = [];
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, word, first = ''] = LOG_LINE.exec(line) ?? [];
    const before = lines.at(-1);
    if (word !== undefined) lines.push({ word, text: first });
    else if (before) lines[lines.length - 1] = { word: before.word, text: `${before.text} ${line.trim()}` };
  }
  return lines;
}

const withoutTags = (markup: string) =>
  markup
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();

/** The fires on a page, the latest first. */
function firesOn(page: string): ShownFire[] {
  return [...page.matchAll(/<li class="fire">([\s\S]*?)<\/dl>/g)].map(([, fire = '']) => {
    const [, dueAt = ''] = /<time datetime="([^"]+)"/.exec(fire) ?? [];
    const [, state = ''] = /<\/svg> <span class="(?:bad|good|dim)">([\s\S]*?)<\/span><\/div>/.exec(fire) ?? [];
    const [, missed = '0'] = /covers (\d+) missed occurrences/.exec(fire) ?? [];
    return { dueAt: Date.parse(dueAt), state: withoutTags(state), missed: Number(missed) };
  });
}

/**
 * Opens the screens of an owner.
 *
 * @param clock of chronosd and of the console
 */
export async function screensOf(t: TestContext, { store, clock }: { store: AlarmStore; clock: Clock }, owner: string) {
  const home = homeAt(join(temporaryFolder(t), 'home'));
  makeHome(home);
  loadOrCreateKey(home.keyFile);
  const secrets = loadOrMakeSecrets(home);
  const { CHRONOS_TOKEN: transportToken, CHRONOS_AGENT_AUTH_SECRET: principalSecret } = secrets;
  const server = await startChronosServer({
    ...{ host: '127.0.0.1', port: 0, log: silentLogger, clock: systemClock, ready: async () => ({ ready: true }) },
    service: {
      ...{ store, clock, onDue: () => {} },
      limits: { minIntervalSeconds: 10, maxFailures: 100, maxActiveAlarms: 1000 },
      auth: {
        ...{ transportToken, adminToken: secrets.CHRONOS_ADMIN_TOKEN, wakeToken: undefined, principalSecret },
        ...{ principalTtlSeconds: 3600, enrollment: 'tofu' },
      },
    },
  });
  atEnd(t, () => server.close());
  const nowhere = 'http://127.0.0.1:9';
  const run = { pid: process.pid, chronos_url: server.url, router_url: nowhere, public_url: nowhere };
  writeRun(home, { ...run, started_at: formatInstant(clock.now()) });

  const env = { REVEILLE_HOME: home.path, MATRIX_USER_ID: owner, TZ: 'Europe/Berlin', EXECUTOR_PORT: '9' };
  const since = formatInstant(clock.now());
  const command = async (...args: string[]) => {
    // As the agent, because the command's own clock is another one.
    const { status, stdout, stderr } = await reveille(home.path, args, { env: { ...env, REVEILLE_SPAWN_ID: 'test' } });
    assert.equal(status, 0, stderr);
    return stdout;
  };

  const output = { stdout: new PassThrough(), stderr: new PassThrough() };
  // The proofs of the console have the time of chronosd.
  const context = { ...(await createContext({ env, ...output } as unknown as CliProcess, {})), clock };
  const notify = new NotificationChannels({ dir: join(home.path, 'notify'), clock: systemClock });
  atEnd(t, () => notify.close());
  const backend = localBackend(context, 'Ada', { onMachine: () => () => {}, notify });
  const codeSecret = 'a-secret-of-the-console';
  const console = createConsole({
    ...{ clock, log: silentLogger, cookie: 'path', hosts: [], codeSecret },
    backendOf: () => backend,
  });
  atEnd(t, () => console.close());
  const info = { remoteAddress: '127.0.0.1', closing: new AbortController().signal };
  const get = async (path: string, cookie = '') => {
    const response = await console.fetch(new Request(`${ORIGIN}${path}`, { headers: { cookie } }), info);
    assert.equal(response.status, 200, path);
    return response;
  };
  /** In a new session, because one ends when it is not used for hours. */
  const page = async (path: string) => {
    const opened = await get(`/o/${makeCode(codeSecret, owner, clock.now())}`);
    const cookie = opened.headers.get('set-cookie')!.split(';')[0]!;
    const [, base = ''] = /href="(\/~[^/]+\/)upcoming"/.exec(await opened.text()) ?? [];
    return (await get(`${base}${path}`, cookie)).text();
  };

  return {
    /** `reveille log` since the screens were opened. */
    log: async (): Promise<LogLine[]> => logLines(await command('log', '--since', since)),
    /** `reveille log --json`. */
    async entries(): Promise<LogEntry[]> {
      const lines = (await command('log', '--since', since, '--json')).split('\n');
      return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
    },
    /** The page of an alarm as text. */
    alarm: async (id: string): Promise<string> => withoutTags(await page(`alarms/${id}`)),
    /** The fires on the pages of an alarm, the earliest first. */
    async fires(id: string): Promise<ShownFire[]> {
      const found: ShownFire[] = [];
      let path: string | undefined = `alarms/${id}`;
      while (path !== undefined) {
        const shown = await page(path);
        found.push(...firesOn(shown));
        path = /<a class="button" href="([^"]+)">Earlier fires</.exec(shown)?.[1]?.replaceAll('&amp;', '&');
      }
      return found.reverse();
    },
    /** The first fire of an alarm on the page of the next week; `undefined` without one. */
    async upcoming(id: string): Promise<number | undefined> {
      const row = new RegExp(`<li id="upcoming-\\d+-${id}"[\\s\\S]*?<time class="clock" datetime="([^"]+)"`);
      const [, at] = row.exec(await page('upcoming')) ?? [];
      return at === undefined ? undefined : Date.parse(at);
    },
  };
}

export type Screens = Awaited<ReturnType<typeof screensOf>>;
