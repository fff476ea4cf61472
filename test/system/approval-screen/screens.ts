/** `reveille intent approve` in a terminal, against a real executor with a hostile server behind it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadOrMakeApprover } from '../../../src/cli/approver/approver-key.ts';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { type Size, type WatchedCommand, watchCommand } from '../../support/pseudo-terminal.ts';
import { COMPILED, LEAN } from '../../support/quick-start.ts';
import { HOSTILE_TOOLS, type HostileCase, PLAIN_TOOL, SHELL_TOOL } from './cases.ts';
import type { TerminalCommand } from './terminal.fixture.ts';

const TERMINAL = fileURLToPath(new URL('./terminal.fixture.ts', import.meta.url));
const SERVER = fileURLToPath(new URL('./server.fixture.ts', import.meta.url));

/** The end of a page of the call's effect. */
export const MORE = /(?:^|\n)-- \d+ of \d+, Enter for more, q to end --$/;

/** The end of the screen at the prompt; 2f1efc1 asked: Approve exactly this call? Type yes: */
export const PROMPT = /(?:^|\n)(?:Approve\? yes, no, d for details:|Approve exactly this call\? Type yes:)$/;

export const SIZES: readonly Size[] = [
  { columns: 80, rows: 24 },
  { columns: 40, rows: 20 },
];

function manifestIn(folder: string, knowsRecipients: boolean): string {
  const path = join(folder, 'manifest.json');
  const rail = {
    ...{ amount: '/amount', currency: '/currency' },
    dry_run: { tool: 'simulate', args: { amount: '$args/amount' } },
    ...(knowsRecipients ? { recipient: '/to' } : {}),
  };
  const tools = [
    { name: 'transfer', side_effect_class: 'write', surface: 'escalate', rail },
    { name: 'simulate', side_effect_class: 'read', surface: 'natural' },
    {
      ...{ name: SHELL_TOOL, side_effect_class: 'shell', surface: 'escalate' },
      rail: { effect: [{ role: 'command', at: '/command' }] },
    },
    ...[PLAIN_TOOL, ...HOSTILE_TOOLS].map((name) => ({ name, surface: 'escalate' })),
  ];
  writeFileSync(
    path,
    JSON.stringify({ servers: [{ alias: 'evil', command: process.execPath, args: [SERVER], tools }] }),
  );
  return path;
}

export type Screens = {
  /** Submits the call without waiting. @returns its intent */
  submit(hostile: HostileCase): Promise<string>;
  /**
   * Opens the question of an intent in a terminal; resolves at the prompt, after the last page of the call's effect.
   */
  open(hostile: HostileCase, intentId: string, size: Size): Promise<WatchedCommand>;
  /** The same; resolves at the prompt, or at the end of the first page. */
  begin(hostile: HostileCase, intentId: string, size: Size): Promise<WatchedCommand>;
  close(): Promise<void>;
};

/** A terminal whose commands follow each other in one process, at a tenth of the cost of a process for each. */
type SharedTerminal = {
  start(command: TerminalCommand): WatchedCommand;
  end(): Promise<void>;
};

async function openTerminal(folder: string, size: Size): Promise<SharedTerminal> {
  const socket = join(folder, `${size.columns}x${size.rows}.sock`);
  const env = { PATH: process.env.PATH ?? '', HOME: folder, TZ: 'UTC', ...COMPILED };
  const watched = watchCommand(size, [process.execPath, ...LEAN, TERMINAL, socket], env);
  await watched.until(/ready\n$/);
  return {
    start(command) {
      watched.clear();
      const connection = createConnection(socket).end(JSON.stringify(command));
      const closed = once(connection.resume(), 'close');
      return {
        ...watched,
        async end() {
          await watched.type('q\r', /\nended\n$/);
          await closed;
        },
      };
    },
    end: () => watched.end(),
  };
}

/**
 * @param program `bin/reveille.mjs` of the version under test
 * @param prompt the end of its prompt
 */
export async function openScreens(
  program: string,
  prompt: RegExp,
  { knowsRecipients = true }: { knowsRecipients?: boolean } = {},
): Promise<Screens> {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-screens-'));
  const base = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    REVEILLE_HOME: join(folder, 'home'),
    TZ: 'UTC',
    EXECUTOR_TOKEN: 'the-executor-token-of-the-screens',
  };
  // Without the admin token the command cannot read which approvers are active, so any key shows the question.
  await loadOrMakeApprover({ HOME: folder, REVEILLE_APPROVER_STORE: 'file' }, systemClock.now());
  const executor: ChildProcess = spawn(process.execPath, [program, 'executor', '--json'], {
    env: {
      ...base,
      EXECUTOR_ADMIN_TOKEN: 'the-admin-token-of-the-screens',
      EXECUTOR_PORT: '0',
      EXECUTOR_DATA_DIR: join(folder, 'executor'),
      EXECUTOR_MANIFEST: manifestIn(folder, knowsRecipients),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  executor.stderr!.on('data', (chunk) => {
    log += chunk;
  });
  const closed = once(executor, 'close');
  const ready = await Promise.race([once(executor.stdout!, 'data'), closed.then(() => undefined)]);
  if (!ready) throw new Error(log);
  const { url } = JSON.parse(String(ready[0])) as { url: string };
  // Each call has its own user, because one intent of a user executes at a time.
  const envOf = ({ name }: HostileCase) => ({
    ...base,
    NEO_EXECUTOR_URL: url,
    NEO_EXECUTOR_TOKEN: base.EXECUTOR_TOKEN,
    MATRIX_USER_ID: name,
  });
  const atEither = new RegExp(`${prompt.source}|${MORE.source}`);
  const atPrompt = (watched: WatchedCommand) => prompt.test(watched.rows().join('\n').trimEnd());
  const terminals = new Map<Size, Promise<SharedTerminal>>();
  const begin = async (hostile: HostileCase, intentId: string, size: Size) => {
    const [args, env] = [['intent', 'approve', intentId], envOf(hostile)];
    // Another version of the program has no part that could run in the shared process.
    if (program === PROGRAM && !terminals.has(size)) terminals.set(size, openTerminal(folder, size));
    const shared = await terminals.get(size);
    const watched = shared?.start({ args, env }) ?? watchCommand(size, [process.execPath, program, ...args], env);
    try {
      await watched.until(atEither);
      return watched;
    } catch (error) {
      await watched.end();
      throw error;
    }
  };
  return {
    begin,
    async submit({ name, node: id, tool, args }) {
      const response = await fetch(`${url}/messages/async`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${base.EXECUTOR_TOKEN}`,
          'x-matrix-user': name,
          'content-type': 'application/json',
        },
        body: JSON.stringify({ intent: { verb: 'pay', plan: { id, kind: 'call', tool, args } } }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`${name}: ${text}`);
      const { data } = JSON.parse(text) as { data: { intent_id: string } };
      await settled(url, base.EXECUTOR_TOKEN, name, data.intent_id);
      return data.intent_id;
    },
    async open(hostile, intentId, size) {
      const watched = await begin(hostile, intentId, size);
      try {
        while (!atPrompt(watched)) await watched.type('\r', atEither);
      } catch (error) {
        await watched.end();
        throw error;
      }
      return watched;
    },
    async close() {
      for (const terminal of terminals.values()) await (await terminal).end();
      executor.kill('SIGTERM');
      await closed;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Resolves when the intent waits for its approval. */
async function settled(url: string, token: string, user: string, id: string): Promise<void> {
  for (;;) {
    const headers = { authorization: `Bearer ${token}`, 'x-matrix-user': user };
    const answer = await fetch(`${url}/messages/async/${id}`, { headers });
    const text = await answer.text();
    if (text.includes('"awaiting_approval"')) return;
    if (/"(failed|denied|unknown|cancelled)"/.test(text)) throw new Error(`${user}: ${text}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Shorter digit sequences occur in an id by chance. */
const DIGITS = /[0-9a-fA-F:.TZ-]{8,}/g;

/** The rows without the values that differ in each run: ids, digests and times. */
export function steady(rows: readonly string[], intentId: string): string[] {
  const isInstant = (run: string) => /^(?:\d{4}-)?[\d:.TZ-]*(?:\d\d:\d\d|\d{4}-\d\d-\d\d)[\d:.TZ-]*$/.test(run);
  return rows.map((row) =>
    // The last digits of an id, on a line of their own.
    row
      .replace(/^ {4}[0-9a-f]{1,12}$/, (digits) => digits.replace(/\S/g, 'x'))
      .replace(DIGITS, (run) =>
        intentId.includes(run) || isInstant(run) || /^[0-9a-f]{24,}$/.test(run)
          ? run.replace(/[0-9a-fA-F]/g, 'x')
          : run,
      ),
  );
}

/** A screen as a file: its rows between bars, so that blanks are visible. */
export function framed(rows: readonly string[], { columns }: Size): string {
  const edge = `+${'-'.repeat(columns)}+`;
  return `${[edge, ...rows.map((row) => `|${row}`), edge].join('\n')}\n`;
}
