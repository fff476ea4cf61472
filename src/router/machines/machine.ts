/** A machine: where a user's agent runs and how it is started. Its states and their transitions; pure. */
import { isAbsolute } from 'node:path';
import type { Budget } from '../../wire/budget.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { MachineState } from '../../wire/machine.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Spending } from '../../wire/usage.ts';
import { descriptorOf, shownSpec, specOfTombstone, type Target } from '../providers/descriptors.ts';
import { HIDDEN, hiddenMember } from '../providers/redaction.ts';
import type { MachinePut, MachineView } from './machine-schema.ts';

type MachineBase = {
  userId: string;
  state: MachineState;
  idleSeconds: number | null;
  /** The budget of wakes; `null` when the router's own setting applies. */
  budget: Budget | null;
  /** The bearer token that the daemon expects; empty after the machine was deleted. */
  token: string;
  /** Epoch milliseconds. */
  createdAt: number;
  updatedAt: number;
};

export type CommandMachine = MachineBase & Extract<Target, { provider: 'command' }>;
/** A machine with a daemon that speaks `/chat`; a provider starts it. */
export type DaemonMachine = MachineBase & Exclude<Target, { provider: 'command' }>;
export type Machine = DaemonMachine | CommandMachine;

export function hasDaemon(machine: Machine): machine is DaemonMachine {
  return descriptorOf(machine.provider).create !== undefined;
}

/** The folder in which commands for a machine of this computer work; `undefined` without one. */
export function folderOfCommands({ provider, spec }: Machine): string | undefined {
  if (provider === 'command') return spec.cwd;
  if (provider !== 'process') return undefined;
  const workspace = spec.env?.NEO_WORKSPACE;
  return spec.cwd ?? (workspace !== undefined && isAbsolute(workspace) ? workspace : undefined);
}

function unchanged(one: Machine, other: Machine): boolean {
  return JSON.stringify({ ...one, updatedAt: 0 }) === JSON.stringify({ ...other, updatedAt: 0 });
}

function refuseHidden(body: MachinePut): void {
  const member = hiddenMember(body.spec);
  if (member === undefined) return;
  const message = `${member} must be the value itself; ${HIDDEN} is what the router shows instead of it`;
  throw new ReveilleError('invalid_request', message);
}

/** The identity of a target: the part that names the program or address that gets the token. */
function identityOf({ provider, spec }: Target): readonly unknown[] {
  const members: Readonly<Record<string, unknown>> = spec;
  return [provider, ...descriptorOf(provider).identity.map((name) => members[name])];
}

/** Whether two targets are different programs or addresses. Arguments, variables and limits do not matter. */
function isElsewhere(one: Target, other: Target): boolean {
  return JSON.stringify(identityOf(one)) !== JSON.stringify(identityOf(other));
}

/**
 * The machine after a PUT. Equal bodies do not change it. A suspended machine stays suspended; a deleted one is created
 * again. Another program or address gets a new token, because it must not learn the earlier one. A body without a budget
 * keeps that of the user, also of a deleted machine: a limit must not end with a change of what it limits.
 *
 * @param mintToken creates a token when neither the body nor the kept machine has one
 * @throws ReveilleError `conflict` when the body requests a state that only `restore` may set
 */
export function putMachine(
  current: Machine | undefined,
  userId: string,
  body: MachinePut,
  now: number,
  mintToken: () => string,
): Machine {
  refuseHidden(body);
  const before = current?.state === 'deleted' ? undefined : current;
  if (before?.state === 'suspended' && body.state !== undefined) {
    const message = `the machine of ${userId} is suspended; restore it before its state is set to ${body.state}`;
    throw new ReveilleError('conflict', message);
  }
  const { provider, spec } = body;
  const target = { provider, spec } as Target;
  const kept = before && !isElsewhere(before, target) ? before.token : undefined;
  const after = {
    userId,
    state: before?.state === 'suspended' ? 'suspended' : (body.state ?? 'active'),
    idleSeconds: body.idle_seconds ?? null,
    budget: body.budget ?? current?.budget ?? null,
    token: body.token ?? kept ?? mintToken(),
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
    ...target,
  } satisfies Machine;
  return before && unchanged(before, after) ? before : after;
}

/** Whether two machines start or reach different things. Limits and idle time do not matter. */
export function startsOtherwise(one: Machine, other: Machine): boolean {
  const startedParts = ({ provider, spec, token, state }: Machine) => JSON.stringify({ provider, spec, token, state });
  return startedParts(one) !== startedParts(other);
}

/**
 * Changes the budget of a machine, and no other member.
 *
 * @param budget `null` applies the router's own setting
 * @throws ReveilleError `conflict` when the machine is deleted
 */
export function withBudget(machine: Machine, budget: Budget | null, now: number): Machine {
  if (machine.state === 'deleted')
    throw new ReveilleError('conflict', `the machine of ${machine.userId} is deleted; register it again with PUT`);
  const after = { ...machine, budget, updatedAt: now };
  return unchanged(machine, after) ? machine : after;
}

/** @throws ReveilleError `conflict` when the machine is deleted */
export function rotateToken(machine: Machine, now: number, mintToken: () => string): Machine {
  if (machine.state !== 'deleted') return { ...machine, token: mintToken(), updatedAt: now };
  throw new ReveilleError(
    'conflict',
    `the machine of ${machine.userId} is deleted, so it has no token; register it again with PUT`,
  );
}

/** @throws ReveilleError `conflict` when the machine is deleted */
export function suspendMachine(machine: Machine, now: number): Machine {
  if (machine.state === 'suspended') return machine;
  if (machine.state !== 'deleted') return { ...machine, state: 'suspended', updatedAt: now };
  throw new ReveilleError('conflict', `the machine of ${machine.userId} is deleted, so it cannot be suspended`);
}

/** @throws ReveilleError `conflict` when the machine is deleted or provisioning */
export function restoreMachine(machine: Machine, now: number): Machine {
  switch (machine.state) {
    case 'active':
      return machine;
    case 'suspended':
      return { ...machine, state: 'active', updatedAt: now };
    case 'provisioning':
      throw new ReveilleError(
        'conflict',
        `the machine of ${machine.userId} is provisioning, not suspended; PUT it with state active when it is ready`,
      );
    case 'deleted':
      throw new ReveilleError(
        'conflict',
        `the machine of ${machine.userId} is deleted, so it cannot be restored; register it again with PUT`,
      );
  }
}

/** Makes a tombstone: it records that the machine existed, and has none of its secrets. */
export function deleteMachine(machine: Machine, now: number): Machine {
  if (machine.state === 'deleted') return machine;
  return { ...machine, state: 'deleted', token: '', updatedAt: now, spec: specOfTombstone(machine) } as Machine;
}

/**
 * The machine, if it may be woken.
 *
 * @param retryAfterSeconds the retry time for a machine that is being provisioned
 * @throws ReveilleError 404 when there is none, 410 when it is deleted, 451 when it is suspended, 503 while it is
 *   provisioned
 */
export function wakeable(machine: Machine | undefined, userId: string, retryAfterSeconds: number): Machine {
  switch (machine?.state) {
    case 'active':
      return machine;
    case undefined:
      throw noMachine(userId);
    case 'deleted':
      throw new ReveilleError('not_found', `the machine of ${userId} is deleted`, { status: 410 });
    case 'suspended':
      throw new ReveilleError(
        'forbidden',
        `the machine of ${userId} is suspended; restore it with: reveille machine restore ${userId}`,
        { status: 451 },
      );
    case 'provisioning':
      throw new ReveilleError('unavailable', `the machine of ${userId} is still being provisioned`, {
        retryAfterSeconds,
      });
  }
}

export function noMachine(userId: string): ReveilleError {
  return new ReveilleError('not_found', `there is no machine for ${userId}; register it with: reveille machine put`);
}

function budgetOf({ budget }: Machine, standard: Budget | undefined): Pick<MachineView, 'budget' | 'default_budget'> {
  if (budget !== null) return { budget };
  return standard === undefined ? {} : { default_budget: standard };
}

/**
 * The view of operators: without the token and without possible secrets of the specification.
 *
 * @param standard the budget of machines that have none of their own
 */
export function viewOf(
  machine: Machine,
  running: string | undefined,
  { standard, spending }: { standard?: Budget | undefined; spending?: Spending | undefined } = {},
): MachineView {
  return {
    user_id: machine.userId,
    provider: machine.provider,
    spec: shownSpec(machine),
    state: machine.state,
    ...(machine.idleSeconds === null ? {} : { idle_seconds: machine.idleSeconds }),
    ...budgetOf(machine, standard),
    ...(spending && { spending }),
    created_at: formatInstant(machine.createdAt),
    updated_at: formatInstant(machine.updatedAt),
    ...(running === undefined ? {} : { running }),
  };
}
