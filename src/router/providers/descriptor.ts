/**
 * What a provider of machines is, in one value: its specification, which members of that are public, how a command line
 * gives them, what operators are shown of a machine, and how the provider is created. The command line and the registry
 * read it; neither knows a provider by name. To add one, write its descriptor and name it in `descriptors.ts`.
 *
 * A descriptor is loaded with each `reveille machine …`, so it imports nothing heavy: `create` loads the provider
 * itself.
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
import type { Provider } from './provider.ts';
import type { Shown } from './redaction.ts';
import type { Separation } from './separation.ts';

/** What a router hands to each provider that it creates. */
export type ProviderParts = {
  config: RouterConfig;
  /** The registry's file, for providers that keep something in it. */
  file: SqliteFile;
  commits: GroupCommit;
  /** Which machines of a provider an earlier router left awake. */
  awake(provider: string): AwakeRecords;
  probe: HealthProbe;
  separation: Separation;
  reaper: Reaper;
  environment: Readonly<Record<string, string | undefined>>;
  chronosUrl: () => string | undefined;
  /** Most connections to one daemon. */
  connections: number;
  clock: Clock;
  log: Logger;
};

/** What commander makes of a flag. */
export type FlagValue = string | readonly string[] | boolean | undefined;
export type Flags = Readonly<Record<string, FlagValue>>;

/** How a flag is written. */
export type FlagKind =
  | 'text'
  /** Given or not. */
  | 'switch'
  /** `--no-…`: sets its member to `false`. */
  | 'off'
  /** `NAME=value`, once for each variable. */
  | 'variables'
  /** Paths that start where the command was typed, once for each. */
  | 'folders'
  /** A name on the PATH, or a path that starts where the command was typed. */
  | 'program'
  /** A user of this computer by name, or `uid:gid`. */
  | 'user'
  /** The words after `--`. */
  | 'words'
  | { readonly whole: readonly [min: number, max: number] }
  | { readonly choice: readonly string[] }
  /** A path that starts where the command was typed; without the flag, what the function says. */
  | { readonly folder: (flags: Flags) => string | undefined };

/** A flag of `machine put`. Several flags may set the same member; then only one of them may be given. */
export type Flag = {
  /** As commander takes it: `--port <port>`; `--` for the words after two dashes. */
  readonly usage: string;
  /** For the help; equal words of several providers become one line. */
  readonly about: string;
  /** The member of the specification that it sets; a dot leads into a group. */
  readonly member: string;
  readonly kind: FlagKind;
  /** What the provider needs it for, to follow "--provider docker needs"; optional without it. */
  readonly needed?: string;
};

/** A line of `machine show`. */
type Fact = readonly [label: string, value: string | undefined];

/** A specification as operators are shown it. */
type ShownSpec = Readonly<Record<string, unknown>>;

export type Descriptor<Name extends string = string, Schema extends z.ZodType<object> = z.ZodType<object>> = {
  readonly name: Name;
  /** Its name where flags are explained; `name` without it. */
  readonly label?: string;
  /** For the help of `--provider`. */
  readonly about: string;
  readonly schema: Schema;
  /** The public members, and what is shown of each. Every other member is secret. */
  readonly shown: Readonly<{ [Member in keyof z.output<Schema>]?: Shown }>;
  /** The members that name the program or the address which gets the token: where they change, the token does. */
  readonly place: readonly (keyof z.output<Schema> & string)[];
  /** The provider hands the token to the daemon itself, so that nobody has to tell it a new one. */
  readonly handsToken?: boolean;
  readonly flags: readonly Flag[];
  /** Its part of `machine show`; the first says where the machine is, and stands in lists, too. */
  facts(spec: ShownSpec): readonly [Fact, ...Fact[]];
  /** Without it the machines have no daemon: each wake runs something (targets/). */
  create?(parts: ProviderParts): Promise<Provider>;
};

// What several providers have in common.

export const healthPath = z
  .string()
  .regex(/^\/[\x21-\x7e]{0,200}$/, 'must be a path that starts with /')
  .optional();
const LOWEST_PORT = 1;
const HIGHEST_PORT = 65_535;
export const port = z.int().min(LOWEST_PORT).max(HIGHEST_PORT);

/** What the kernel can hand to a process: it ends every string at a NUL. */
export const argument = z.string().refine((text) => !text.includes('\0'), 'must not contain a NUL character');
export const variables = z
  .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name'), argument)
  .optional();

/** Folders that a program may write in the sandbox, besides its working folder and its own. */
export const writable = z.array(argument.startsWith('/', 'must be an absolute path')).max(64).optional();

/** `false`: it runs without a sandbox, whatever the router's own setting says short of `required`. */
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
  about: 'run it without a sandbox; it sees and writes what the router can',
  member: 'sandbox',
  kind: 'off',
};

/** `--dir` and its other name. */
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
export const wallsFact = ({ sandbox }: ShownSpec): Fact => [
  'walls',
  sandbox === false ? 'none (--no-sandbox)' : undefined,
];
export const writableFact = ({ writable }: ShownSpec): Fact => ['writable', listed(writable)];
export const variableFacts = ({ env }: ShownSpec): Fact[] =>
  Object.entries(env ?? {}).map(([name, value]) => [`env ${name}`, String(value)]);
