/** `reveille machine …`: machines, their budgets and their turns. */
import { formatDuration } from '../../kit/clock/duration.ts';
import { localTime } from '../../kit/clock/local-time.ts';
import { oneLine, printable } from '../../kit/text/hidden-characters.ts';
import type { MachinePutAnswer, MachineView } from '../../router/machines/machine-schema.ts';
import { descriptorOf } from '../../router/providers/descriptors.ts';
import { BREAKER_PAUSE_SECONDS, type Budget, spendingLimits } from '../../wire/budget.ts';
import { MACHINE_CHANGES_MAX, type MachineChangeList } from '../../wire/machine.ts';
import {
  MACHINE_TURN_STATUSES,
  MACHINE_TURNS_MAX,
  type MachineTurnList,
  type MachineTurnView,
} from '../../wire/machine-turn.ts';
import { spendingText, usageText } from '../../wire/usage.ts';
import { userOf } from '../access/chronos.ts';
import { routerClient } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { type BudgetFlags, budgetOf } from '../flags/budget-flags.ts';
import { choiceFlag, wholeNumberFlag } from '../flags/flags.ts';
import { machineOf, type PutFlags } from '../flags/machine-flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { counted, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import { facts, type Reader } from '../screens/render.ts';
import { existingMachine, isOwnNeo, putOwnNeo } from '../up/own-neo.ts';

/** Where a machine is, on one line. */
export function whereIs({ provider, spec }: MachineView): string {
  const [[, where]] = descriptorOf(provider).facts(spec);
  return oneLine(where ?? '');
}

/** Whether the machine runs: `awake`, `asleep`, `starting` or `stopping`. */
const runningText = ({ running }: MachineView) => (running === 'ready' ? 'awake' : running);

function renderMachine(machine: MachineView, look: Reader): string[] {
  const own = descriptorOf(machine.provider).facts(machine.spec);
  const idle = machine.idle_seconds === undefined ? undefined : `after ${machine.idle_seconds} s without work`;
  return [
    `Machine of ${look.paint('bold', machine.user_id)}`,
    ...facts(
      [
        ['provider', machine.provider],
        ['state', machine.state],
        ['right now', runningText(machine)],
        ...own.map(([label, value]) => [label, value === undefined ? undefined : oneLine(value)] as const),
        ['sleeps', idle],
        ['budget', budgetOfMachine(machine)],
        ['used in 24 hours', machine.spending && spendingText(machine.spending)],
        ['since', localTime(Date.parse(machine.created_at), look)],
        ['changed', localTime(Date.parse(machine.updated_at), look)],
      ],
      look,
    ),
  ];
}

/** Who needs the machine's secret. A program that runs once per wake needs none. */
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

export async function machinePut(context: CliContext, flags: PutFlags, given: string | undefined): Promise<void> {
  const { out } = context;
  const before =
    flags.provider === 'neo' ? undefined : await existingMachine(routerClient(context), userOf(context, given));
  const answer = await put(context, flags, given);
  const look = readerOf(context);
  const lines = renderMachine(answer, look);
  if (before && before.state !== 'deleted' && isOwnNeo(before))
    lines.push('', 'It replaces the local Neo; to go back: reveille machine put --provider neo');
  const { user_id: user } = answer;
  if (before?.updated_at === answer.updated_at)
    lines.push(
      '',
      `Nothing changed: the machine is registered like this already, and a running program continues. To restart it: reveille machine suspend ${user}; reveille machine restore ${user}`,
    );
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
  const machines = await routerClient(context).list();
  context.out.list(machines, () => renderMachines(machines, readerOf(context)));
}

function renderMachines(machines: readonly MachineView[], look: Reader): string[] {
  if (machines.length === 0) return ['No machines; register one with: reveille machine put'];
  const rows = machines.map((machine) => [
    machine.user_id,
    machine.running === undefined ? machine.state : `${machine.state}, ${runningText(machine)}`,
    // An address or a command identifies the provider.
    whereIs(machine),
  ]);
  return table(['USER', 'STATE', 'WHERE'], rows, look);
}

export async function machineShow(context: CliContext, given: string | undefined): Promise<void> {
  const machine = await routerClient(context).show(userOf(context, given));
  context.out.result(machine, renderMachine(machine, readerOf(context)));
}

const SAID = { suspend: 'Suspended', restore: 'Restored', remove: 'Deleted' } as const;
export type MachineChange = keyof typeof SAID;

export async function machineChange(context: CliContext, change: MachineChange, given: string): Promise<void> {
  const userId = userOf(context, given);
  const machine = await routerClient(context)[change](userId);
  context.out.result(machine, `${SAID[change]} the machine of ${machine.user_id}; it is ${machine.state}`);
}

export type TurnFlags = { conversation?: string; fire?: string; status?: string; limit?: string };

const outcomeOf = ({ reply, error, waits_for: waits }: MachineTurnView) => error ?? waits ?? reply ?? '';

function renderTurns({ turns, counts, next_cursor: more }: MachineTurnList, look: Reader): string[] {
  if (turns.length === 0)
    return ['No turns. This list has turns of agents without a daemon; for others: reveille alarm show <alarm-id>'];
  const rows = turns.map((turn) => [
    localTime(Date.parse(turn.accepted_at), look),
    turn.status,
    turn.conversation_id,
    oneLine(outcomeOf(turn)),
  ]);
  const summary = Object.entries(counts).map(([status, count]) => `${count} ${status}`);
  const older = more === undefined ? '' : '; older ones are not shown';
  const lines = table(['ACCEPTED', 'STATUS', 'CONVERSATION', 'OUTCOME'], rows, look);
  return [...lines, look.paint('dim', `${summary.join(', ')} in all${older}`)];
}

/** One turn with its whole text. */
function renderTurn(turn: MachineTurnView, look: Reader): string[] {
  const at = (instant: string | undefined) =>
    instant === undefined ? undefined : localTime(Date.parse(instant), look);
  const lines = facts(
    [
      ['status', turn.status],
      ['fire', turn.fire_id],
      ['conversation', turn.conversation_id],
      [`session of ${turn.preset}`, turn.session],
      ['accepted', at(turn.accepted_at)],
      ['began', at(turn.started_at)],
      ['over', at(turn.finished_at)],
      ['tried', turn.attempts > 1 ? `${turn.attempts} times` : undefined],
      ['waits for', turn.waits_for === undefined ? undefined : oneLine(turn.waits_for)],
      ['next try', at(turn.next_attempt_at)],
      ['used', usageText(turn.usage)],
      ['error', turn.error === undefined ? undefined : oneLine(turn.error)],
    ],
    look,
  );
  const reply = turn.reply === undefined ? [] : ['', ...printable(turn.reply).split('\n')];
  return [`Turn ${look.paint('bold', turn.id)}`, ...lines, ...reply];
}

export async function machineTurns(context: CliContext, flags: TurnFlags, given: string | undefined): Promise<void> {
  const status = choiceFlag('--status', flags.status, MACHINE_TURN_STATUSES);
  const limit = wholeNumberFlag('--limit', flags.limit, 1, MACHINE_TURNS_MAX);
  const { conversation, fire } = flags;
  const found = await routerClient(context).turns(userOf(context, given), {
    ...(conversation === undefined ? {} : { conversation_id: conversation }),
    ...(fire === undefined ? {} : { fire_id: fire }),
    ...(status === undefined ? {} : { status }),
    ...(limit === undefined ? {} : { limit: String(limit) }),
  });
  const look = readerOf(context);
  const [only] = fire === undefined ? [] : found.turns;
  context.out.list(found.texts, () => (only ? renderTurn(only, look) : renderTurns(found, look)));
}

export type SetBudgetFlags = BudgetFlags & { default?: boolean };

/** The budget of a machine as text; `undefined` without one. */
export function budgetOfMachine({ budget, default_budget: standard }: MachineView): string | undefined {
  if (budget) return budgetText(budget);
  return standard && `${budgetText(standard)} (the router's setting for all)`;
}

/** Sets the whole budget; without flags, shows it. */
export async function machineBudget(
  context: CliContext,
  flags: SetBudgetFlags,
  given: string | undefined,
): Promise<void> {
  const budget = budgetOf(flags);
  if (flags.default && budget !== undefined)
    throw new UsageError('--default excludes all other budget flags; omit it or them');
  const router = routerClient(context);
  const userId = userOf(context, given);
  const wanted = flags.default ? null : budget;
  const machine = wanted === undefined ? await router.show(userId) : await router.bound(userId, wanted);
  const words = budgetOfMachine(machine) ?? 'no limits';
  const used = machine.spending ? [`Used in 24 hours: ${spendingText(machine.spending)}`] : [];
  context.out.result(machine, [`Budget of ${machine.user_id}: ${words}`, ...used]);
}

export type HistoryFlags = { limit?: string };

const BY = { admin: 'an operator', router: 'the router', person: 'its user' } as const;

function renderChanges({ changes, next_cursor: more }: MachineChangeList, look: Reader): string[] {
  if (changes.length === 0) return ['No changes on record'];
  const rows = changes.map(({ at, actor, action, fields, state, reason }) => [
    localTime(Date.parse(at), look),
    BY[actor],
    oneLine(action),
    state,
    oneLine(reason === undefined ? fields.join(', ') : `${fields.join(', ')} (${reason})`),
  ]);
  const foot = more === undefined ? [] : [look.paint('dim', 'older ones are not shown; --limit shows more')];
  return [...table(['WHEN', 'WHO', 'DID', 'STATE AFTER', 'WHAT CHANGED'], rows, look), ...foot];
}

export async function machineHistory(
  context: CliContext,
  flags: HistoryFlags,
  given: string | undefined,
): Promise<void> {
  const limit = wholeNumberFlag('--limit', flags.limit, 1, MACHINE_CHANGES_MAX);
  const found = await routerClient(context).changes(userOf(context, given), limit);
  context.out.list(found.changes, () => renderChanges(found, readerOf(context)));
}

/** `a, b and c`. */
const listed = (phrases: readonly string[]) =>
  phrases.length < 3 ? phrases.join(' and ') : `${phrases.slice(0, -1).join(', ')} and ${phrases.at(-1)}`;

/** `at most 10 wakes an hour, 50 a day; …`; `no limits` for a budget without any. */
export function budgetText(budget: Budget): string {
  const { wakes_per_hour: hour, wakes_per_day: day, min_gap_seconds: gap, quiet, breaker } = budget;
  const most = [
    ...(hour === undefined ? [] : [`${counted(hour, 'wake')} an hour`]),
    ...(day === undefined ? [] : [`${counted(day, 'wake')} a day`]),
    ...spendingLimits(budget),
  ];
  const parts: string[] = [];
  if (most.length > 0) parts.push(`at most ${listed(most)}`);
  if (gap !== undefined) parts.push(`${formatDuration(gap * 1000)} between two wakes`);
  if (quiet) {
    const days = quiet.days ? ` beginning on ${quiet.days.join(', ')}` : '';
    parts.push(`quiet from ${quiet.from} to ${quiet.to} ${quiet.timezone}${days}`);
  }
  if (breaker) {
    const pause = formatDuration((breaker.pause_seconds ?? BREAKER_PAUSE_SECONDS) * 1000);
    parts.push(`a pause of ${pause} and more after ${counted(breaker.failures, 'failed start')} in a row`);
  }
  return parts.length === 0 ? 'no limits' : parts.join('; ');
}
