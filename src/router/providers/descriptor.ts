/**
 * The description of a provider of machines in one value: its specification, its public members, its command line
 * flags, the facts for operators, and its construction. The command line and the registry read it; neither knows a
 * provider by name. To add a provider, write its descriptor and name it in `descriptors.ts`.
 *
 * A descriptor is loaded with each `reveille machine …`, so it imports nothing heavy: `create` loads the HTTP client,
 * or the provider itself.
 */
import { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { GroupCommit } from '../../kit/sqlite/group-commit.ts';
import type { SqliteFile } from '../../kit/sqlite/open.ts';
import type { RouterConfig } from '../config.ts';
import type { Reaper } from '../reaper/reaper.ts';
import type { AwakeRecords } from './awake-records.ts';
import type { HealthProbe } from './health.ts';
import type { Isolation } from './isolation.ts';
import type { Provider } from './provider.ts';
import type { Shown } from './redaction.ts';

/** The parts that a router passes to each provider it creates. */
export type ProviderParts = {
  config: RouterConfig;
  /** The registry's file, for providers that store records in it. */
  file: SqliteFile;
  commits: GroupCommit;
  /** The record of the machines that an earlier router left awake. */
  awake(provider: string): AwakeRecords;
  probe: HealthProbe;
  isolation: Isolation;
  reaper: Reaper;
  environment: Readonly<Record<string, string | undefined>>;
  chronosUrl: () => string | undefined;
  /** The most connections to one daemon. */
  connections: number;
  clock: Clock;
  log: Logger;
};

/** The value that commander returns for a flag. */
export type FlagValue = string | readonly string[] | boolean | undefined;
export type Flags = Readonly<Record<string, FlagValue>>;

export type FlagKind =
  | 'text'
  /** A switch without a value. */
  | 'switch'
  /** `--no-…`: sets its member to `false`. */
  | 'off'
  /** `NAME=value`, once for each variable. */
  | 'variables'
  /** Paths relative to the caller's folder, one for each use. */
  | 'folders'
  /** A name on the PATH, or a path relative to the caller's folder. */
  | 'program'
  /** A user of this computer by name, or `uid:gid`. */
  | 'user'
  /** The arguments after `--`. */
  | 'words'
  | { readonly whole: readonly [min: number, max: number] }
  | { readonly choice: readonly string[] }
  /** A path relative to the caller's folder; without the flag, the result of the function. */
  | { readonly folder: (flags: Flags) => string | undefined };

/** A flag of `machine put`. Several flags may set the same member; then only one of them may be given. */
export type Flag = {
  /** In commander's notation: `--port <port>`; `--` for the arguments after two dashes. */
  readonly usage: string;
  /** For the help; equal texts of several providers become one line. */
  readonly about: string;
  /** The member of the specification that it sets; a dot separates group and member. */
  readonly member: string;
  readonly kind: FlagKind;
  /** The reason why the provider needs it, to follow "--provider docker needs"; optional without it. */
  readonly needed?: string;
};

/** A line of `machine show`. */
type Fact = readonly [label: string, value: string | undefined];

/** A specification as operators see it. */
type ShownSpec = Readonly<Record<string, unknown>>;

export type Descriptor<Name extends string = string, Schema extends z.ZodType<object> = z.ZodType<object>> = {
  readonly name: Name;
  /** Its name in the help of flags; by default `name`. */
  readonly label?: string;
  /** For the help of `--provider`. */
  readonly about: string;
  readonly schema: Schema;
  /** The public members with their display. Every other member is secret. */
  readonly shown: Readonly<{ [Member in keyof z.output<Schema>]?: Shown }>;
  /** The members that identify the program or address that gets the token. When one changes, the token is replaced. */
  readonly identity: readonly (keyof z.output<Schema> & string)[];
  /** Whether the provider passes the token to the daemon itself, so that the operator need not. */
  readonly handsToken?: boolean;
  readonly flags: readonly Flag[];
  /** Its lines of `machine show`; the first one locates the machine, and lists show it too. */
  facts(spec: ShownSpec): readonly [Fact, ...Fact[]];
  /** Without it the machines have no daemon: each wake goes to an agent of `src/agents`. */
  create?(parts: ProviderParts): Promise<Provider>;
};

// Parts that several providers share.

export const healthPath = z
  .string()
  .regex(/^\/[\x21-\x7e]{0,200}$/, 'must be a path that starts with /')
  .optional();
const LOWEST_PORT = 1;
const HIGHEST_PORT = 65_535;
export const port = z.int().min(LOWEST_PORT).max(HIGHEST_PORT);

/** Text that the kernel can pass to a process: it ends every string at a NUL. */
export const argument = z.string().refine((text) => !text.includes('\0'), 'must not contain a NUL character');
export const variables = z
  .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name'), argument)
  .optional();

/** Folders that a program may write in the sandbox, besides its working folder and the folders of its preset. */
export const writable = z.array(argument.startsWith('/', 'must be an absolute path')).max(64).optional();

/** What its agent may set besides addresses and paths: commands as checks and as `run`. A person may set any. */
export const checks = z.enum(['commands']).optional();
export const checksFlag: Flag = {
  usage: '--agent-checks <what>',
  about: 'commands: its agent may set commands by itself, as checks and as run, in a closed sandbox',
  member: 'checks',
  kind: { choice: ['commands'] },
};

/** `false`: it runs without a sandbox, unless the router's setting is `required`. */
export const sandbox = z.boolean().optional();

export const portFlag: Flag = {
  usage: '--port <port>',
  about: 'where the daemon listens',
  member: 'port',
  kind: { whole: [LOWEST_PORT, HIGHEST_PORT] },
};
export const healthPathFlag: Flag = {
  usage: '--health-path <path>',
  about: 'where the daemon answers when it is ready (default: /healthz)',
  member: 'health_path',
  kind: 'text',
};
export const variablesFlag: Flag = {
  usage: '--env <NAME=value>',
  about: 'a variable for the program; may be repeated',
  member: 'env',
  kind: 'variables',
};
export const writableFlag: Flag = {
  usage: '--writable <folder>',
  about: 'another folder that it may write to; may be repeated',
  member: 'writable',
  kind: 'folders',
};
export const sandboxFlag: Flag = {
  usage: '--no-sandbox',
  about: 'run it without a sandbox; it sees and writes all that the router can',
  member: 'sandbox',
  kind: 'off',
};

/** `--dir` and its alias. */
export function folderFlags(about: string, otherwise: (flags: Flags) => string | undefined): Flag[] {
  const kind = { folder: otherwise };
  return [
    { usage: '--cwd <folder>', about: 'the same as --dir', member: 'cwd', kind },
    { usage: '--dir <folder>', about, member: 'cwd', kind },
  ];
}

export const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
export const listed = (value: unknown) => (Array.isArray(value) ? value.map(String).join(' ') : undefined);

export const portFact = ({ port }: ShownSpec): Fact => ['port', typeof port === 'number' ? String(port) : undefined];
export const healthPathFact = ({ health_path }: ShownSpec): Fact => ['health path', text(health_path)];
export const sandboxFact = ({ sandbox }: ShownSpec): Fact => [
  'sandbox',
  sandbox === false ? 'none (--no-sandbox)' : undefined,
];
export const writableFact = ({ writable }: ShownSpec): Fact => ['writable', listed(writable)];
export const checksFact = ({ checks }: ShownSpec): Fact => ['own checks', text(checks)];
export const variableFacts = ({ env }: ShownSpec): Fact[] =>
  Object.entries(env ?? {}).map(([name, value]) => [`env ${name}`, String(value)]);
