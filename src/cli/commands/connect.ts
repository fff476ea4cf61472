/** `reveille connect`: our MCP servers and the time hook in the configuration of an agent's client. */
import { existsSync } from 'node:fs';
import { dirname, sep } from 'node:path';
import { structuredPatch } from 'diff';
import { ReveilleError } from '../../wire/errors.ts';
import { CLIENTS, type Client, homeOf, type Surroundings } from '../connect/clients.ts';
import { isFolderMadeWith, removeEmptyFolder, shortPath } from '../connect/config-file.ts';
import { entriesOf, isCached, PARTS, type Part } from '../connect/entries.ts';
import { applyChanges, type Change, planConnect, planUndo, stateOf } from '../connect/plan.ts';
import {
  isWakeable,
  readWakeTarget,
  registerWakeTarget,
  testWakeTarget,
  undoWakeTarget,
  whereWakesGo,
} from '../connect/wake-target.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { readRun } from '../home/home.ts';
import { PROGRAM } from '../home/package-root.ts';
import { columns } from '../screens/columns.ts';
import { serviceLocation } from '../service/folders.ts';
import { programIn } from '../service/lasting-copy.ts';
import { personAt } from './neo-server-review.ts';

export type ConnectFlags = {
  project?: boolean;
  without?: string[];
  print?: boolean;
  yes?: boolean;
  undo?: boolean;
  /** Register this folder as the wake target; `false`: do not, and do not ask. */
  wake?: boolean;
  /** Set two test alarms at the end. */
  test?: boolean;
};

/** A longer line may be a whole file, with secrets in it. */
const LONGEST_LINE = 300;

const ACTIONS: Readonly<Record<Change['action'], string>> = {
  create: 'is made',
  change: 'changes',
  restore: 'is restored',
  delete: 'is deleted; it did not exist before',
  none: 'does not change',
};

/** The changes of a file by line, as `diff -u` shows them with one line of context. */
export function differenceOf({ file, after }: Pick<Change, 'file' | 'after'>): string[] {
  const { hunks } = structuredPatch('', '', file.text, after, '', '', { context: 1 });
  const short = (line: string) =>
    line.length > LONGEST_LINE ? `${line[0]}(a line of ${line.length - 1} characters)` : line;
  return hunks.flatMap(({ lines, oldStart }) => [`@@ line ${oldStart} @@`, ...lines.map(short)]);
}

function partsWithout(without: readonly string[]): Part[] {
  const unknown = without.find((word) => !PARTS.includes(word as Part));
  if (unknown !== undefined) throw new UsageError(`--without takes ${PARTS.join(', ')} (got "${unknown}")`);
  if (new Set(without).size === PARTS.length) throw new UsageError('--without all parts leaves nothing to connect');
  return without as Part[];
}

function clientOf(name: string): Client {
  const client = Object.hasOwn(CLIENTS, name) ? CLIENTS[name] : undefined;
  if (client) return client;
  throw new UsageError(`there is no client "${name}"; clients are ${Object.keys(CLIENTS).join(', ')}`);
}

function filesOf(name: string, client: Client, around: Surroundings, flags: ConnectFlags) {
  if (!flags.project) return client.user(around);
  if (client.project) return client.project(around);
  throw new UsageError(`${client.title} has no configuration for a folder; omit --project: reveille connect ${name}`);
}

const STATES = { connected: 'connected', otherwise: 'connected otherwise', no: 'not connected' } as const;

/** The state of one client. An unreadable file is reported, not thrown. */
function stateLine(client: Client, around: Surroundings, read: () => ReturnType<typeof entriesOf>) {
  const files = client.user(around);
  const isTrace = (path: string) => existsSync(path) || (dirname(path) !== homeOf(around) && existsSync(dirname(path)));
  const isHere = files.some(({ path }) => isTrace(path));
  try {
    const state = stateOf(files, read());
    return { state, words: isHere || state !== 'no' ? STATES[state] : 'not found here' };
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    return { state: 'unreadable', words: thrown.message };
  }
}

function listClients(context: CliContext, around: Surroundings, read: () => ReturnType<typeof entriesOf>): void {
  const { out } = context;
  const rows = Object.entries(CLIENTS).map(([name, client]) => {
    const paths = client.user(around).map(({ path }) => path);
    return { client: name, title: client.title, files: paths, ...stateLine(client, around, read) };
  });
  const data = { clients: rows.map(({ words, ...row }) => row) };
  const cells = rows.map(({ client, title, words }) => [client, title, words]);
  out.result(data, [...columns(cells, out.columns), '', 'Connect one with: reveille connect claude']);
}

function show({ out }: CliContext, changes: readonly Change[], home: string): void {
  for (const change of changes) {
    const { file, action } = change;
    const link = file.target === file.path ? '' : ` (a link to ${shortPath(file.target, home)})`;
    out.line(out.paint('bold', `${shortPath(file.path, home)}${link} ${ACTIONS[action]}`));
    if (action === 'none') continue;
    for (const line of differenceOf(change)) {
      const style = line.startsWith('+') ? 'green' : line.startsWith('-') ? 'red' : 'dim';
      out.line(out.paint(style, `  ${line}`));
    }
  }
}

/** @returns whether the user answers yes; `undefined` without a terminal */
async function asked(context: CliContext, question: string): Promise<boolean | undefined> {
  const person = personAt(context);
  if (!person) return undefined;
  try {
    return /^y(?:es)?$/i.test((await person.ask(`${question} [y/N] `)).trim());
  } finally {
    person.close();
  }
}

async function agreed(context: CliContext): Promise<boolean> {
  const answer = await asked(context, 'Write this?');
  if (answer !== undefined) return answer;
  throw new UsageError('no terminal to confirm the change; use --yes to write it, or --print to show it');
}

/** The result for the wake target, for programs and as text. */
type WakeOutcome = { readonly data: object; readonly lines: readonly string[] };

const SESSION_WORDS: Readonly<Record<string, string>> = {
  claude: 'An alarm without a conversation wakes the session that set it: the prompt hook reports the open session.',
  codex: 'An alarm without a conversation wakes the thread that set it: Codex names the thread in each call.',
  gemini: 'An alarm without a conversation wakes the session that set it: the prompt hook reports the open session.',
};

/** Registers the folder as the wake target on request, reports the target, and tests it. */
async function offerWakes(context: CliContext, name: string, flags: ConnectFlags): Promise<WakeOutcome | undefined> {
  if (!isWakeable(name)) return undefined;
  const folder = context.process.cwd();
  const { title } = clientOf(name);
  const later = `reveille connect ${name} --wake`;
  const runs = readRun(context.home) !== undefined;
  if (flags.wake === undefined && !runs)
    return {
      data: { wake: { registered: false } },
      lines: [
        `Alarms do not wake ${title} yet: start Reveille ("reveille up"), then run in its working folder: ${later}`,
      ],
    };
  const now = flags.wake === false && !runs ? undefined : await whereWakesGo(context);
  const isHere = now === `${name} in ${folder}`;
  const question = `Wakes go to ${now}. Let them start ${title} in ${folder} and resume the session that set the alarm?`;
  const wanted = flags.wake ?? (isHere || (flags.yes ? false : ((await asked(context, question)) ?? false)));
  if (!wanted)
    return {
      data: { wake: { registered: false, target: now } },
      lines: [
        `Wakes go to ${now ?? 'the target that is registered when Reveille runs'}. To wake ${title} in this folder: ${later}`,
      ],
    };
  const warnings = isHere ? [] : await registerWakeTarget(context, name, folder);
  const lines = [
    `Wakes go to ${name} in ${folder}. Sessions of other folders are not found there.`,
    ...(flags.without?.includes('hook') && name !== 'codex'
      ? ['Without the hook no session is known: a wake without a conversation_id starts a new one.']
      : [SESSION_WORDS[name]!]),
    ...warnings.map((warning) => `Not ready yet: ${warning}`),
  ];
  const isTested = flags.test ?? (flags.yes ? false : await asked(context, 'Test it with two short turns?'));
  if (!isTested)
    return {
      data: { wake: { registered: true, client: name, folder } },
      lines: [...lines, `To test it: ${later} --test`],
    };
  if (!context.out.json) for (const line of lines) context.out.line(line);
  context.out.remark('A test alarm starts a session, and a second one resumes it …');
  const { session, replies } = await testWakeTarget(context);
  return {
    data: { wake: { registered: true, client: name, folder, test: { session, replies } } },
    lines: [`Tested: one alarm started the session ${session}, and the next one resumed it.`],
  };
}

/** The program in the configuration: with a service, the one that upgrades replace, not a versioned folder or a cache. */
export function programToName(
  { environment, home }: Pick<CliContext, 'environment' | 'home'>,
  running = PROGRAM,
): string {
  const { versions, current } = serviceLocation(environment, home.path);
  const ofService = programIn(current);
  const goes = isCached(running) || running.startsWith(versions + sep);
  return goes && existsSync(ofService) ? ofService : running;
}

/** @param name the client; without it all clients are listed */
export async function connect(context: CliContext, flags: ConnectFlags, name: string | undefined): Promise<void> {
  const { out, environment, process: own } = context;
  const around = { environment, platform: process.platform, cwd: own.cwd() };
  const without = partsWithout(flags.without ?? []);
  const entries = () =>
    entriesOf({ program: programToName(context), execPath: process.execPath, environment }, without);
  if (name === undefined) return listClients(context, around, entries);

  const client = clientOf(name);
  // Only a question or --wake registers the wake target that is tested; --yes suppresses the question.
  if (flags.test && (flags.wake === false || (flags.yes && !flags.wake)))
    throw new UsageError(`--test needs --wake: reveille connect ${name}${flags.yes ? ' --yes' : ''} --wake --test`);
  const files = filesOf(name, client, around, flags);
  const project = flags.project ? around.cwd : undefined;
  const changes = flags.undo ? planUndo(files, project) : planConnect(files, entries(), project);
  const registered = flags.undo ? readWakeTarget(context) : undefined;
  const target = registered?.client === name ? registered : undefined;
  const isNeeded = target !== undefined || changes.some(({ action }) => action !== 'none');
  const home = homeOf(around);
  show(context, changes, home);
  if (target) out.line(out.paint('bold', `Wakes no longer go to ${name} in ${target.folder}`));
  const write = isNeeded && !flags.print && (flags.yes || (await agreed(context)));
  // Before the files: without a running Reveille, nothing is undone partially.
  const back = write && target ? await undoWakeTarget(context, target) : undefined;
  const made = changes.filter(({ file, action }) => action === 'delete' && isFolderMadeWith(file));
  if (write) applyChanges(changes);
  if (write) for (const { file } of made) removeEmptyFolder(file, [home, around.cwd]);

  const written = changes.map((change) => ({
    path: change.file.path,
    action: change.action,
    difference: change.action === 'none' ? [] : differenceOf(change),
    ...(change.backup !== undefined && change.action === 'change' && !flags.undo && { backup: change.backup }),
  }));
  const lines = write ? writtenText(client, flags, written, home) : [unwrittenText(client, flags, isNeeded)];
  if (back !== undefined)
    lines.push(`Wakes go to ${back}. Alarms that are set are kept, and wake it, too: reveille alarm list`);
  else if (flags.print && flags.wake && isWakeable(name))
    lines.push(`--wake would let wakes start ${client.title} in ${around.cwd}.`);
  if (!out.json) for (const line of lines) out.line(line);
  const isConnected = !flags.undo && !flags.print && (write || !isNeeded);
  const wakes = isConnected ? await offerWakes(context, name, flags) : undefined;
  out.result({ client: name, written: write, files: written, ...wakes?.data }, wakes ? [...wakes.lines] : []);
}

type WrittenFile = { path: string; backup?: string };

function writtenText(
  client: Client,
  { undo, project }: ConnectFlags,
  files: readonly WrittenFile[],
  home: string,
): string[] {
  if (undo) return [`${client.title} is disconnected; restart it to apply the change.`];
  const backups = files.flatMap(({ backup }) => (backup === undefined ? [] : [shortPath(backup, home)]));
  return [
    `${client.title} is connected: ${client.afterwards}. Alarms fire while "reveille up" runs.`,
    ...(backups.length === 0 ? [] : [`Backups: ${backups.join(', ')}; --undo restores them.`]),
    ...(project ? ['The paths in it are for this computer: do not commit it.'] : []),
  ];
}

function unwrittenText(client: Client, { undo, print }: ConnectFlags, isNeeded: boolean): string {
  if (!isNeeded)
    return undo ? `${client.title}'s files have no entries of Reveille.` : `${client.title} is already connected.`;
  return print ? 'Nothing was written; run it without --print to write.' : 'Nothing was written.';
}
