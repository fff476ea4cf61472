/** `reveille machine`: where agents live, as the router keeps it. */
import { resolve } from 'node:path';
import { labelSchema, ownerOf } from '../../wire/did.ts';
import { MACHINE_PROVIDERS, type MachinePut, type MachineView, machinePutSchema } from '../../wire/machine.ts';
import { parseOrThrow, showValue } from '../../wire/validate.ts';
import { labelOf } from '../chronos-access.ts';
import { columns, oneLine } from '../columns.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag, wholeNumberFlag } from '../flags.ts';
import { localTime } from '../local-time.ts';
import { lookOf } from '../look.ts';
import { facts, type Look } from '../render.ts';
import { routerClient } from '../router-access.ts';
import { UsageError } from '../usage-error.ts';

export type PutFlags = {
  provider: string;
  url?: string;
  /** The words after `--`. */
  command?: string[];
  cwd?: string;
  env?: string[];
  port?: string;
  healthPath?: string;
  idleSeconds?: string;
  state?: string;
  token?: string;
};

/** The user a command is about: the one named, or this machine's own. */
function userOf(context: CliContext, given: string | undefined): string {
  const label = given ?? labelOf(context);
  if (label === undefined) throw new UsageError('the user id is missing, and no identity has been made here; give one');
  if (!labelSchema.safeParse(label).success)
    throw new UsageError(`the user id must be 1 to 64 of A-Z a-z 0-9 . _ - (got ${JSON.stringify(label)})`);
  return ownerOf(label);
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

function environmentFlag(assignments: readonly string[] | undefined): Record<string, string> | undefined {
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

const HTTP_ONLY = ['url'] as const;
const PROCESS_ONLY = ['command', 'cwd', 'env', 'port'] as const;

function refuseForeign(flags: PutFlags, provider: string, foreign: readonly (keyof PutFlags)[], home: string): void {
  const name = foreign.find((flag) => flags[flag] !== undefined);
  if (name === undefined) return;
  const flag = name === 'command' ? 'a command after --' : `--${name}`;
  throw new UsageError(`${flag} goes only with --provider ${home}; leave it out with --provider ${provider}`);
}

/**
 * The machine that a command line describes.
 *
 * @param here the folder in which the command was typed: where its relative paths start, and where its program runs
 * @throws UsageError naming the flag that is missing or does not belong to the provider
 * @throws ReveilleError `invalid_request` for what the machine's own schema refuses
 */
export function machineOf(flags: PutFlags, here: string): MachinePut {
  const provider = choiceFlag('--provider', flags.provider, MACHINE_PROVIDERS)!;
  const common = {
    idle_seconds: wholeNumberFlag('--idle-seconds', flags.idleSeconds, 1, 2_592_000),
    state: choiceFlag('--state', flags.state, ['active', 'provisioning'] as const),
    token: flags.token,
  };
  const health = { health_path: flags.healthPath };
  if (provider === 'http') {
    refuseForeign(flags, provider, PROCESS_ONLY, 'process');
    if (flags.url === undefined)
      throw new UsageError('--url is missing; --provider http needs the address of the daemon');
    return checked({ provider, spec: { url: flags.url, ...health }, ...common });
  }
  refuseForeign(flags, provider, HTTP_ONLY, 'http');
  const { command = [] } = flags;
  if (command.length === 0)
    throw new UsageError('the command is missing; write it after two dashes: --provider process -- node my-agent.js');
  const spec = {
    command,
    cwd: resolve(here, flags.cwd ?? '.'),
    env: environmentFlag(flags.env),
    port: wholeNumberFlag('--port', flags.port, 1, 65_535),
    ...health,
  };
  return checked({ provider, spec, ...common });
}

/** Members that are `undefined` are left out, so that what is shown is what is sent. */
function checked(machine: Record<string, unknown>): MachinePut {
  const text = JSON.stringify(machine);
  return parseOrThrow(machinePutSchema, JSON.parse(text), ['token', 'spec.env']);
}

/** What there is to know about where a machine is, on one line. */
function whereOf({ provider, spec }: MachineView): string {
  const command = Array.isArray(spec.command) ? spec.command.map(String).join(' ') : '';
  return oneLine(provider === 'http' ? String(spec.url ?? '') : command);
}

function renderMachine(machine: MachineView, look: Look): string[] {
  const { spec } = machine;
  const env = typeof spec.env === 'object' && spec.env !== null ? Object.entries(spec.env) : [];
  const idle = machine.idle_seconds === undefined ? undefined : `after ${machine.idle_seconds} s without work`;
  return [
    `Machine of ${look.paint('bold', machine.user_id)}`,
    ...facts(
      [
        ['provider', machine.provider],
        ['state', machine.state],
        ['right now', machine.running],
        [machine.provider === 'http' ? 'url' : 'command', whereOf(machine)],
        ['folder', typeof spec.cwd === 'string' ? oneLine(spec.cwd) : undefined],
        ['port', typeof spec.port === 'number' ? String(spec.port) : undefined],
        ['health path', typeof spec.health_path === 'string' ? spec.health_path : undefined],
        ...env.map(([name, value]) => [`env ${name}`, oneLine(String(value))] as const),
        ['sleeps', idle],
        ['since', localTime(Date.parse(machine.created_at), look)],
        ['changed', localTime(Date.parse(machine.updated_at), look)],
      ],
      look,
    ),
  ];
}

export async function machinePut(context: CliContext, flags: PutFlags, given: string | undefined): Promise<void> {
  const machine = machineOf(flags, process.cwd());
  const userId = userOf(context, given);
  const { out } = context;
  const answer = await routerClient(context).put(userId, machine);
  const look = lookOf(context);
  const lines = renderMachine(answer, look);
  if (answer.token !== undefined)
    lines.push(
      '',
      'The daemon must expect this bearer token; it is not shown again:',
      `  ${out.paint('bold', answer.token)}`,
    );
  out.result(answer, lines);
}

export async function machineList(context: CliContext): Promise<void> {
  const { out } = context;
  const machines = await routerClient(context).list();
  if (out.json) {
    for (const machine of machines) out.result(machine, []);
    return;
  }
  if (machines.length === 0) return out.line('No machines; register one with: reveille machine put');
  const look = lookOf(context);
  const rows = machines.map((machine) => [
    machine.user_id,
    machine.running === undefined ? machine.state : `${machine.state}, ${machine.running}`,
    // An address or a command: that tells the provider, too.
    whereOf(machine),
  ]);
  const [heading, ...lines] = columns([['USER', 'STATE', 'WHERE'], ...rows], look.width);
  for (const line of [look.paint('dim', heading!), ...lines]) out.line(line);
}

export async function machineShow(context: CliContext, given: string | undefined): Promise<void> {
  const machine = await routerClient(context).show(userOf(context, given));
  context.out.result(machine, renderMachine(machine, lookOf(context)));
}

const SAID = { suspend: 'Suspended', restore: 'Restored', remove: 'Deleted' } as const;
export type MachineChange = keyof typeof SAID;

export async function machineChange(context: CliContext, change: MachineChange, given: string): Promise<void> {
  const userId = userOf(context, given);
  const machine = await routerClient(context)[change](userId);
  context.out.result(machine, `${SAID[change]} the machine of ${machine.user_id}; it is ${machine.state}`);
}
