/**
 * The user's access to their own machine besides chat: read it, read its changes, suspend and restore it. A machine
 * that an operator suspended stays suspended.
 */

import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { MachineChangeList } from '../../wire/machine.ts';
import type { AgentHost } from '../agent-host.ts';
import type { Budgets } from '../budget/budgets.ts';
import type { Fleet } from '../fleet.ts';
import { hasDaemon, type Machine, noMachine, restoreMachine, suspendMachine, viewOf } from '../machines/machine.ts';
import type { MachineView } from '../machines/machine-schema.ts';
import type { Registry } from '../machines/registry.ts';

export type OwnMachine = {
  /** @throws ReveilleError `not_found` for another user's machine, with the message for a missing one; as the others */
  show(userId: string): Promise<MachineView>;
  /** Its changes, newest first. */
  changes(userId: string, limit: number | undefined): Promise<MachineChangeList>;
  suspend(userId: string): Promise<MachineView>;
  /** @throws ReveilleError `forbidden` when another author has suspended it */
  restore(userId: string): Promise<MachineView>;
};

type Parts = {
  registry: Registry;
  fleet: Fleet;
  agents: AgentHost;
  budgets: Budgets;
  log: Logger;
};

const CHANGES = 50;

export function ownMachine({ registry, fleet, agents, budgets, log }: Parts, userId: string): OwnMachine {
  const ofOwn = <T>(asked: string, work: () => T): T => {
    if (asked !== userId) throw noMachine(asked);
    return work();
  };
  const running = (machine: Machine) => (hasDaemon(machine) ? fleet.running(machine) : agents.running(userId));
  const view = (machine: Machine): MachineView => {
    const view = viewOf(machine, running(machine), budgets.standard);
    // The user does not see where and how it runs.
    return { ...view, spec: {} as MachineView['spec'] };
  };
  const change = async (action: 'suspend' | 'restore', apply: (machine: Machine, now: number) => Machine) => {
    const machine = await registry.changeExisting(userId, apply, { actor: 'person', action });
    log.info({ user_id: userId, action, actor: 'person', state: machine.state }, 'machine changed');
    return machine;
  };
  const restored = (machine: Machine, now: number) => {
    const [last] = registry.changes
      .of(userId, { limit: CHANGES, before: undefined })
      .filter(({ change: { state, fields } }) => state === 'suspended' && fields.includes('state'));
    if (machine.state !== 'suspended' || last?.change.actor === 'person') return restoreMachine(machine, now);
    const message = 'your machine was suspended by the operator of this router; ask them to restore it';
    throw new ReveilleError('forbidden', message);
  };

  return {
    show: async (asked) => ofOwn(asked, () => view(registry.existing(userId))),
    changes: async (asked, limit = CHANGES) =>
      ofOwn(asked, () => ({
        changes: registry.changes.of(userId, { limit, before: undefined }).map(({ change: one }) => one),
      })),
    suspend: (asked) =>
      ofOwn(asked, async () => {
        const machine = await change('suspend', suspendMachine);
        await Promise.all([fleet.of(userId).stop(), agents.stop(userId, 'the machine was suspended')]);
        return view(machine);
      }),
    restore: (asked) =>
      ofOwn(asked, async () => {
        const machine = await change('restore', restored);
        budgets.machineChanged(userId);
        return view(machine);
      }),
  };
}
