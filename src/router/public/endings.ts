/** What ends with the access of a program: services and chronosd end what the program has set for a user. */
import type { Logger } from '../../kit/log/log.ts';
import { toReveilleError } from '../../wire/errors.ts';
import type { Ended, EndedCount } from '../../wire/person.ts';

/** Ends what a client has set for a user. @returns how many of each. It may be repeated. */
export type EndClient = (userId: string, clientId: string) => Promise<{ readonly [Name in EndedCount]?: number }>;

export type Endings = {
  /** Ends what clients have set. It never rejects: `left` says what could not be ended. */
  ofClients(userId: string, clientIds: readonly string[]): Promise<Ended>;
  /** The same for the programs that used personal tokens, and for clients that were connected with one. */
  ofCredentials(userId: string, credentials: readonly string[]): Promise<Ended>;
};

/** The client that a program of LangGraph is, by its personal token. One of A2A is the id of the token itself. */
export const langgraphClient = (credential: string): string => `langgraph ${credential}`;

export type EndingsOptions = {
  /** What ends, and the sentence if it cannot. */
  parts: readonly { readonly what: string; readonly end: EndClient }[];
  /** Ends the connections that a user made with a personal token. @returns the clients that have none left */
  disconnect: readonly ((userId: string, credential: string) => Promise<readonly string[]>)[];
  log: Logger;
};

export function createEndings({ parts, disconnect, log }: EndingsOptions): Endings {
  const attempt = async <T>(ended: Ended, what: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (thrown) {
      const { message } = toReveilleError(thrown);
      log.warn({ err: thrown }, `${what} of a revoked client could not be ended`);
      ended.left.push(`${what} could not be ended: ${message}`);
      return undefined;
    }
  };

  const addClients = async (ended: Ended, userId: string, clientIds: readonly string[]) => {
    for (const clientId of new Set(clientIds))
      for (const { what, end } of parts) {
        const counts = (await attempt(ended, what, () => end(userId, clientId))) ?? {};
        for (const [name, count = 0] of Object.entries(counts) as [EndedCount, number | undefined][])
          ended[name] += count;
      }
    return ended;
  };
  const nothing = (): Ended => ({
    ...{ alarms: 0, addresses: 0, subscriptions: 0, push_targets: 0, tasks: 0, left: [] },
  });

  return {
    ofClients: (userId, clientIds) => addClients(nothing(), userId, clientIds),
    async ofCredentials(userId, credentials) {
      const ended = nothing();
      const clients: string[] = [];
      for (const credential of credentials) {
        clients.push(credential, langgraphClient(credential));
        for (const end of disconnect)
          clients.push(...((await attempt(ended, 'its connections', () => end(userId, credential))) ?? []));
      }
      return addClients(ended, userId, clients);
    },
  };
}
