/** `reveille machine`: where agents live, as the router keeps it. */
import { oneLine } from '../../kit/text/hidden-characters.ts';
import type { MachinePutAnswer, MachineView } from '../../router/machines/machine-schema.ts';
import { descriptorOf } from '../../router/providers/descriptors.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { routerClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { machineOf, type PutFlags } from '../flags/machine-flags.ts';
import { userOf } from '../flags/machine-user.ts';
import { columns } from '../screens/columns.ts';
import { localTime } from '../screens/local-time.ts';
import { lookOf } from '../screens/look.ts';
import { facts, type Look } from '../screens/render.ts';
import { isOwnNeo, putOwnNeo } from '../up/own-neo.ts';
import { budgetOfMachine } from './machine-budget.ts';

/** What there is to know about where a machine is, on one line. */
export function whereIs({ provider, spec }: MachineView): string {
  const [[, where]] = descriptorOf(provider).facts(spec);
  return oneLine(where ?? '');
}

function renderMachine(machine: MachineView, look: Look): string[] {
  const own = descriptorOf(machine.provider).facts(machine.spec);
  const idle = machine.idle_seconds === undefined ? undefined : `after ${machine.idle_seconds} s without work`;
  return [
    `Machine of ${look.paint('bold', machine.user_id)}`,
    ...facts(
      [
        ['provider', machine.provider],
        ['state', machine.state],
        ['right now', machine.running],
        ...own.map(([label, value]) => [label, value === undefined ? undefined : oneLine(value)] as const),
        ['sleeps', idle],
        ['budget', budgetOfMachine(machine)],
        ['since', localTime(Date.parse(machine.created_at), look)],
        ['changed', localTime(Date.parse(machine.updated_at), look)],
      ],
      look,
    ),
  ];
}

/** Who has to know the machine's secret; a program that is run for each wake does not. */
function holderOf({ provider, spec, token }: MachinePutAnswer): string | undefined {
  if (provider !== 'command') return 'The daemon must expect this bearer token';
  if (token?.startsWith('whsec_')) return 'The receiver checks signatures with this secret';
  return spec.url === undefined ? undefined : 'The agent must expect this token';
}

function put(context: CliContext, flags: PutFlags, given: string | undefined): Promise<MachinePutAnswer> {
  if (flags.provider === 'neo') return putOwnNeo(context, routerClient(context), flags, given);
  const machine = machineOf(flags, context.process.cwd());
  return routerClient(context).put(userOf(context, given), machine);
}

/** The machine as it is before a change; `undefined` when there is none. */
async function existing(context: CliContext, given: string | undefined): Promise<MachineView | undefined> {
  try {
    return await routerClient(context).show(userOf(context, given));
  } catch (error) {
    if (error instanceof ReveilleError && error.code === 'not_found') return undefined;
    throw error;
  }
}

export async function machinePut(context: CliContext, flags: PutFlags, given: string | undefined): Promise<void> {
  const { out } = context;
  const before = flags.provider === 'neo' ? undefined : await existing(context, given);
  const answer = await put(context, flags, given);
  const look = lookOf(context);
  const lines = renderMachine(answer, look);
  if (before && before.state !== 'deleted' && isOwnNeo(before))
    lines.push('', 'It takes the place of the local Neo; to go back: reveille machine put --provider neo');
  const holder = holderOf(answer);
  if (answer.token !== undefined && holder !== undefined)
    lines.push('', `${holder}; it is not shown again:`, `  ${out.paint('bold', answer.token)}`);
  for (const warning of answer.warnings ?? []) lines.push('', `Not ready yet: ${oneLine(warning)}`);
  out.result(answer, lines);
}

export async function machineRotateToken(context: CliContext, given: string): Promise<void> {
  const { out } = context;
  const answer = await routerClient(context).rotateToken(userOf(context, given));
  const lines = [
    `The machine of ${answer.user_id} has a new token; it is not shown again:`,
    `  ${out.paint('bold', answer.token ?? '')}`,
  ];
  for (const warning of answer.warnings ?? []) lines.push('', `Do this now: ${warning}`);
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
    whereIs(machine),
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
