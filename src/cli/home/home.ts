/** `REVEILLE_HOME`: the folder of one installation on one computer. */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, replacePrivateFile, writePrivateFile } from '../../kit/identity/private-file.ts';
import { randomSecret } from '../../kit/identity/secrets.ts';
import { isAlive } from '../../kit/sqlite/file-owner.ts';
import { labelSchema } from '../../wire/did.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';

/** Generated secrets of a local installation, by the names of their variables. */
const MADE_SECRETS = [
  'CHRONOS_TOKEN',
  'CHRONOS_AGENT_AUTH_SECRET',
  'CHRONOS_ADMIN_TOKEN',
  'CHRONOS_WAKE_TOKEN',
  'ROUTER_ADMIN_TOKEN',
  'NEO_DAEMON_TOKEN',
] as const;
/** In a file of their own: installations older than the executor have the file above, which is never overwritten. */
const MADE_EXECUTOR_SECRETS = ['EXECUTOR_TOKEN'] as const;
/** In a third file, for the same reason. */
const MADE_ADMIN_SECRETS = ['EXECUTOR_ADMIN_TOKEN'] as const;

type BaseSecrets = Record<(typeof MADE_SECRETS)[number], string>;
type ExecutorSecrets = Record<(typeof MADE_EXECUTOR_SECRETS)[number], string>;
type AdminSecrets = Record<(typeof MADE_ADMIN_SECRETS)[number], string>;
export type MadeSecrets = BaseSecrets & ExecutorSecrets & AdminSecrets;
/** The secrets before and after the first start with an executor. */
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
  /** The public listener: the console, and `reveille chat`. */
  public_url: z.string().optional(),
  /** The console's address by name, which passkeys need; only when no other program can be reached by it. */
  console_url: z.string().optional(),
  /** Signs the one-time codes of the console. */
  console_secret: z.string().optional(),
  executor_url: z.string().optional(),
  started_at: z.string(),
  /** The machine with which it registers Neo; secrets are in it by name. */
  neo: z.unknown().optional(),
});

const accessSchema = z.object({ chronos_url: z.string(), chronos_token: z.string() });

/** Access of an agent to chronosd, and to nothing else. */
export type AgentAccess = z.output<typeof accessSchema>;

/** The addresses of a running `reveille up`. */
export type RunRecord = z.output<typeof runSchema>;

/** The files of an installation. @param configured the value of `REVEILLE_HOME`, if it has one */
export function homeAt(configured: string | undefined) {
  const path = resolve(configured || join(homedir(), '.reveille'));
  return {
    path,
    configFile: join(path, 'config.yaml'),
    secretsFile: join(path, 'secrets.json'),
    /** Secrets of the user for checks of addresses, which only the user writes. */
    checkSecretsFile: join(path, 'check-secrets.json'),
    /** Exists until the first start has set the welcome alarm. */
    firstStartFile: join(path, 'first-start'),
    executorSecretsFile: join(path, 'executor-secrets.json'),
    executorAdminFile: join(path, 'executor-admin.json'),
    submitterFile: join(path, 'neo-submitter.json'),
    identityFile: join(path, 'identity.json'),
    keyFile: join(path, 'keys', 'agent.key'),
    runFile: join(path, 'run.json'),
    /** The manifest of Neo's servers, once the built-in one was changed. */
    manifestFile: join(path, 'agents', 'neo.json'),
    accessFile: join(path, 'agent-access.json'),
    /** The credential of this installation's user for the router's public listener. */
    personFile: join(path, 'person.json'),
    /** The instant up to which `up` has reported turns. */
    newsFile: join(path, 'person', 'told.json'),
    /** Earlier input of `chat`. */
    chatHistoryFile: join(path, 'person', 'chat-history.json'),
    /** The open session of each running client: one small file per client process. */
    sessionsFolder: join(path, 'sessions'),
    /** The folder that the router shares with open sessions of agents. */
    channelFolder: join(path, 'channels'),
    /** The wake target that `connect` registered. */
    wakeTargetFile: join(path, 'wake-target.json'),
  } as const;
}
export type Home = Readonly<ReturnType<typeof homeAt>>;

function parseFile<T extends z.ZodType>(file: string, text: string, schema: T): z.output<T> {
  try {
    return schema.parse(JSON.parse(text));
  } catch (cause) {
    throw new ReveilleError(
      'invalid_request',
      `${file} is damaged and was not changed; restore it from a backup, or move it away to start again`,
      { cause },
    );
  }
}

const textOf = (value: object) => `${JSON.stringify(value, null, 2)}\n`;

function readJsonFile<T extends z.ZodType>(file: string, schema: T): z.output<T> | undefined {
  const text = readPrivateFile(file);
  return text === undefined ? undefined : parseFile(file, text, schema);
}

/** Reads a file that is created once. Of several processes that create it at the same time one wins, and all get its content. */
function readOrMake<T extends z.ZodType>(file: string, schema: T, make: () => z.output<T>): z.output<T> {
  const there = readJsonFile(file, schema);
  if (there !== undefined) return there;
  try {
    writePrivateFile(file, textOf(make() as object));
  } catch (error) {
    if (!(error instanceof ReveilleError && error.code === 'conflict')) throw error;
  }
  return readJsonFile(file, schema)!;
}

const isFolder = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/** Creates a folder and its parents. Node's own `recursive` loops forever in a folder such as `/proc`, which allows none. */
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

/** Whether other users may write, where the system has such rights. */
const HAS_MODES = process.platform !== 'win32';

function refuseHome(why: string, remedy: string): never {
  throw new ReveilleError('forbidden', `${why}; ${remedy}`, { retryable: false });
}

/** @throws ReveilleError `forbidden` when other users may change files in a folder, or when files in it are links */
function checkFolder(path: string): void {
  const { mode, uid } = statSync(path);
  if (HAS_MODES && (mode & 0o022) !== 0) {
    const bits = (mode & 0o777).toString(8).padStart(4, '0');
    refuseHome(`${path} is writable for other users (mode ${bits})`, `run: chmod 700 ${JSON.stringify(path)}`);
  }
  // Root may get a folder of another user, such as a volume of a container.
  const self = process.geteuid?.() ?? 0;
  if (self !== 0 && uid !== self && uid !== 0)
    refuseHome(`${path} belongs to another user (${uid})`, 'choose a folder of your own with REVEILLE_HOME');
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const remedy = 'replace the link by the file itself, or choose another folder with REVEILLE_HOME';
    if (entry.isSymbolicLink()) refuseHome(`${join(path, entry.name)} is a link`, remedy);
  }
}

/**
 * Creates the folder for its owner only, or checks whether an existing one is safe for secrets.
 *
 * @throws ReveilleError `unavailable` when it cannot be created, `forbidden` when other users may write to it, or files
 *   in it are links
 */
export function makeHome(home: Home): void {
  try {
    makeFolder(home.path);
  } catch (cause) {
    const why = thrownText(cause);
    throw new ReveilleError('unavailable', `REVEILLE_HOME ${home.path} cannot be created: ${why}`, { cause });
  }
  checkHome(home);
}

/**
 * Checks whether a home is safe for secrets; a missing one is.
 *
 * @throws ReveilleError `forbidden` when other users may write to it, or files in it are links
 */
export function checkHome(home: Home): void {
  for (const folder of [home.path, dirname(home.keyFile)]) if (isFolder(folder)) checkFolder(folder);
}

/** The secrets of this installation, if generated. */
export function readSecrets(home: Home): KnownSecrets | undefined {
  const made = readJsonFile(home.secretsFile, secretsSchema) as BaseSecrets | undefined;
  if (made === undefined) return undefined;
  return {
    ...made,
    ...(readJsonFile(home.executorSecretsFile, executorSecretsSchema) as ExecutorSecrets | undefined),
    ...(readJsonFile(home.executorAdminFile, adminSecretsSchema) as AdminSecrets | undefined),
  };
}

/** The secrets of this installation, generated on the first call. */
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

/**
 * Whether this start is the first one of the home, or repeats a first one that did not set the welcome alarm. Call it
 * before the secrets are made: a home that has some was started before.
 */
export function beginFirstStart(home: Home): boolean {
  if (existsSync(home.secretsFile)) return existsSync(home.firstStartFile);
  replacePrivateFile(home.firstStartFile, '');
  return true;
}

/** The welcome alarm is set; no later start sets it again. */
export function endFirstStart(home: Home): void {
  rmSync(home.firstStartFile, { force: true });
}

/** Replaces the token of the local Neo; the others stay. */
export function renewNeoToken(home: Home): string {
  loadOrMakeSecrets(home);
  const token = randomSecret();
  // Including fields of a later version.
  const made: unknown = JSON.parse(readPrivateFile(home.secretsFile)!);
  replacePrivateFile(home.secretsFile, textOf({ ...(made as object), NEO_DAEMON_TOKEN: token }));
  return token;
}

/** The token with which this installation's Neo submits intents. */
export type OwnSubmitter = z.output<typeof submitterSchema>;

export const readSubmitter = (home: Home): OwnSubmitter | undefined =>
  readJsonFile(home.submitterFile, submitterSchema);

/** Replaces a token that the executor no longer accepts. */
export function writeSubmitter(home: Home, submitter: OwnSubmitter): void {
  replacePrivateFile(home.submitterFile, textOf(submitter));
}

/** The credential with which this installation's user reaches their agent. */
export type OwnCredential = z.output<typeof personSchema>;

export const readCredential = (home: Home): OwnCredential | undefined => readJsonFile(home.personFile, personSchema);

/** Replaces a credential that the router no longer accepts. */
export function writeCredential(home: Home, credential: OwnCredential): void {
  replacePrivateFile(home.personFile, textOf(credential));
}

/** The label of this installation's alarms, if it has one. */
export function readLabel(home: Home): string | undefined {
  return readJsonFile(home.identityFile, identitySchema)?.label;
}

/** The label of this installation, a UUID created on the first call. */
export function loadOrMakeLabel(home: Home): string {
  return readOrMake(home.identityFile, identitySchema, () => ({ label: randomUUID() })).label;
}

/** The addresses of `reveille up`, if it runs. */
export function readRun(home: Home): RunRecord | undefined {
  const run = readJsonFile(home.runFile, runSchema);
  return run && isAlive(run.pid) ? run : undefined;
}

/** Records the addresses of this process for {@link readRun}. */
export function writeRun(home: Home, run: RunRecord): void {
  replacePrivateFile(home.runFile, textOf(run));
}

/** The access of this installation's agents. It has its own file, because a sandbox shows a program this file and not the secrets. */
export function readAccess(home: Home): AgentAccess | undefined {
  return readJsonFile(home.accessFile, accessSchema);
}

export function writeAccess(home: Home, access: AgentAccess): void {
  replacePrivateFile(home.accessFile, textOf(access));
}

/** Removes this process's own record. */
export function removeRun(home: Home): void {
  try {
    const { pid } = parseFile(home.runFile, readFileSync(home.runFile, 'utf8'), runSchema);
    if (pid === process.pid) rmSync(home.runFile, { force: true });
  } catch {
    // A missing or unreadable record is reported to its next reader.
  }
}

/** The user's account name; the user id when it has no name, as in a container. */
export function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? 'unknown'}`;
  }
}
