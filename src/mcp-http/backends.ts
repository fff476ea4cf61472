/** The backends of a verified caller. The process that starts the router implements them, since it has the keys. */
import type { Chronometric } from '../chronometric/daemon.ts';
import type { ChronosClient } from '../chronos/client.ts';
import type { ExecutorClient } from '../executor/client.ts';
import type { RemoteCaller } from '../wire/remote-caller.ts';

/** The members of a caller that alarms need. */
export type AlarmCaller = Pick<RemoteCaller, 'userId' | 'clientId' | 'clientName'> & {
  /** The conversations that its alarms name are its own; by default chronosd finds out. */
  readonly ownsConversation?: boolean;
};

/** An endpoint exists if its backend is present. Each method throws ReveilleError for a user who lacks that backend. */
export type RemoteBackends = {
  /** The alarms of the caller's user. The caller's client is the author of new alarms. */
  readonly alarms?: (caller: AlarmCaller) => ChronosClient | Promise<ChronosClient>;
  /** The user's time zone, for a time in words that names no zone. */
  readonly zone?: (caller: RemoteCaller) => Promise<string | undefined>;
  readonly time?: (caller: RemoteCaller) => Promise<Chronometric>;
  readonly intents?: (caller: RemoteCaller) => IntentReader | Promise<IntentReader>;
  close?(): Promise<void>;
};

/** The read-only methods of the executor's client. */
export type IntentReader = Pick<ExecutorClient, 'list' | 'view' | 'gates' | 'events'>;
