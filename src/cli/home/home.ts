/** `REVEILLE_HOME`: the folder that holds what one installation on one machine keeps. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, replacePrivateFile, writePrivateFile } from '../../kit/identity/private-file.ts';
import { randomSecret } from '../../kit/identity/secrets.ts';
import { labelSchema } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';

/** The secrets that a local installation makes for itself, by the names of their variables. */
const MADE_SECRETS = [
  'CHRONOS_TOKEN',
  'CHRONOS_AGENT_AUTH_SECRET',
  'CHRONOS_ADMIN_TOKEN',
  'CHRONOS_WAKE_TOKEN',
  'ROUTER_ADMIN_TOKEN',
  'NEO_DAEMON_TOKEN',
] as const;
/**
 * Made in a file of their own: installations that are older than the executor have the one above, and it is never
 * written over.
 */
const MADE_EXECUTOR_SECRETS = ['EXECUTOR_TOKEN'] as const;
/** In a third one, for the same reason. */
const MADE_ADMIN_SECRETS = ['EXECUTOR_ADMIN_TOKEN'] as const;

type BaseSecrets = Record<(typeof MADE_SECRETS)[number], string>;
type ExecutorSecrets = Record<(typeof MADE_EXECUTOR_SECRETS)[number], string>;
type AdminSecrets = Record<(typeof MADE_ADMIN_SECRETS)[number], string>;
export type MadeSecrets = BaseSecrets & ExecutorSecrets & AdminSecrets;
/** What there is before the first start with an executor, and after it. */
export type KnownSecrets = BaseSecrets & Partial<ExecutorSecrets & AdminSecrets>;

const secretsOf = (names: readonly string[]) =>
  z.object(Object.fromEntries(names.map((name) => [name, z.string().min(16)])));
const secretsSchema = secretsOf(MADE_SECRETS);
const executorSecretsSchema = secretsOf(MADE_EXECUTOR_SECRETS);
const adminSecretsSchema = secretsOf(MADE_ADMIN_SECRETS);
const submitterSchema = z.object({ id: z.string(), token: z.string().min(16) });
const personSchema = z.object({ user_id: z.string(), id: z.string(), token: z.string().min(16) });
const identitySchema = z.object({ label: labelSchema });
const runSchema = z.object({
  pid: z.int(),
  chronos_url: z.string(),
  router_url: z.string(),
  /** Where people come in: the console, and `reveille chat`. */
  public_url: z.string().optional(),
  /** The console by a name, which passkeys need; where nobody else can be reached by it. */
  console_url: z.string().optional(),
  /** Seals the one-time codes of the console. */
  console_secret: z.string().optional(),
  executor_url: z.string().optional(),
  started_at: z.string(),
  /** What it registers Neo with, as a machine; secrets are in it by name. */
  neo: z.unknown().optional(),
});

const accessSchema = z.object({ chronos_url: z.string(), chronos_token: z.string() });

/** What an agent needs to reach chronosd, and nothing else. */
export type AgentAccess = z.output<typeof accessSchema>;

/** Where a running `reveille up` listens. */
export type RunRecord = z.output<typeof runSchema>;

export type Home = {
  readonly path: string;
  readonly configFile: string;
  readonly secretsFile: string;
  readonly executorSecretsFile: string;
  readonly executorAdminFile: string;
  readonly submitterFile: string;
  readonly identityFile: string;
  readonly keyFile: string;
  readonly runFile: string;
  /** The manifest of Neo's servers, once somebody has changed the one that ships. */
  readonly manifestFile: string;
  readonly accessFile: string;
  /** The credential of the person whose installation it is, for the router's public listener. */
  readonly personFile: string;
  /** Until when `up` has told what came of turns. */
  readonly newsFile: string;
  /** What was typed into `chat`. */
  readonly chatHistoryFile: string;
  /** Which session each running client has open: one small file a client process. */
  readonly sessionsFolder: string;
  /** The wake target that `connect` registered. */
  readonly wakeTargetFile: string;
};

/** @param configured the value of `REVEILLE_HOME`, if it has one */
export function homeAt(configured: string | undefined): Home {
  const path = resolve(configured || join(homedir(), '.reveille'));
  return {
    path,
    configFile: join(path, 'config.yaml'),
    secretsFile: join(path, 'secrets.json'),
    executorSecretsFile: join(path, 'executor-secrets.json'),
    executorAdminFile: join(path, 'executor-admin.json'),
    submitterFile: join(path, 'neo-submitter.json'),
    identityFile: join(path, 'identity.json'),
    keyFile: join(path, 'keys', 'agent.key'),
    runFile: join(path, 'run.json'),
    manifestFile: join(path, 'agents', 'neo.json'),
    accessFile: join(path, 'agent-access.json'),
    personFile: join(path, 'person.json'),
    newsFile: join(path, 'person', 'told.json'),
    chatHistoryFile: join(path, 'person', 'chat-history.json'),
    sessionsFolder: join(path, 'sessions'),
    wakeTargetFile: join(path, 'wake-target.json'),
  };
}

function parseFile<T extends z.ZodType>(file: string, text: string, schema: T): z.output<T> {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new ReveilleError(
      'invalid_request',
      `${file} is damaged and was left as it is; restore it from a backup, or move it away to start anew`,
      { cause },
    );
  }
}

function readJsonFile<T extends z.ZodType>(file: string, schema: T): z.output<T> | undefined {
  const text = readPrivateFile(file);
  return text === undefined ? undefined : parseFile(file, text, schema);
}

/**
 * Reads a file that is made once; of several processes that make it at the same time one wins, and all get its
 * contents.
 */
function readOrMake<T extends z.ZodType>(file: string, schema: T, make: () => z.output<T>): z.output<T> {
  const there = readJsonFile(file, schema);
  if (there !== undefined) return there;
  try {
    writePrivateFile(file, `${JSON.stringify(make(), null, 2)}\n`);
  } catch (error) {
    if (!(error instanceof ReveilleError && error.code === 'conflict')) throw error;
  }
  return readJsonFile(file, schema)!;
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * Makes a folder and those above it. Node's own `recursive` goes round for ever where a folder such as `/proc` takes no
 * others.
 */
function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolder(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if (!isFolder(path)) throw error;
  }
}

/** Whether others have a right to write, as far as the system has such rights. */
const HAS_MODES = process.platform !== 'win32';

function refuseHome(why: string, remedy: string): never {
  throw new ReveilleError('forbidden', `${why}; ${remedy}`, { retryable: false });
}

/**
 * @throws ReveilleError `forbidden` when others may change what lies in a folder, or when what lies there is elsewhere
 * in truth
 */
function checkFolder(path: string): void {
  const { mode, uid } = statSync(path);
  if (HAS_MODES && (mode & 0o022) !== 0) {
    const bits = (mode & 0o777).toString(8).padStart(4, '0');
    refuseHome(`${path} can be written to by others (mode ${bits})`, `run: chmod 700 ${JSON.stringify(path)}`);
  }
  // Root may be given somebody's folder, as a volume of a container is.
  const self = process.geteuid?.() ?? 0;
  if (self !== 0 && uid !== self && uid !== 0)
    refuseHome(`${path} belongs to another user (${uid})`, 'choose a folder of your own with REVEILLE_HOME');
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const remedy = 'put the file itself there, or choose another folder with REVEILLE_HOME';
    if (entry.isSymbolicLink()) refuseHome(`${join(path, entry.name)} is a link`, remedy);
  }
}

/**
 * Makes the folder, only its owner's, or looks whether one that is there can be trusted with secrets.
 *
 * @throws ReveilleError `unavailable` when it cannot be made, `forbidden` when others may write to it, or files in it
 *   are links
 */
export function makeHome(home: Home): void {
  try {
    makeFolder(home.path);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ReveilleError('unavailable', `REVEILLE_HOME ${home.path} cannot be made: ${why}`, { cause });
  }
  checkHome(home);
}

/**
 * Looks whether a home can be trusted with secrets; one that is not there can.
 *
 * @throws ReveilleError `forbidden` when others may write to it, or files in it are links
 */
export function checkHome(home: Home): void {
  for (const folder of [home.path, dirname(home.keyFile)]) if (isFolder(folder)) checkFolder(folder);
}

/** The secrets of this installation, if it has made any. */
export function readSecrets(home: Home): KnownSecrets | undefined {
  const made = readJsonFile(home.secretsFile, secretsSchema) as BaseSecrets | undefined;
  if (made === undefined) return undefined;
  return {
    ...made,
    ...(readJsonFile(home.executorSecretsFile, executorSecretsSchema) as ExecutorSecrets | undefined),
    ...(readJsonFile(home.executorAdminFile, adminSecretsSchema) as AdminSecrets | undefined),
  };
}

/** The secrets of this installation, made on the first call. */
export function loadOrMakeSecrets(home: Home): MadeSecrets {
  const make = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, randomSecret()]));
  return {
    ...(readOrMake(home.secretsFile, secretsSchema, () => make(MADE_SECRETS)) as BaseSecrets),
    ...(readOrMake(home.executorSecretsFile, executorSecretsSchema, () =>
      make(MADE_EXECUTOR_SECRETS),
    ) as ExecutorSecrets),
    ...(readOrMake(home.executorAdminFile, adminSecretsSchema, () => make(MADE_ADMIN_SECRETS)) as AdminSecrets),
  };
}

/** Gives the local Neo a token that nobody has seen; the others stay. */
export function renewNeoToken(home: Home): string {
  loadOrMakeSecrets(home);
  const token = randomSecret();
  // With members that a later version has added.
  const made: unknown = JSON.parse(readPrivateFile(home.secretsFile)!);
  replacePrivateFile(
    home.secretsFile,
    `${JSON.stringify({ ...(made as object), NEO_DAEMON_TOKEN: token }, null, 2)}\n`,
  );
  return token;
}

/** With which token this installation's Neo hands tasks over. */
export type OwnSubmitter = z.output<typeof submitterSchema>;

export const readSubmitter = (home: Home): OwnSubmitter | undefined =>
  readJsonFile(home.submitterFile, submitterSchema);

/** Puts another token in the place of one that its executor does not know any more. */
export function writeSubmitter(home: Home, submitter: OwnSubmitter): void {
  replacePrivateFile(home.submitterFile, `${JSON.stringify(submitter, null, 2)}\n`);
}

/** With which token the person of this installation talks to their agent. */
export type OwnCredential = z.output<typeof personSchema>;

export const readCredential = (home: Home): OwnCredential | undefined => readJsonFile(home.personFile, personSchema);

/** Puts another credential in the place of one that its router does not take any more. */
export function writeCredential(home: Home, credential: OwnCredential): void {
  replacePrivateFile(home.personFile, `${JSON.stringify(credential, null, 2)}\n`);
}

/** The label that alarms of this installation are filed under, if it has one. */
export function readLabel(home: Home): string | undefined {
  return readJsonFile(home.identityFile, identitySchema)?.label;
}

/** The label of this installation, a UUID made on the first call. */
export function loadOrMakeLabel(home: Home): string {
  return readOrMake(home.identityFile, identitySchema, () => ({ label: randomUUID() })).label;
}

/** Where `reveille up` listens, if it runs. */
export function readRun(home: Home): RunRecord | undefined {
  const run = readJsonFile(home.runFile, runSchema);
  return run && isAlive(run.pid) ? run : undefined;
}

/** Says where this process listens; whoever comes later finds it through {@link readRun}. */
export function writeRun(home: Home, run: RunRecord): void {
  replacePrivateFile(home.runFile, `${JSON.stringify(run, null, 2)}\n`);
}

/**
 * What an agent of this installation needs; it stands beside the secrets, for walls show a program this file and not
 * those.
 */
export function readAccess(home: Home): AgentAccess | undefined {
  return readJsonFile(home.accessFile, accessSchema);
}

export function writeAccess(home: Home, access: AgentAccess): void {
  replacePrivateFile(home.accessFile, `${JSON.stringify(access, null, 2)}\n`);
}

/** Takes this process's own record away. */
export function removeRun(home: Home): void {
  try {
    const { pid } = parseFile(home.runFile, readFileSync(home.runFile, 'utf8'), runSchema);
    if (pid === process.pid) rmSync(home.runFile, { force: true });
  } catch {
    // A record that is gone or unreadable says nothing about this process; whoever reads it next is told.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** What the system calls whoever runs this; where a user id has no name, as in a container, that id. */
export function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
