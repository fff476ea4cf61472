/**
 * The part of the router that the console of a fleet uses: authentication, sessions, and each user's own machine. The
 * router holds no other rights of users: rights that follow from a user's token are stored with their session
 * (docs/internals/decisions/0019-people-and-the-console.md).
 */
import type { Transport } from '../../kit/http/plain-transport.ts';
import { rightsOf } from '../../kit/identity/person-rights.ts';
import type { StateSignal } from '../machines/state-signal.ts';
import type { ConnectingClient, ConsoleRows } from './console-rows.ts';
import type { Lockouts } from './lockout.ts';
import type { OwnMachine } from './own-machine.ts';
import type { ExternalRights, Person, PersonTokens } from './person-tokens.ts';

export type Users = {
  /** As {@link HolderOf}. */
  authenticate(token: string, remoteAddress: string): ConnectingClient | undefined;
  /** Uses a code that was requested with a token. */
  redeem(code: string): Promise<ConnectingClient | undefined>;
  /** Whether a credential is still valid. */
  isValid(credential: string): boolean;
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
    externalRights: (credential) => tokens.externalRights(credential),
    sessions: rows,
    machineOf,
    onMachine: (user, listener) => states.listen(user, listener),
    transportTo: connectionsTo,
  };
}
