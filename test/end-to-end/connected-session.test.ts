/** A connected agent CLI: an alarm without a conversation wakes the very session that set it. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PROGRAM } from '../../src/cli/home/package-root.ts';
import { createRouterClient } from '../../src/router/client.ts';
import { type Outcome, reveilleProcess } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { type Installation, startInstallation } from '../support/installation.ts';
import { watchCommand } from '../support/pseudo-terminal.ts';
import { callsIn, installAgent } from '../support/stand-ins/agents/executable.ts';
import { atEnd, temporaryFolder } from '../support/temporary.ts';
import { needs } from '../support/tools.ts';

const OPEN_SESSION = fileURLToPath(new URL('../support/stand-ins/agents/open-session.ts', import.meta.url));

type Bench = Omit<Installation, 'attempt'> & {
  person: string;
  work: string;
  env: Record<'HOME' | 'PATH' | 'REVEILLE_HOME', string>;
  /** Runs `reveille connect …` in the working folder. */
  connect(...argv: string[]): Promise<string>;
  /** Begins an existing session, like a CLI in a terminal. */
  open(client?: string, more?: Record<string, string>, cwd?: string): OpenSession;
  /** Runs `reveille connect …`, with any exit status. */
  attempt(argv: readonly string[]): Promise<Outcome>;
};

type Said = { said?: string[]; structuredContent?: Record<string, string> };
type OpenSession = {
  prompt(session: string): Promise<Said>;
  set(fields?: object, meta?: object): Promise<Record<string, string>>;
  close(): Promise<void>;
};

/** A session of the stand-in `claude` in a folder. */
function makeSession({ person, work }: Bench, client = 'claude'): string {
  const session = randomUUID();
  const folder = join(person, `.${client}`, work.replaceAll('/', '-'));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${session}.jsonl`), '{}\n');
  return session;
}

async function bench(t: TestContext): Promise<Bench> {
  const person = temporaryFolder(t);
  const work = join(person, 'work');
  mkdirSync(work);
  for (const name of ['claude', 'gemini'] as const) installAgent(join(person, 'bin'), name);
  const env = {
    HOME: person,
    PATH: [join(person, 'bin'), process.env.PATH].join(delimiter),
    REVEILLE_HOME: join(person, '.reveille'),
  };
  const installation = await startInstallation(t, env.REVEILLE_HOME, { HOME: person, PATH: env.PATH });
  const filesOf = (client: string) =>
    client.startsWith('gemini')
      ? [join(person, '.gemini', 'settings.json')]
      : [join(person, '.claude.json'), join(person, '.claude', 'settings.json')];
  const attempt = (argv: readonly string[]) => reveilleProcess(person, ['connect', ...argv], { env, cwd: work });
  return {
    ...installation,
    person,
    work,
    env,
    attempt,
    async connect(...argv) {
      const { status, stdout, stderr } = await attempt(argv);
      assert.equal(status, 0, stderr);
      return stdout;
    },
    open(client = 'claude-code', more = {}, cwd = work) {
      const child: ChildProcess = spawn(process.execPath, [OPEN_SESSION, client, ...filesOf(client)], {
        cwd,
        env: { ...env, ...more, REVEILLE_HOME: '' },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
      const close = async () => {
        child.stdin!.end();
        await closed;
      };
      atEnd(t, close);
      const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
      const ask = async (what: object): Promise<Said> => {
        child.stdin!.write(`${JSON.stringify(what)}\n`);
        return JSON.parse(String((await lines.next()).value));
      };
      return {
        close,
        prompt: (session) => ask({ session, prompt: 'a word that must not be kept' }),
        async set(fields = {}, meta = {}) {
          const args = { kind: 'once', delay_seconds: 3600, wake_message: 'look at the build', ...fields };
          const { structuredContent } = await ask({ tool: 'alarm_set', arguments: args, meta });
          return structuredContent!;
        },
      };
    },
  };
}

test('an alarm without a conversation resumes the same session, started with --resume and its id', async (t) => {
  const installation = await bench(t);
  assert.match(await installation.connect('claude', '--yes', '--wake'), /Wakes go to claude in .*work/);
  const session = makeSession(installation);
  const open = installation.open();
  assert.match((await open.prompt(session)).said![0]!, /^Time: /);
  const answer = await open.set({ delay_seconds: 1 });
  assert.equal(answer.conversation_id, session);
  assert.equal(answer.note, undefined);
  const call = await eventually('claude is started', () => callsIn(installation.person)[0]);
  assert.deepEqual(call.argv.slice(0, 3), ['-p', '--resume', session]);
  assert.equal(call.cwd, installation.work);

  const folder = join(installation.home.path, 'sessions');
  const [file, ...more] = readdirSync(folder).map((name) => join(folder, name));
  assert.deepEqual(more, []);
  assert.equal(statSync(file!).mode & 0o777, 0o600);
  assert.doesNotMatch(readFileSync(file!, 'utf8'), /a word that must not be kept/);

  assert.match(await installation.connect('claude', '--undo', '--yes'), /wakes/i);
  assert.equal(existsSync(join(installation.home.path, 'wake-target.json')), false);
});

test('two sessions in one folder stay separate, and a cleared session is the new one from the next prompt on', async (t) => {
  const installation = await bench(t);
  await installation.connect('claude', '--yes', '--no-wake');
  const [first, second] = [installation.open(), installation.open()];
  const [one, two, cleared] = [makeSession(installation), makeSession(installation), makeSession(installation)];
  await first.prompt(one);
  await second.prompt(two);
  assert.equal((await first.set()).conversation_id, one);
  assert.equal((await second.set()).conversation_id, two);
  await first.prompt(cleared);
  assert.equal((await first.set()).conversation_id, cleared);
  assert.equal((await second.set()).conversation_id, two);
  assert.equal((await second.set({ conversation_id: 'daily' })).conversation_id, 'daily');
  // A process that alternates may have both open: the calling session is unknown.
  await first.prompt(one);
  const unknown = await first.set();
  assert.equal(unknown.conversation_id, undefined);
  assert.match(unknown.note!, /starts a new conversation/);
});

test('without a hook nothing is guessed, and the answer says that a new conversation is started', async (t) => {
  const installation = await bench(t);
  await installation.connect('claude', '--yes', '--no-wake');
  const [hooked, bare] = [installation.open(), installation.open()];
  await hooked.prompt(makeSession(installation));
  const answer = await bare.set();
  assert.equal(answer.conversation_id, undefined);
  assert.match(answer.note!, /conversation of this call is not known.*starts a new conversation/);
});

test('for a session of another folder than the wake target, the answer says that a new conversation is started', async (t) => {
  const installation = await bench(t);
  await installation.connect('claude', '--yes', '--wake');
  const open = installation.open('claude-code', {}, installation.person);
  const session = makeSession(installation);
  await open.prompt(session);
  const answer = await open.set();
  assert.equal(answer.conversation_id, session);
  assert.match(answer.note!, /^Wakes start claude in \S+work\. This session is of \S+, so the alarm starts a new/);
});

test('a session of Gemini CLI is resumed in the same way, by its own prompt hook', async (t) => {
  const installation = await bench(t);
  await installation.connect('gemini', '--yes', '--wake');
  const session = makeSession(installation, 'gemini');
  const open = installation.open('gemini-cli-mcp-client');
  await open.prompt(session);
  assert.equal((await open.set({ delay_seconds: 1 })).conversation_id, session);
  const call = await eventually('gemini is started', () => callsIn(installation.person)[0]);
  assert.deepEqual([call.name, ...call.argv.slice(0, 2)], ['gemini', '--resume', session]);
});

test('Codex names the thread with each call, and its process names none', async (t) => {
  const installation = await bench(t);
  await installation.connect('claude', '--yes', '--no-wake');
  const codex = installation.open('codex-mcp-client');
  await codex.prompt(randomUUID());
  const thread = randomUUID();
  assert.equal((await codex.set({}, { threadId: thread })).conversation_id, thread);
  assert.match((await codex.set()).note!, /not known/);
});

test('a woken program sets its alarms in the conversation of that wake', async (t) => {
  const installation = await bench(t);
  await installation.connect('claude', '--yes', '--no-wake');
  const woken = installation.open('claude-code', { REVEILLE_CONVERSATION_ID: 'daily' });
  assert.equal((await woken.set()).conversation_id, 'daily');
});

test('connect tries the wake target with an alarm that resumes a session, and --undo restores the earlier target', async (t) => {
  const installation = await bench(t);
  const { client, router, secrets, label } = installation;
  const machines = createRouterClient({ url: router.url, token: secrets.ROUTER_ADMIN_TOKEN });
  const owner = label.toLowerCase();
  const elsewhere = { preset: 'codex', cwd: installation.person };
  const budget = { wakes_per_day: 500 };
  await machines.put(owner, { provider: 'command', spec: elsewhere, budget });

  const { wake } = JSON.parse(await installation.connect('claude', '--yes', '--wake', '--test', '--json'));
  const [started, resumed, ...more] = callsIn(installation.person);
  assert.deepEqual(more, []);
  assert.equal(started!.argv.includes('--resume'), false);
  assert.deepEqual(resumed!.argv.slice(0, 3), ['-p', '--resume', wake.test.session]);
  assert.deepEqual([started!.cwd, resumed!.cwd], [installation.work, installation.work]);
  assert.equal((await client.listAlarms({ status: 'active' })).alarms.length, 0);
  assert.deepEqual((await machines.show(owner)).spec, { preset: 'claude', cwd: installation.work });
  assert.deepEqual((await machines.show(owner)).budget, budget);

  // A second connect changes nothing, and does not record the client as the earlier state.
  assert.match(await installation.connect('claude', '--wake', '--yes'), /already connected/);
  assert.match(await installation.connect('claude', '--undo', '--yes'), /Wakes go to codex in/);
  assert.deepEqual((await machines.show(owner)).spec, elsewhere);
  assert.deepEqual((await machines.show(owner)).budget, budget);
  assert.match(await installation.connect('claude', '--undo', '--yes'), /have no entries of Reveille/);
});

test('an agent whose token would be lost is not replaced, and without an option the wake target stays', async (t) => {
  const installation = await bench(t);
  const { router, secrets, label } = installation;
  const machines = createRouterClient({ url: router.url, token: secrets.ROUTER_ADMIN_TOKEN });
  const owner = label.toLowerCase();
  await machines.put(owner, { provider: 'http', spec: { url: 'http://127.0.0.1:9' } });
  const { status, stderr } = await installation.attempt(['claude', '--yes', '--wake']);
  assert.equal(status, 1);
  assert.match(
    stderr,
    /wakes go to the http machine http:\/\/127\.0\.0\.1:9.*reveille machine put --provider claude --dir/,
  );
  const output = await installation.connect('claude', '--yes');
  assert.match(
    output,
    /Wakes go to the http machine .*To wake Claude Code in this folder: reveille connect claude --wake/,
  );
  assert.equal((await machines.show(owner)).provider, 'http');
});

test('a test alarm that the router refuses ends at once with the reason, and is removed', async (t) => {
  const installation = await bench(t);
  rmSync(join(installation.person, 'bin', 'claude'));
  const { status, stderr } = await installation.attempt(['claude', '--yes', '--wake', '--test']);
  assert.equal(status, 1);
  assert.match(stderr, /the test alarm that starts a session: .*"claude" is not on the PATH of the router/);
  assert.equal((await installation.client.listAlarms({ status: 'active' })).alarms.length, 0);
});

test('at a terminal connect shows the wake target, offers this folder, and ends with the confirmed test', {
  skip: needs('script'),
}, async (t) => {
  const installation = await bench(t);
  // The shell of `script` changes to the folder first: a terminal has no option for it.
  const argv = ['sh', '-c', 'cd "$0" && exec "$@"', installation.work, process.execPath, PROGRAM, 'connect', 'claude'];
  const screen = watchCommand({ columns: 200, rows: 60 }, argv, installation.env);
  atEnd(t, () => screen.end());
  await screen.until(/Write this\? \[y\/N\] ?$/);
  await screen.type('y\r', /Wakes go to [^\n]+\. Let them start Claude Code in [^\n]*work and [^\n]*\? \[y\/N\] ?$/);
  await screen.type('y\r', /Test it with two short turns\? \[y\/N\] ?$/);
  assert.deepEqual(callsIn(installation.person), []);
  assert.equal(await screen.ended('y\r'), 0);
  const output = screen.all().join('\n');
  assert.match(output, /Wakes go to claude in .*work/);
  const [, session] = /Tested: one alarm started the session (\S+), and the next one resumed it/.exec(output)!;
  assert.deepEqual(callsIn(installation.person)[1]!.argv.slice(0, 3), ['-p', '--resume', session]);
});
