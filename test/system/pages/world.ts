/** The environment of the commands: a running stack, an agent with a model, and values for the placeholders. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { openCortex } from '../../../src/agents/neo/memory/cortex.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { calling, modelEndpoint, type Script, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { PROGRAM, START_LIMIT_MS } from '../../support/cluster/processes.ts';
import { type Outcome, reveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { installAgent } from '../../support/stand-ins/agents/executable.ts';
import { startStandInNtfy } from '../../support/stand-ins/ntfy.ts';
import { pushBrowser } from '../../support/stand-ins/push-browser.ts';
import { atEnd, type Owner, temporaryFolder } from '../../support/temporary.ts';
import { ROOT } from './shown.ts';

const TAME_SERVER = join(ROOT, 'test', 'system', 'mcp-host', 'tame-server.ts');
const PLAN = {
  id: 'pay',
  kind: 'call',
  tool: 'ledger/transfer',
  args: { from: 'alice', to: 'bob', amount: '25.00', currency: 'EUR' },
};

/** Makes plans from tasks, and answers all other requests with one sentence. */
const model: Script = (response, request) => {
  const { messages, tools = [] } = request.body;
  const [, amount, from, to] =
    messages.map(({ content }) => /Transfer (\S+) EUR from (\w+) to (\w+)/.exec(content)).find(Boolean) ?? [];
  if (tools.some(({ function: { name } }) => name === 'submit_intent')) {
    const plan = { ...PLAN, args: { ...PLAN.args, amount, from, to } };
    return calling({ name: 'submit_intent', args: { verb: 'transfer', plan } })(response, request);
  }
  return saying('Nothing is due today.')(response, request);
};

/** The log line of a daemon that accepts requests. */
const LISTENS = /listens on http|"url":"http|"name":"notifier"/;

/** The final states of an intent. */
const FINAL = new Set(['completed', 'denied', 'failed', 'cancelled', 'unknown']);

export class World {
  readonly person: string;
  readonly home: string;
  /** The working folder of the commands. */
  readonly work: string;
  readonly env: Readonly<Record<string, string>>;
  readonly ntfy: string;
  readonly #owner: Owner;
  readonly #stack: ChildProcess;
  readonly #staying: ChildProcess[] = [];
  /** The output of "npm start". */
  output = '';

  private constructor(
    owner: Owner,
    parts: Pick<World, 'person' | 'home' | 'work' | 'env' | 'ntfy'>,
    stack: ChildProcess,
  ) {
    ({ person: this.person, home: this.home, work: this.work, env: this.env, ntfy: this.ntfy } = parts);
    this.#owner = owner;
    this.#stack = stack;
    stack.stdout!.setEncoding('utf8').on('data', (text: string) => (this.output += text));
  }

  /** Starts the stack as README.md says: `npm start`. */
  static async start(owner: Owner): Promise<World> {
    const person = temporaryFolder(owner);
    const home = join(person, '.reveille');
    const work = join(person, 'work');
    const bin = join(person, 'bin');
    fillFolders(work, bin);
    const { baseUrl } = await modelEndpoint(owner, model);
    const { url: ntfy } = await startStandInNtfy(owner);
    const env = {
      PATH: [bin, process.env.PATH].join(delimiter),
      HOME: person,
      TZ: 'Europe/Berlin',
      ...{ CHRONOS_PORT: '0', ROUTER_PORT: '0', ROUTER_PUBLIC_PORT: '0', EXECUTOR_PORT: '0' },
      ...{ NEO_MODEL: 'of-a-script', NEO_MODEL_BASE_URL: baseUrl, NEO_MODEL_API_KEY: 'a-key', NEO_CHEAP_MODEL: 'none' },
      ...{ REVEILLE_APPROVER_STORE: 'file', REVEILLE_APPROVER_PASSPHRASE_FILE: join(work, 'passphrase') },
      REVEILLE_BACKUP_PASSPHRASE_FILE: join(work, 'passphrase'),
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE!,
    };
    const stack = spawn('npm', ['start'], { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'inherit'], detached: true });
    // The commands start the servers of a manifest that has few.
    const own = { ...env, NEO_MANIFEST: join(work, 'agents', 'neo.json') };
    const world = new World(owner, { person, home, work, env: own, ntfy }, stack);
    atEnd(owner, () => world.end());
    await eventually('"npm start" has started', () => existsSync(join(home, 'run.json')), START_LIMIT_MS);
    // A command of an alarm is refused when it is set unless its program is in Neo's folder.
    const workspace = join(home, 'neo', 'workspace');
    mkdirSync(workspace, { recursive: true });
    writeFileSync(join(workspace, 'backup.sh'), '#!/bin/sh\n', { mode: 0o755 });
    return world;
  }

  /** Ends the stack as Ctrl-C at a terminal does, which reaches npm and what it has started. */
  async end(): Promise<void> {
    if (this.#stack.exitCode === null && this.#stack.signalCode === null) {
      process.kill(-this.#stack.pid!, 'SIGINT');
      await eventually('the stack has ended', () => !existsSync(join(this.home, 'run.json')));
    }
    await this.endStaying();
  }

  /** Ends the daemons that a block of a page started. */
  async endStaying(): Promise<void> {
    for (const child of this.#staying.splice(0)) await ended(child, 'SIGTERM');
  }

  /** Runs a command that must succeed. @returns its JSON output, one value for each line */
  async lines(...args: string[]) {
    const { status, stdout, stderr } = await reveille(this.home, [...args, '--json'], { env: this.env });
    assert.equal(status, 0, `${args.join(' ')}: ${stderr}`);
    return stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));
  }

  async json(...args: string[]) {
    return (await this.lines(...args))[0];
  }

  async newAlarm(...flags: string[]): Promise<string> {
    return (await this.json('alarm', 'set', 'Look at it', ...(flags.length > 0 ? flags : ['--in', '1h']))).id;
  }

  /** An intent that waits for an answer. Earlier open intents are cancelled, because they would block it. */
  async newIntent(): Promise<string> {
    for (const { intent_id: open, status } of await this.lines('intent', 'list'))
      if (!FINAL.has(status)) await reveille(this.home, ['intent', 'cancel', open], { env: this.env });
    const { intent_id: id } = await this.json('intent', 'submit', '--json-file', this.planFile());
    await eventually('it waits for an answer', async () => (await this.json('intent', 'show', id)).gates.length > 0);
    return id;
  }

  /** A file with an intent and its plan. */
  planFile(): string {
    const file = join(this.work, 'plan.json');
    writeFileSync(file, JSON.stringify({ verb: 'transfer', plan: PLAN }));
    return file;
  }

  /** The digest of the question that an approver sees. */
  async digestOf(intent: string): Promise<string> {
    return (await this.json('intent', 'show', intent)).gates[0].displayed_sha256;
  }

  async doneIntent(): Promise<string> {
    const id = await this.newIntent();
    await this.json('intent', 'approve', id, '--displayed-sha256', await this.digestOf(id));
    await eventually('it is done', async () => (await this.json('intent', 'show', id)).status === 'completed');
    return id;
  }

  /** The key of this executor, which signs its receipts. */
  async executorKey(intent: string): Promise<string> {
    return (await this.json('intent', 'receipt', intent)).public_key;
  }

  /**
   * Runs a command that does not end by itself, until its first output.
   *
   * @param stays whether it runs until the end of the test; otherwise it is interrupted as by Ctrl-C
   */
  async stay(args: readonly string[], env: Readonly<Record<string, string>>, stays: boolean): Promise<Outcome> {
    const child = spawn(process.execPath, [PROGRAM, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    const outcome: Outcome = { status: null, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (outcome.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (outcome.stderr += text));
    this.#staying.push(child);
    const hasOutput = () =>
      stays ? LISTENS.test(outcome.stdout + outcome.stderr) : outcome.stdout + outcome.stderr !== '';
    await eventually(`${args.join(' ')} has begun`, () => hasOutput() || child.exitCode !== null, START_LIMIT_MS);
    if (stays && child.exitCode === null) return { ...outcome, status: 0 };
    await ended(child, 'SIGINT');
    // The signal may arrive while the command ends by itself, after it removed its handler.
    return { ...outcome, status: child.signalCode === 'SIGINT' ? 0 : child.exitCode };
  }

  get owner(): Owner {
    return this.#owner;
  }

  /** An entry of Neo's memory. */
  async newMemory(): Promise<string> {
    const cortex = openCortex({ path: join(this.home, 'neo', 'cortex.db'), clock: systemClock });
    const memory = { kind: 'fact', text: 'The user lives in Ulm.', salience: 0.5 } as const;
    await cortex.remember([memory], { turnId: 't1', conversationId: 'c1', at: systemClock.now() });
    await cortex.close();
    return (await this.json('memory', 'list')).id;
  }

  /** The owner of the agent. */
  async user(): Promise<string> {
    return (await this.json('agent', 'whoami')).label;
  }

  get run(): Record<string, string> {
    return JSON.parse(readFileSync(join(this.home, 'run.json'), 'utf8'));
  }
}

async function ended(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.kill(signal);
  await closed;
}

/** The files that exist before the first command. */
function fillFolders(work: string, bin: string): void {
  for (const folder of ['agents', 'agent', 'disk', 'another']) mkdirSync(join(work, folder), { recursive: true });
  mkdirSync(bin);
  const program = (name: string, text: string) => {
    writeFileSync(join(bin, name), text);
    chmodSync(join(bin, name), 0o755);
  };
  program('xdg-open', '#!/bin/sh\n');
  program('npx', `#!/bin/sh\nexec ${process.execPath} ${TAME_SERVER}\n`);
  for (const name of ['claude', 'codex', 'gemini'] as const) installAgent(bin, name);
  writeFileSync(join(work, 'passphrase'), 'a long passphrase\n', { mode: 0o600 });
  cpSync(join(ROOT, 'agents', 'executor.policy.yaml'), join(work, 'policy.yaml'));
  const { servers, ...manifest } = JSON.parse(readFileSync(join(ROOT, 'agents', 'neo.json'), 'utf8'));
  const [one] = servers.filter(({ alias }: { alias: string }) => alias === 'chronometric');
  for (const name of ['neo', 'mine'])
    writeFileSync(join(work, 'agents', `${name}.json`), JSON.stringify({ ...manifest, servers: [one] }));
  const { subscription } = pushBrowser('https://push.example/a-browser');
  writeFileSync(join(work, 'subscription.json'), JSON.stringify(subscription));
  writeFileSync(join(work, 'profile.yaml'), 'chronometric:\n  end_of_day_local: "18:30"\n');
  cpSync(join(ROOT, 'LICENSE'), join(work, 'notes.txt'));
}
