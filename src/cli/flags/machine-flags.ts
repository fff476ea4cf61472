/** `machine put`: the machine that a command line describes. */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { MACHINE_PROVIDERS, type MachinePut, machinePutSchema, presetNameSchema } from '../../wire/machine.ts';
import { parseOrThrow, showValue } from '../../wire/validate.ts';
import { BUDGET_FLAG_NAMES, type BudgetFlags, budgetOf } from './budget-flags.ts';
import { choiceFlag, wholeNumberFlag } from './flags.ts';
import { UsageError } from './usage-error.ts';

export type PutFlags = BudgetFlags & {
  provider: string;
  url?: string;
  /** The words after `--`. */
  command?: string[];
  cwd?: string;
  /** The same as `cwd`. */
  dir?: string;
  env?: string[];
  port?: string;
  foreignListener?: boolean;
  healthPath?: string;
  bin?: string;
  timeoutSeconds?: string;
  allowPrivate?: boolean;
  container?: string;
  socket?: string;
  app?: string;
  machineId?: string;
  leaseNonce?: string;
  sleep?: string;
  memoryMb?: string;
  processes?: string;
  openFiles?: string;
  niceness?: string;
  runAs?: string;
  /** Commander's word for what `--no-sandbox` takes away. */
  sandbox?: boolean;
  idleSeconds?: string;
  state?: string;
  token?: string;
};

type Spec = Record<string, unknown>;

/** How each provider reads its flags, and which are its own. Everything that is none of them is the name of a preset. */
type Maker = { own: readonly (keyof PutFlags)[]; spec: (flags: PutFlags, here: string) => Spec };

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

function environmentOf(assignments: readonly string[] | undefined): Record<string, string> | undefined {
  if (assignments === undefined) return undefined;
  const pairs = assignments.map((assignment) => {
    const at = assignment.indexOf('=');
    // A value may be a secret: only the name is repeated.
    if (at < 1) throw new UsageError('--env must look like NAME=value; write it once for each variable');
    const name = assignment.slice(0, at);
    if (!VARIABLE.test(name))
      throw new UsageError(`--env ${showValue(name)} must begin with a variable name, of A-Z a-z 0-9 _`);
    return [name, assignment.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

const portOf = ({ port }: PutFlags) => wholeNumberFlag('--port', port, 1, 65_535);

/** What a process may use; nothing where nothing is limited. */
function limitsOf({ memoryMb, processes, openFiles, niceness }: PutFlags): Spec | undefined {
  const limits = {
    memory_mb: wholeNumberFlag('--memory-mb', memoryMb, 16, 1_048_576),
    processes: wholeNumberFlag('--processes', processes, 1, 100_000),
    open_files: wholeNumberFlag('--open-files', openFiles, 16, 1_048_576),
    niceness: wholeNumberFlag('--niceness', niceness, 0, 19),
  };
  return Object.values(limits).some((limit) => limit !== undefined) ? limits : undefined;
}

/** The user that a process is to run as: by name, as this computer knows it, or by numbers. */
function runAsOf({ runAs }: PutFlags): Spec | undefined {
  if (runAs === undefined) return undefined;
  const numbers = /^(\d{1,10}):(\d{1,10})$/.exec(runAs);
  if (numbers) return { uid: Number(numbers[1]), gid: Number(numbers[2]) };
  const ask = (flag: string) => {
    const said = spawnSync('id', [flag, '--', runAs], { encoding: 'utf8' });
    if (said.status === 0 && /^\d+\n$/.test(said.stdout)) return Number(said.stdout);
    throw new UsageError(
      `--run-as must name a user of this computer, or be uid:gid such as 1001:1001 (got ${showValue(runAs)})`,
    );
  };
  return { uid: ask('-u'), gid: ask('-g') };
}

function folderOf({ cwd, dir }: PutFlags): string | undefined {
  if (cwd !== undefined && dir !== undefined)
    throw new UsageError('--cwd and --dir are the same; leave one of them out');
  return cwd ?? dir;
}

function needed(value: string | undefined, flag: string, provider: string, what: string): string {
  if (value !== undefined) return value;
  throw new UsageError(`${flag} is missing; --provider ${provider} needs ${what}`);
}

const MAKERS: Readonly<Record<'http' | 'process' | 'docker' | 'fly', Maker>> = {
  http: {
    own: ['url', 'healthPath'],
    spec: ({ url, healthPath }) => ({
      url: needed(url, '--url', 'http', 'the address of the daemon'),
      health_path: healthPath,
    }),
  },
  process: {
    own: [
      ...(['command', 'cwd', 'dir', 'env', 'port', 'foreignListener', 'healthPath'] as const),
      ...(['memoryMb', 'processes', 'openFiles', 'niceness', 'runAs', 'sandbox'] as const),
    ],
    spec(flags, here) {
      const { command = [] } = flags;
      if (command.length === 0)
        throw new UsageError(
          'the command is missing; write it after two dashes: --provider process -- node my-agent.js',
        );
      const cwd = resolve(here, folderOf(flags) ?? '.');
      const env = environmentOf(flags.env);
      const { foreignListener: foreign_listener, healthPath: health_path } = flags;
      return {
        ...{ command, cwd, env, port: portOf(flags), foreign_listener, health_path, limits: limitsOf(flags) },
        ...{ run_as: runAsOf(flags), sandbox: flags.sandbox === false ? false : undefined },
      };
    },
  },
  docker: {
    own: ['container', 'socket', 'port', 'healthPath', 'sleep'],
    spec(flags) {
      const container = needed(flags.container, '--container', 'docker', 'the name or id of the container');
      const port = needed(flags.port, '--port', 'docker', 'the port on which the daemon listens in the container');
      const sleep = choiceFlag('--sleep', flags.sleep, ['stop', 'pause'] as const);
      const { socket, healthPath: health_path } = flags;
      return { container, port: portOf({ ...flags, port }), socket, sleep, health_path };
    },
  },
  fly: {
    own: ['app', 'machineId', 'port', 'healthPath', 'sleep', 'leaseNonce'],
    spec(flags) {
      const app = needed(flags.app, '--app', 'fly', 'the name of the Fly app');
      const machine_id = needed(flags.machineId, '--machine-id', 'fly', 'the id of the Fly machine');
      const sleep = choiceFlag('--sleep', flags.sleep, ['suspend', 'stop'] as const);
      const { leaseNonce: lease_nonce, healthPath: health_path } = flags;
      return { app, machine_id, port: portOf(flags), sleep, lease_nonce, health_path };
    },
  },
};

const presetMaker: Maker = {
  own: ['command', 'cwd', 'dir', 'env', 'bin', 'url', 'timeoutSeconds', 'allowPrivate', 'sandbox'],
  spec(flags, here) {
    // What has an address is no program, and works where it is told to.
    const folder = folderOf(flags) ?? (flags.url === undefined ? '.' : undefined);
    const { bin } = flags;
    return {
      preset: flags.provider,
      cwd: folder === undefined ? undefined : resolve(here, folder),
      bin: bin?.includes('/') ? resolve(here, bin) : bin,
      args: flags.command,
      env: environmentOf(flags.env),
      url: flags.url,
      timeout_seconds: wholeNumberFlag('--timeout-seconds', flags.timeoutSeconds, 1, 86_400),
      allow_private: flags.allowPrivate,
      sandbox: flags.sandbox === false ? false : undefined,
    };
  },
};

const COMMON: readonly (keyof PutFlags)[] = ['provider', 'idleSeconds', 'state', 'token', ...BUDGET_FLAG_NAMES];

const flagOf = (name: string) =>
  name === 'command'
    ? 'a command after --'
    : name === 'sandbox'
      ? '--no-sandbox'
      : `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** @throws UsageError naming a flag that does not go with the provider */
export function refuseForeign(flags: PutFlags, provider: string, { own }: Pick<Maker, 'own'>): void {
  const known = [...COMMON, ...own];
  const given = (Object.keys(flags) as (keyof PutFlags)[]).filter(
    (flag) => flag !== 'sandbox' || flags.sandbox === false,
  );
  const name = given.find((flag) => !known.includes(flag) && flag in FLAG_HOMES);
  if (name === undefined || flags[name] === undefined) return;
  throw new UsageError(
    `${flagOf(name)} goes only with --provider ${FLAG_HOMES[name]}; leave it out with --provider ${provider}`,
  );
}

/** With which providers each flag goes, in words. */
const FLAG_HOMES = (() => {
  const homes = new Map<string, string[]>();
  for (const [provider, { own }] of [...Object.entries(MAKERS), ['a preset', presetMaker] as const])
    for (const flag of own) homes.set(flag, [...(homes.get(flag) ?? []), provider]);
  return Object.fromEntries([...homes].map(([flag, providers]) => [flag, wordsFor(providers)]));
})();

function wordsFor(providers: readonly string[]): string {
  return providers.length === 1 ? providers[0]! : `${providers.slice(0, -1).join(', ')} or ${providers.at(-1)}`;
}

function makerOf(provider: string): { provider: string; maker: Maker } {
  if (provider in MAKERS) return { provider, maker: MAKERS[provider as keyof typeof MAKERS] };
  if (!(MACHINE_PROVIDERS as readonly string[]).includes(provider) && presetNameSchema.safeParse(provider).success)
    return { provider: 'command', maker: presetMaker };
  const right = `${Object.keys(MAKERS).join(', ')}, neo, or the name of a preset such as claude`;
  throw new UsageError(`--provider must be one of ${right} (got ${showValue(provider)})`);
}

/**
 * The machine that a command line describes.
 *
 * @param here the folder in which the command was typed: where its relative paths start, and where its program runs
 * @throws UsageError naming the flag that is missing or does not belong to the provider
 * @throws ReveilleError `invalid_request` for what the machine's own schema refuses
 */
export function machineOf(flags: PutFlags, here: string): MachinePut {
  const { provider, maker } = makerOf(flags.provider);
  refuseForeign(flags, flags.provider, maker);
  const machine = {
    provider,
    spec: maker.spec(flags, here),
    idle_seconds: wholeNumberFlag('--idle-seconds', flags.idleSeconds, 1, 2_592_000),
    state: choiceFlag('--state', flags.state, ['active', 'provisioning'] as const),
    token: flags.token,
    budget: budgetOf(flags),
  };
  // Members that are `undefined` are left out, so that what is shown is what is sent.
  const text = JSON.stringify(machine);
  return parseOrThrow(machinePutSchema, JSON.parse(text), ['token', 'spec.env', 'spec.lease_nonce']);
}
