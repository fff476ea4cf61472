/** What a verified caller reaches. The process that starts the router implements it: it holds the keys and tokens. */
import type { Chronometric } from '../chronometric/daemon.ts';
import type { ChronosClient } from '../chronos/client.ts';
import type { ExecutorClient } from '../executor/client.ts';
import type { RemoteCaller } from '../wire/remote-caller.ts';

/** What alarms need to know of a caller. */
export type AlarmCaller = Pick<RemoteCaller, 'userId' | 'clientId' | 'clientName'>;

/** An endpoint whose part is missing does not exist. Each method throws ReveilleError for a user without that part. */
export type RemoteBackends = {
  /** The alarms of the caller's user. New ones have the caller's client as author. */
  readonly alarms?: (caller: AlarmCaller) => ChronosClient | Promise<ChronosClient>;
  /** The zone of the user, for a time in words that names none. */
  readonly zone?: (caller: RemoteCaller) => Promise<string | undefined>;
  readonly time?: (caller: RemoteCaller) => Promise<Chronometric>;
  readonly intents?: (caller: RemoteCaller) => IntentReader | Promise<IntentReader>;
  close?(): Promise<void>;
};

/** The reading part of the executor's client. */
export type IntentReader = Pick<ExecutorClient, 'list' | 'view' | 'gates' | 'events'>;
