/** `machine put`: the machine in a command line. Each provider's descriptor lists its flags. */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { type MachinePut, machinePutSchema } from '../../router/machines/machine-schema.ts';
import { presetNameSchema } from '../../router/providers/command.ts';
import type { Descriptor, Flag, FlagKind, FlagValue } from '../../router/providers/descriptor.ts';
import { DAEMON_PROVIDERS, descriptorOf, isSecretIn, PROVIDERS } from '../../router/providers/descriptors.ts';
import { parseOrThrow, showValue } from '../../wire/validate.ts';
import { BUDGET_FLAG_NAMES, type BudgetFlags, budgetOf } from './budget-flags.ts';
import { choiceFlag, wholeNumberFlag } from './flags.ts';
import { UsageError } from './usage-error.ts';

/** `command` has the words after `--`; the other flags come from the descriptors. */
export type PutFlags = BudgetFlags & {
  provider: string;
  idleSeconds?: string;
  state?: string;
  token?: string;
  readonly [flag: string]: FlagValue;
};

type Spec = Record<string, unknown>;

const LISTED: readonly Descriptor[] = PROVIDERS.map(({ name }) => descriptorOf(name));
const PRESETS = descriptorOf('command');

/** The parser's name of a flag: `--memory-mb <n>` is `memoryMb`, `--no-sandbox` is `sandbox`. */
function keyOf({ usage, kind }: Flag): string {
  if (kind === 'words') return 'command';
  const [name = ''] = usage.replace(/^--(no-)?/, '').split(' ');
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

const wordOf = ({ usage, kind }: Flag) => (kind === 'words' ? 'a command after --' : usage.split(' ')[0]!);

const isGiven = (flags: PutFlags, flag: Flag) => {
  const value = flags[keyOf(flag)];
  // Commander sets the positive value of `--no-…` by default.
  if (flag.kind === 'off') return value === false;
  return flag.kind === 'words' ? Array.isArray(value) && value.length > 0 : value !== undefined;
};

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

function environmentOf(assignments: readonly string[]): Record<string, string> {
  const pairs = assignments.map((assignment) => {
    const at = assignment.indexOf('=');
    // A value may be a secret: the error repeats only the name.
    if (at < 1) throw new UsageError('--env must look like NAME=value; write it once for each variable');
    const name = assignment.slice(0, at);
    if (!VARIABLE.test(name))
      throw new UsageError(`--env ${showValue(name)} must begin with a variable name, of A-Z a-z 0-9 _`);
    return [name, assignment.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

/** The user of a process: by a name on this computer, or by numbers. */
function userOf(flag: string, runAs: string): Spec {
  const numbers = /^(\d{1,10}):(\d{1,10})$/.exec(runAs);
  if (numbers) return { uid: Number(numbers[1]), gid: Number(numbers[2]) };
  const ask = (option: string) => {
    const said = spawnSync('id', [option, '--', runAs], { encoding: 'utf8' });
    if (said.status === 0 && /^\d+\n$/.test(said.stdout)) return Number(said.stdout);
    throw new UsageError(
      `${flag} must name a user of this computer, or be uid:gid such as 1001:1001 (got ${showValue(runAs)})`,
    );
  };
  return { uid: ask('-u'), gid: ask('-g') };
}

/** The value of a given flag, in the form of its field. */
function memberOf(kind: FlagKind, flag: string, given: FlagValue, here: string): unknown {
  if (typeof kind === 'object') {
    if ('whole' in kind) return wholeNumberFlag(flag, given as string, ...kind.whole);
    if ('choice' in kind) return choiceFlag(flag, given as string, kind.choice);
    return resolve(here, given as string);
  }
  switch (kind) {
    case 'text':
    case 'switch':
    case 'off':
    case 'words':
      return given;
    case 'variables':
      return environmentOf(given as readonly string[]);
    case 'folders':
      return (given as readonly string[]).map((path) => resolve(here, path));
    case 'program':
      return (given as string).includes('/') ? resolve(here, given as string) : given;
    case 'user':
      return userOf(flag, given as string);
  }
}

/** The value of an omitted flag. */
function withoutFlag(flag: Flag, flags: PutFlags, provider: string, here: string): unknown {
  const { kind, needed } = flag;
  if (needed !== undefined)
    throw new UsageError(
      kind === 'words' ? needed : `${wordOf(flag)} is missing; --provider ${provider} needs ${needed}`,
    );
  const folder = typeof kind === 'object' && 'folder' in kind ? kind.folder(flags) : undefined;
  return folder === undefined ? undefined : resolve(here, folder);
}

/** @throws UsageError naming a flag that is missing, duplicate or invalid */
function specOf({ flags: own }: Descriptor, flags: PutFlags, here: string): Spec {
  const spec: Spec = {};
  for (const member of new Set(own.map((flag) => flag.member))) {
    const setters = own.filter((flag) => flag.member === member);
    const [given, second] = setters.filter((flag) => isGiven(flags, flag));
    if (given && second) throw new UsageError(`${wordOf(given)} and ${wordOf(second)} are the same; omit one of them`);
    const value = given
      ? memberOf(given.kind, wordOf(given), flags[keyOf(given)], here)
      : withoutFlag(setters[0]!, flags, flags.provider, here);
    if (value === undefined) continue;
    const [group, name] = member.split('.') as [string, string?];
    if (name === undefined) spec[group] = value;
    else spec[group] = { ...(spec[group] as Spec | undefined), [name]: value };
  }
  return spec;
}

const COMMON: readonly string[] = ['provider', 'idleSeconds', 'state', 'token', ...BUDGET_FLAG_NAMES];

/** The providers of each flag, as text; presets come last. */
const HOMES = (() => {
  const homes = new Map<string, { flag: Flag; providers: string[] }>();
  for (const { name, label = name, flags } of [...DAEMON_PROVIDERS, PRESETS]) {
    for (const flag of flags) {
      const home = homes.get(keyOf(flag)) ?? { flag, providers: [] };
      home.providers.push(label);
      homes.set(keyOf(flag), home);
    }
  }
  return homes;
})();

/** @throws UsageError naming a flag that the provider does not have */
export function refuseForeign(flags: PutFlags, provider: string, own: readonly Flag[]): void {
  const known = new Set([...COMMON, ...own.map(keyOf)]);
  for (const [key, { flag, providers }] of HOMES) {
    if (known.has(key) || !isGiven(flags, flag)) continue;
    const home = providers.length === 1 ? providers[0] : `${providers.slice(0, -1).join(', ')} or ${providers.at(-1)}`;
    throw new UsageError(`${wordOf(flag)} needs --provider ${home}; omit it with --provider ${provider}`);
  }
}

/** A name that is not a provider is a preset. */
function descriptorFor(provider: string): Descriptor {
  const named = DAEMON_PROVIDERS.find(({ name }) => name === provider);
  if (named) return named;
  if (provider !== PRESETS.name && presetNameSchema.safeParse(provider).success) return PRESETS;
  const right = `${DAEMON_PROVIDERS.map(({ name }) => name).join(', ')}, neo, or the name of a preset such as claude`;
  throw new UsageError(`--provider must be one of ${right} (got ${showValue(provider)})`);
}

/**
 * The machine in a command line.
 *
 * @param here the current folder: the base of relative paths, and the working folder of the program
 * @throws UsageError naming the missing or unsuitable flag
 * @throws ReveilleError `invalid_request` when the machine's schema rejects a value
 */
export function machineOf(flags: PutFlags, here: string): MachinePut {
  const found = descriptorFor(flags.provider);
  refuseForeign(flags, flags.provider, found.flags);
  const preset = found === PRESETS ? { preset: flags.provider } : {};
  const machine = {
    provider: found.name,
    spec: { ...preset, ...specOf(found, flags, here) },
    idle_seconds: wholeNumberFlag('--idle-seconds', flags.idleSeconds, 1, 2_592_000),
    state: choiceFlag('--state', flags.state, ['active', 'provisioning'] as const),
    token: flags.token,
    budget: budgetOf(flags),
  };
  // `undefined` fields are omitted, so that the shown machine is the sent one.
  const body: unknown = JSON.parse(JSON.stringify(machine));
  return parseOrThrow(machinePutSchema, body, isSecretIn(body));
}

/** The flags of all providers for the help; flags with the same name are one. */
export function helpOfFlags(): { usage: string; about: string; repeated: boolean }[] {
  const lines = new Map<string, { usage: string; repeated: boolean; homes: Map<string, string[]> }>();
  for (const { name, create, flags } of LISTED) {
    for (const { usage, about, kind } of flags) {
      if (kind === 'words') continue;
      const line = lines.get(usage) ?? {
        usage,
        repeated: kind === 'variables' || kind === 'folders',
        homes: new Map<string, string[]>(),
      };
      line.homes.set(about, [...(line.homes.get(about) ?? []), create ? name : 'agents']);
      lines.set(usage, line);
    }
  }
  return [...lines.values()].map(({ usage, repeated, homes }) => {
    const about = [...homes].map(([words, names]) => `${names.join(', ')}: ${words}`).join('; ');
    return { usage, about, repeated };
  });
}

/** The allowed values of `--provider`, for the help. */
export function helpOfProviders(): string {
  const names = new Map<string, string[]>();
  for (const { name, about } of DAEMON_PROVIDERS) names.set(about, [...(names.get(about) ?? []), name]);
  const daemons = [...names].map(([about, those]) => `${those.join(', ')}: ${about}`);
  return `${daemons.join('; ')}; neo: the local Neo again; or ${PRESETS.about}`;
}
