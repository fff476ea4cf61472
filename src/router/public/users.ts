/**
 * The part of the router that the console of a fleet uses: authentication, sessions, and each user's own machine. The
 * router holds no other rights of users: rights that follow from a user's token are stored with their session
 * (docs/internals/decisions/0019-people-and-the-console.md).
 */
import type { Transport } from '../../kit/http/plain-transport.ts';
import { rightsOf } from '../../kit/identity/person-rights.ts';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { MachineChangeList } from '../../wire/machine.ts';
import type { AgentHost } from '../agent-host.ts';
import type { Budgets } from '../budget/budgets.ts';
import type { Fleet } from '../fleet.ts';
import { hasDaemon, type Machine, noMachine, restoreMachine, suspendMachine, viewOf } from '../machines/machine.ts';
import type { MachineView } from '../machines/machine-schema.ts';
import type { Registry } from '../machines/registry.ts';
import type { StateSignal } from '../machines/state-signal.ts';
import type { ConnectingClient, ConsoleRows } from './console-rows.ts';
import type { Lockouts } from './lockout.ts';
import type { ExternalRights, Person, PersonTokens } from './person-tokens.ts';

// The user's access to their own machine besides chat: read it, read its changes, suspend and restore it. A machine
// that an operator suspended stays suspended.

type OwnMachine = {
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
    const view = viewOf(machine, running(machine), budgets.shownOf(machine));
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
    show: async (asked) =>
      ofOwn(asked, async () => {
        await budgets.refresh(registry.existing(userId));
        return view(registry.existing(userId));
      }),
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

export type Users = {
  /** As {@link HolderOf}. */
  authenticate(token: string, remoteAddress: string): ConnectingClient | undefined;
  /** Uses a code that was requested with a token. */
  redeem(code: string): Promise<ConnectingClient | undefined>;
  /** Whether a credential is still valid. */
  isValid(credential: string): boolean;
  /** The name that its user gave it. */
  credentialName(credential: string): string | undefined;
  /** The rights at other daemons that the operator has granted to a credential. */
  externalRights(credential: string): ExternalRights;
  readonly sessions: Pick<ConsoleRows, 'get' | 'put' | 'touch' | 'remove'>;
  machineOf(user: string): OwnMachine;
  /** Calls back when the user's machine, or its activity, may have changed. @returns ends it */
  onMachine(user: string, listener: () => void): () => void;
  /** Sends requests to the agent of a user; the address of a request is ignored. */
  transportTo(user: string): Transport;
};

/**
 * The user of a token; `undefined` for an invalid one, which is counted.
 *
 * @throws ReveilleError `rate_limited` while the address or the credential is locked
 */
export type HolderOf = (token: string, remoteAddress: string) => Person | undefined;

export function holdersOf(tokens: PersonTokens, lockouts: Lockouts, onWrongToken: () => void): HolderOf {
  return (token, remoteAddress) => {
    let tokenId: string | undefined;
    const person = tokens.holderOf(token, (id) => {
      tokenId = id;
      lockouts.check(remoteAddress, id);
    });
    if (person) lockouts.succeeded(remoteAddress, person.tokenId);
    else {
      onWrongToken();
      lockouts.failed(remoteAddress, tokenId);
    }
    return person;
  };
}

export type UsersOptions = {
  tokens: PersonTokens;
  holderOf: HolderOf;
  rows: ConsoleRows;
  machineOf: Users['machineOf'];
  states: StateSignal;
  connectionsTo: Users['transportTo'];
};

export function createUsers({ tokens, holderOf, rows, machineOf, states, connectionsTo }: UsersOptions): Users {
  const validOnly = (client: ConnectingClient | undefined): ConnectingClient | undefined =>
    client && tokens.isValid({ tokenId: client.credential }) ? client : undefined;
  return {
    authenticate(token, remoteAddress) {
      const person = holderOf(token, remoteAddress);
      return person && { user: person.userId, credential: person.tokenId, rights: rightsOf(token) };
    },
    redeem: async (code) => validOnly(await rows.redeem(code)),
    isValid: (credential) => tokens.isValid({ tokenId: credential }),
    credentialName: (credential) => tokens.nameOf(credential),
    externalRights: (credential) => tokens.externalRights(credential),
    sessions: rows,
    machineOf,
    onMachine: (user, listener) => states.listen(user, listener),
    transportTo: connectionsTo,
  };
}
