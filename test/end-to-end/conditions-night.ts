/**
 * A scripted night of alarms with conditions: a check, a burst of webhooks, a chain, an absence, and a command that
 * fails. It drives an installation of separate processes, and compares what all surfaces show with what has happened.
 */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import {
  type AlarmCreateBody,
  type ChronosClient,
  createChronosClient,
  eachAlarm,
  holdPrincipal,
} from '../../src/chronos/client.ts';
import { homeAt, loadOrMakeLabel, loadOrMakeSecrets, readRun } from '../../src/cli/home/home.ts';
import { personProof } from '../../src/kit/identity/person-rights.ts';
import { fileIdentity } from '../../src/kit/identity/rotation.ts';
import { type EndpointRequest, modelEndpoint, refusing, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import type { AlarmCreated, AlarmView, FireView } from '../../src/wire/alarm.ts';
import { openEnvelope } from '../../src/wire/envelope.ts';
import { ReveilleError } from '../../src/wire/errors.ts';
import { type Outcome, reveille } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { listening, temporaryFolder } from '../support/temporary.ts';

/** The alarms of the night, by label. */
export const LABELS = ['inbox', 'deploys', 'fetch', 'sum', 'report', 'nightly', 'watch', 'backup'] as const;
export type Label = (typeof LABELS)[number];

export const EVENTS = 30;
const HOOK_SECRET = 'the secret of the repository';
/** JSON that a parser would change: digits that no double has, a trailing zero, an order, an escape. */
const bodyOf = (n: number) =>
  `{"n":${n},"id":9007199254740993${String(n).padStart(2, '0')},"price":${n}.10,"z":1,"a":"\\u00e9 ${n}"}`;
export const BODIES: readonly string[] = Array.from({ length: EVENTS }, (_, n) => bodyOf(n + 1));

const FAILING =
  'echo run >> runs; until [ -e go ]; do sleep 0.05; done; echo "copied 41 of 42"; echo "the disk is full" >&2; exit 3';
export const REASON = 'the model has gone home';

/** How an alarm asks the model, so that the script knows whose turn it is. */
const messageOf = (label: string) => `This is the turn of ${label}.`;
const labelIn = ({ body: { messages } }: EndpointRequest) =>
  LABELS.find((label) => messages.some(({ content }) => content?.includes(messageOf(label))));
const replyOf = (label: Label) => `${label} is done.`;

export type Turn = { alarm_id: string; fire_id: string; status: string; message: string; reply?: string };
export type Notification = { title: string; kinds: string[]; text: string; fire_id?: string };

/** A model that answers as scripted, and holds its answer to the turns that are named in `held`. */
export async function openModel(t: TestContext) {
  const held = new Map<Label, PromiseWithResolvers<void>>();
  const endpoint = await modelEndpoint(t, async (response, request) => {
    const label = labelIn(request);
    if (label === undefined) return saying('Good evening.')(response, request);
    // A turn whose Neo is killed asks again.
    await Promise.race([held.get(label)?.promise, request.gone]);
    return (label === 'nightly' ? refusing(400, REASON) : saying(replyOf(label)))(response, request);
  });
  const asked = (label: Label) => endpoint.requests.filter((request) => labelIn(request) === label);
  return {
    baseUrl: endpoint.baseUrl,
    asked,
    hold: (...labels: Label[]) => {
      for (const label of labels) held.set(label, Promise.withResolvers());
    },
    release: (label: Label) => held.get(label)?.resolve(),
    isAsked: (label: Label) => eventually(`the model is asked for ${label}`, () => asked(label).length > 0),
  };
}
export type Model = Awaited<ReturnType<typeof openModel>>;

/** A page that says yes to one request, and no to all others. @param yesAt the number of that request, from 1 */
export async function openPage(t: TestContext, yesAt: number) {
  const page = { url: '', yesAt, hits: 0 };
  page.url = await listening(
    t,
    createServer((_, response) => {
      const unread = ++page.hits === page.yesAt ? 1 : 0;
      response.setHeader('content-type', 'application/json').end(`{"unread":${unread}}`);
    }),
  );
  return page;
}

/** The folders and settings of an installation, before anything runs. */
export async function openHome(t: TestContext) {
  const folder = realpathSync(temporaryFolder(t));
  const [workspace, told] = [join(folder, 'work'), join(folder, 'told')];
  for (const path of [workspace, told]) mkdirSync(path);
  return { folder, workspace, told, home: homeAt(join(folder, 'home')) };
}
export type NightHome = Awaited<ReturnType<typeof openHome>>;

/** The person's and the programs' view of an installation. @param env of its command lines */
export function openNight(at: NightHome, env: Readonly<Record<string, string>>) {
  const { home, told, workspace } = at;
  const secrets = loadOrMakeSecrets(home);
  const label = loadOrMakeLabel(home);
  const principal = holdPrincipal();
  const place = () => readRun(home)!;
  const client = (isPerson = false): ChronosClient =>
    createChronosClient({
      ...{
        url: place().chronos_url,
        token: secrets.CHRONOS_TOKEN,
        identity: fileIdentity(label, home.keyFile),
        principal,
      },
      ...(isPerson && {
        person: (request) => personProof('Ada', request, { secret: secrets.CHRONOS_ADMIN_TOKEN, now: Date.now() }),
      }),
    });
  const attempt = (...args: string[]): Promise<Outcome> => reveille(home.path, args, { env });
  const cli = async (...args: string[]): Promise<string> => {
    const { status, stdout, stderr } = await attempt(...args);
    assert.equal(status, 0, `reveille ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  /** A query that outlasts the restart of a daemon. */
  const patiently = async <T>(query: () => Promise<T>): Promise<T> => {
    const tried = async () => {
      try {
        return { value: await query() };
      } catch (error) {
        if (error instanceof ReveilleError && error.retryable) return undefined;
        throw error;
      }
    };
    return (await eventually('a daemon answers', tried)).value;
  };
  const ids = new Map<Label, string>();
  const night = {
    ...{ ...at, label, secrets, client, attempt, cli, ids, place },
    async set(name: Label, fields: Partial<AlarmCreateBody>, isPerson = false): Promise<AlarmCreated> {
      const body = { kind: 'once', label: name, wake_message: messageOf(name), idempotency_key: name, ...fields };
      const made = await patiently(() => client(isPerson).createAlarm(body as AlarmCreateBody));
      ids.set(name, made.id);
      return made;
    },
    fires: (name: Label): Promise<FireView[]> =>
      patiently(async () => {
        const all: FireView[] = [];
        let cursor: string | undefined;
        do {
          const page = await client().listFires(ids.get(name)!, cursor === undefined ? {} : { cursor });
          all.push(...page.fires);
          cursor = page.next_cursor;
        } while (cursor !== undefined);
        return all;
      }),
    /** The fire whose turn has ended. */
    finished: (name: Label): Promise<FireView> =>
      eventually(`the turn of ${name} has ended`, async () =>
        (await night.fires(name)).find(({ reached }) => reached === 'turn_finished'),
      ),
    view: (name: Label) => patiently(() => client().getAlarm(ids.get(name)!)),
    patch: (name: Label, fields: object) => patiently(() => client().patchAlarm(ids.get(name)!, fields)),
    /** Posts as GitHub does, and as its redelivery does until it is taken. */
    async post(address: string, body: string, delivery: string): Promise<{ recorded: number; known: number }> {
      const { pathname } = new URL(address, 'http://127.0.0.1');
      const send = () =>
        fetch(place().public_url + pathname, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            'x-github-event': 'deployment',
            'x-github-delivery': delivery,
            'x-hub-signature-256': `sha256=${createHmac('sha256', HOOK_SECRET).update(body).digest('hex')}`,
          },
          body,
        }).catch(() => undefined);
      const taken = await eventually('the webhook is taken', async () => {
        const response = await send();
        if (response?.ok) return response;
        assert.ok(response === undefined || response.status === 503, `${response?.status}`);
        return undefined;
      });
      return ((await taken.json()) as { data: { recorded: number; known: number } }).data;
    },
    /** The process of Neo that the router knows, and its port. */
    neo(): { pid: number; port: number } | undefined {
      const db = new DatabaseSync(join(home.path, 'router', 'router.db'), { readOnly: true });
      const found = db.prepare('SELECT pid, port FROM processes').get() as { pid: number; port: number } | undefined;
      db.close();
      return found;
    },
    /** Neo's turns, and the source text of what they were given. */
    async turns(): Promise<{ turns: Turn[]; text: string }> {
      const ask = async (path: string) => {
        const headers = { authorization: `Bearer ${secrets.NEO_DAEMON_TOKEN}` };
        const answer = await fetch(`http://127.0.0.1:${night.neo()!.port}${path}`, { headers });
        return openEnvelope(await answer.text(), answer.status, 'neo').text;
      };
      const { conversations } = JSON.parse(await ask('/conversations')) as { conversations: { id: string }[] };
      const all = await Promise.all(conversations.map(({ id }) => ask(`/conversations/${id}`)));
      return { turns: all.flatMap((text) => JSON.parse(text).turns as Turn[]), text: all.join('\n') };
    },
    notifications(): Notification[] {
      return readdirSync(told).flatMap((name) => {
        const text = readFileSync(join(told, name), 'utf8');
        // It is being written.
        return text.endsWith('}') ? [JSON.parse(text).data as Notification] : [];
      });
    },
    async alarms(): Promise<AlarmView[]> {
      const all: AlarmView[] = [];
      for await (const alarm of eachAlarm(client(), {})) all.push(alarm);
      return all;
    },
    runs: () => readFileSync(join(workspace, 'runs'), 'utf8'),
  };
  return night;
}
export type Night = ReturnType<typeof openNight>;

type Fields = Partial<AlarmCreateBody>;
export const FIELDS = {
  inbox: (url: string): Fields => ({
    ...{ kind: 'rrule', rrule: 'RRULE:FREQ=SECONDLY;INTERVAL=1', max_fires: 1 },
    check: { http: { url, pointer: '/unread', equals: 1 } },
  }),
  deploys: (quiet_for: string): Fields => ({
    kind: 'event',
    event: { source: 'webhook', verify: 'github', secret: HOOK_SECRET, quiet_for, repeat: 'always' },
  }),
  backup: { delay_seconds: 1, run: { argv: ['/bin/sh', '-c', FAILING] } } as Fields,
};

/** A channel that keeps each notification in a file of its own. */
export const addChannel = ({ cli, told }: Night) =>
  cli('notify', 'add', 'command', '--about', 'all', '--', '/bin/sh', '-c', 'cat > "$(mktemp "$0/XXXXXXXX")"', told);

/** Sets three alarms that follow one another; the first one fires in a second. */
export async function setChain({ set, patch, ids }: Night): Promise<void> {
  await set('fetch', { delay_seconds: 3600 });
  await set('sum', { kind: 'event', after: { alarm: ids.get('fetch')! } });
  await set('report', { kind: 'event', after: { alarm: ids.get('sum')! } });
  await patch('fetch', { delay_seconds: 1 });
}

/** Sets an alarm whose turn does not end, and one that expects its end. */
export async function setAbsence({ set, ids }: Night, model: Model): Promise<void> {
  model.hold('nightly', 'watch');
  await set('nightly', { delay_seconds: 1 });
  const expect = { every: 'PT12S', grace: 'PT1S' };
  await set('watch', { kind: 'event', after: { alarm: ids.get('nightly')! }, expect });
}

/** The absence was reported: the next one would be tomorrow. */
export const calmDown = ({ patch }: Night) => patch('watch', { expect: { every: 'P1D' } });

/** All webhooks again, as their sender does when it has lost the answers. */
export async function assertRedeliveries({ post }: Night, address: string): Promise<void> {
  for (const [n, body] of BODIES.entries())
    assert.deepEqual(await post(address, body, `again-${n}`), { recorded: 0, known: 1 });
}

/** How the command ended, as far as it can be known. */
export type CommandEnd = 'failed' | 'unknown';

/** What the surfaces must show of each alarm: the kinds of entries of the log, and titles of notifications. */
const toldOf = (command: CommandEnd): Readonly<Record<Label, { log: string[]; titles: string[] }>> => ({
  inbox: { log: ['rang', 'reply'], titles: ['Rang', 'Done'] },
  deploys: { log: ['rang', 'reply'], titles: ['Rang', 'Done'] },
  fetch: { log: ['rang', 'reply'], titles: ['Rang', 'Done'] },
  sum: { log: ['rang', 'reply'], titles: ['Rang', 'Done'] },
  report: { log: ['rang', 'reply'], titles: ['Rang', 'Done'] },
  nightly: { log: ['rang', 'turn_failed'], titles: ['Rang', 'Turn failed'] },
  watch: { log: ['rang', 'reply'], titles: ['Expected', 'Done'] },
  backup: {
    log: ['rang', `turn_${command}`],
    titles: ['Rang', command === 'failed' ? 'Turn failed' : 'Outcome unknown'],
  },
});
const COMMAND_ERRORS = {
  failed: /exit code 3.*the disk is full/s,
  unknown: /while no router was running, and its output does not show the outcome: the disk is full/,
};
const FAILED: ReadonlySet<Label> = new Set(['nightly', 'backup']);
/** The words of the log for its kinds. */
const WORDS: Readonly<Record<string, string>> = { rang: 'fired', turn_failed: 'failed', turn_unknown: 'unknown' };

const countsOf = (all: readonly string[]): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const one of all.toSorted()) counts[one] = (counts[one] ?? 0) + 1;
  return counts;
};

/** Retries of a wake that a killed daemon did not answer: they are shown, and are no turns. */
const isRetry = (kind: string) => kind === 'wake_failed' || kind === 'Not delivered' || kind === 'Delivery unknown';

type LogLine = { kind: string; label?: string; fire_id: string; text?: string; error?: string };

/** The latest attempt of each fire, latest first. */
function firesOf(attempts: readonly FireView[]): FireView[] {
  const latest = new Map<string, FireView>();
  for (const one of attempts) if (!latest.has(one.fire_id)) latest.set(one.fire_id, one);
  return [...latest.values()];
}

/** Every turn ran once, and its ledger says how it ended. @returns the fires of each alarm */
export async function assertLedger(night: Night, command: CommandEnd = 'failed'): Promise<Record<Label, FireView[]>> {
  const ledger = {} as Record<Label, FireView[]>;
  for (const name of LABELS) {
    const fires = firesOf(await night.fires(name));
    ledger[name] = fires;
    const woken = fires.filter(({ outcome }) => outcome === 'delivered');
    assert.equal(woken.length, 1, `${name} woke once: ${JSON.stringify(fires)}`);
    const { turn, reached } = woken[0]!;
    const ok = name === 'backup' && command === 'unknown' ? undefined : !FAILED.has(name);
    assert.deepEqual([reached, turn?.ok], ['turn_finished', ok], name);
    if (!FAILED.has(name)) assert.equal(turn!.reply, replyOf(name));
    const skipped = fires.filter((fire) => fire !== woken[0]);
    for (const { outcome, error } of skipped) {
      assert.equal(outcome, 'skipped', name);
      assert.match(error!, /^check: the value at \/unread is not 1 \(\d+ ms\)$/);
    }
    if (name !== 'inbox') assert.deepEqual(skipped, []);
  }
  assert.match(ledger.nightly[0]!.turn!.error!, new RegExp(REASON));
  assert.match(ledger.backup[0]!.turn!.error!, COMMAND_ERRORS[command]);
  assert.equal(night.runs(), 'run\n', 'the command has run once');
  return ledger;
}

/** Neo had one turn for each fire, and all events in one of them, in order and digit for digit. */
export async function assertTurns(night: Night, ledger: Record<Label, FireView[]>): Promise<void> {
  const { turns, text } = await night.turns();
  const wanted = LABELS.filter((name) => name !== 'backup').map(
    (name) => ledger[name].find(({ outcome }) => outcome === 'delivered')!.fire_id,
  );
  const ids = new Set(night.ids.values());
  const had = turns.filter(({ alarm_id }) => ids.has(alarm_id)).map(({ fire_id }) => fire_id);
  assert.deepEqual(had.sort(), wanted.sort());
  const events = [...text.matchAll(/"data":\{"event":"deployment","delivery":"(d\d+)","body":(\{[^{}]*\})\}/g)];
  assert.deepEqual(
    events.map(([, delivery, body]) => [delivery, body]),
    BODIES.map((body, n) => [`d${n}`, body]),
  );
  assert.ok(text.includes('"payload":{"events":[]}'), 'the absence has no events');
  for (const [follower, followed] of [
    ['sum', 'fetch'],
    ['report', 'sum'],
  ] as const) {
    const { message } = turns.find(({ alarm_id }) => alarm_id === night.ids.get(follower))!;
    assert.equal(message, messageOf(follower));
    const [{ fire_id }] = ledger[followed] as [FireView];
    const event = `"alarm_id":"${night.ids.get(followed)}","label":"${followed}","fire_id":"${fire_id}","outcome":"finished"`;
    assert.equal(text.split(event).length, 2, `${follower} follows ${followed} once`);
  }
}

/** The log has what happened, once each: as JSON, and as text. */
export async function assertLog(
  night: Night,
  ledger: Record<Label, FireView[]>,
  command: CommandEnd = 'failed',
): Promise<void> {
  const told = toldOf(command);
  const skips = ledger.inbox.length - 1;
  const wanted = countsOf([
    ...LABELS.flatMap((name) => told[name].log.map((kind) => `${kind} ${name}`)),
    ...Array.from({ length: skips }, () => 'skipped inbox'),
  ]);
  const lines = (await night.cli('log', '--json')).trim().split('\n');
  const entries = lines
    .map((line) => JSON.parse(line) as LogLine)
    .filter(({ kind, label }) => label !== 'welcome' && !isRetry(kind));
  assert.deepEqual(countsOf(entries.map(({ kind, label }) => `${kind} ${label}`)), wanted);
  for (const { kind, label, fire_id, text, error } of entries) {
    const { turn, ...fire } = ledger[label as Label].find((one) => one.fire_id === fire_id)!;
    if (kind === 'reply') assert.equal(text, turn!.reply);
    if (kind === 'turn_failed') assert.equal(error, turn!.error);
    if (kind === 'skipped') assert.equal(error, fire.error);
  }
  const text = await night.cli('log');
  const said = [...text.matchAll(/^\d\d:\d\d:\d\d {2}(\w+) {2}(\w+)/gm)].map(([, word, name]) => `${word} ${name}`);
  const words = Object.entries(wanted).map(([entry, count]) => {
    const [kind = '', name] = entry.split(' ');
    return [`${WORDS[kind] ?? kind} ${name}`, count] as const;
  });
  const shown = said.filter((line) => words.some(([word]) => word === line));
  assert.deepEqual(countsOf(shown), Object.fromEntries(words.toSorted()));
}

/** Each notification was sent once, and nothing else was. */
export async function assertNotifications(night: Night, command: CommandEnd = 'failed'): Promise<void> {
  const wanted = LABELS.flatMap((name) => toldOf(command)[name].titles.map((title) => `${title}: ${name}`)).sort();
  const told = () =>
    night
      .notifications()
      .map(({ title }) => title)
      .filter((title) => !title.endsWith(': welcome') && !isRetry(title.split(':')[0]!))
      .sort();
  await eventually('all notifications are sent', () => told().length >= wanted.length);
  await eventually('no notification waits', async () => {
    const channels = (await night.cli('notify', 'list', '--json')).trim().split('\n');
    return channels.every((line) => JSON.parse(line).waiting === 0);
  });
  assert.deepEqual(told(), wanted);
  const of = (title: string) => night.notifications().find((one) => one.title === title)!;
  assert.match(of(`${command === 'failed' ? 'Turn failed' : 'Outcome unknown'}: backup`).text, COMMAND_ERRORS[command]);
  assert.match(of('Turn failed: nightly').text, new RegExp(REASON));
  assert.match(of('Expected: watch').text, /without a finished turn of alarm/);
}

/** The console as text, page by page. */
async function openConsole({ cli }: Night) {
  const address = new URL((await cli('open', '--print')).trim());
  const opened = await fetch(address);
  const cookie = opened.headers.get('set-cookie')!.split(';')[0]!;
  const base = /\/~[A-Za-z0-9_-]{22}\//.exec(await opened.text())![0];
  return async (path: string): Promise<string> => {
    const answer = await fetch(new URL(base + path, address), { headers: { cookie } });
    assert.equal(answer.status, 200, path);
    return await answer.text();
  };
}

/** What the console shows of a fire, by the kind of its log entry. */
const SHOWN: Readonly<Record<string, string>> = {
  reply: 'done',
  turn_failed: `turn failed: `,
  turn_unknown: 'outcome',
};

/** The console's page of each alarm has its fires, how each of them ended, and nothing else. */
export async function assertConsole(night: Night, ledger: Record<Label, FireView[]>): Promise<void> {
  const get = await openConsole(night);
  const textOf = (page: string) => page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ');
  for (const name of LABELS) {
    let path: string | undefined = `alarms/${night.ids.get(name)!}`;
    const fires: string[] = [];
    for (let pages = 0; path !== undefined && pages < 5; pages++) {
      const page: string = await get(path);
      fires.push(...page.split('<li class="fire">').slice(1).map(textOf));
      path = /href="([^"]*)">Earlier fires</.exec(page)?.[1]?.replaceAll('&amp;', '&');
    }
    assert.equal(fires.length, ledger[name].length, `${name}: ${fires.join('\n')}`);
    const [latest = '', ...skipped] = fires;
    assert.ok(latest.includes(SHOWN[toldOf('failed')[name].log[1]!]!), `${name}: ${latest}`);
    const { turn } = ledger[name][0]!;
    assert.ok(latest.includes(turn!.reply ?? turn!.error!), `${name}: ${latest}`);
    for (const text of skipped) assert.equal(text.split('the value at /unread is not 1').length, 2, text);
  }
  const list = await get('alarms?sort=newest');
  for (const [name, id] of night.ids) assert.ok(list.includes(`id="alarm-${id}"`), `${name} is in the list`);
}
