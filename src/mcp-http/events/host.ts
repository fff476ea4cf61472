/** MCP Events at the MCP endpoints. It opens with the first request, or at the start if its database exists. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Server, ServerCapabilities } from '@modelcontextprotocol/server';
import type { Logger } from '../../kit/log/log.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { McpEndpoint, RemoteScope } from '../../wire/remote-caller.ts';
import type { Wake } from '../../wire/wake.ts';
import type { RemoteBackends } from '../backends.ts';
import type { RemoteMessage, ServerExtension } from '../servers.ts';
import { EVENTS_FILE, EXTENSION, METHODS } from './names.ts';
import type { EventsOptions, EventsService } from './service.ts';

const SCOPES: { readonly [Endpoint in McpEndpoint]?: RemoteScope } = {
  chronos: 'alarms:read',
  intents: 'intents:read',
};

export type EventsHostOptions = Omit<EventsOptions, 'backends' | 'log'> & {
  open: () => Promise<{ backends: RemoteBackends; log: Logger }>;
};

export class EventsHost {
  readonly #options: EventsHostOptions;
  #opened: Promise<EventsService> | undefined;
  #service: EventsService | undefined;
  #isClosed = false;

  constructor(options: EventsHostOptions) {
    this.#options = options;
  }

  /** Continues stored subscriptions. */
  start(): void {
    if (this.#exists()) this.#open().catch(() => {});
  }

  /**
   * Stores the event `alarm.due` if a client has subscribed to it.
   *
   * @returns whether it was stored for an active subscription: for a user without a machine, that is the delivery
   * @throws ReveilleError when it could not be stored
   */
  async offer(wake: Wake): Promise<boolean> {
    if (this.#opened === undefined && !this.#exists()) return false;
    return (await this.#open()).offer(wake);
  }

  /** Terminates the subscriptions of a client whose access was revoked. @returns how many there were */
  async endClient(userId: string, clientId: string): Promise<number> {
    if (this.#opened === undefined && !this.#exists()) return 0;
    return (await this.#open()).endClient(userId, clientId);
  }

  readonly extension: ServerExtension = {
    scopesOf: ({ method, endpoint }) => {
      const scope = SCOPES[endpoint];
      return scope !== undefined && isMethod(method) ? [scope] : undefined;
    },
    isStream: ({ method }) => method === 'events/stream',
    extend: (server, message) => this.#extend(server, message),
  };

  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#opened?.catch(() => undefined))?.close();
  }

  #extend(server: Server, message: RemoteMessage): void {
    if (SCOPES[message.endpoint] === undefined) return;
    // Clients of the drafts look for the capability; clients of the final version look for the extension.
    server.registerCapabilities({ events: {}, extensions: { [EXTENSION]: {} } } as ServerCapabilities);
    this.#service?.note(message);
    for (const name of METHODS) {
      server.setRequestHandler(name, { params: ANY }, async (params, context) => {
        const { eventsErrorOf, exhaustedOf } = await import('./protocol.ts');
        try {
          const { methods } = await this.#open();
          return await methods[name]!(params, message, context);
        } catch (thrown) {
          const error = eventsErrorOf(thrown);
          const exhausted = exhaustedOf(error);
          if (exhausted) message.exhausted = exhausted;
          throw error;
        }
      });
    }
  }

  #exists(): boolean {
    return existsSync(join(this.#options.dataDir, EVENTS_FILE));
  }

  #open(): Promise<EventsService> {
    if (this.#isClosed) throw new ReveilleError('unavailable', 'the router is shutting down');
    if (this.#opened) return this.#opened;
    const load = async () => {
      const { open, ...options } = this.#options;
      const [{ openEvents }, parts] = await Promise.all([import('./service.ts'), open()]);
      this.#service = openEvents({ ...options, ...parts });
      return this.#service;
    };
    const opened = load();
    this.#opened = opened;
    opened.catch(() => {
      this.#opened = undefined;
    });
    return opened;
  }
}

const isMethod = (method: string) => METHODS.some((known) => known === method);

/** The methods check their parameters themselves. */
const ANY = {
  '~standard': { version: 1, vendor: 'reveille', validate: (value: unknown) => ({ value: value ?? {} }) },
} as const;
