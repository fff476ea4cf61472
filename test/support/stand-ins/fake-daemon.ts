/**
 * An agent's daemon as it runs inside a fake container or virtual machine: real HTTP on an address that comes and goes.
 */

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { reservePort } from '../ports.ts';

export type FakeDaemon = {
  /** Number of new starts; continuing a frozen daemon is not one. */
  readonly boots: number;
  readonly isUp: boolean;
  /** Its port; 0 before it first listens. */
  readonly port: number;
  /** The fire ids of accepted wakes. */
  readonly chats: string[];
  healthStatus: number;
  /** Starts it, or continues it after it was frozen. */
  up(): Promise<void>;
  /** It accepts connections and answers nothing, like a paused container. */
  freeze(): void;
  /** Ends it; `forget`: the next time is a new start. */
  down(forget?: boolean): Promise<void>;
};

export type FakeDaemonOptions = {
  host: string;
  /** Whether it listens on the same port after each start. */
  samePort: boolean;
};

export function createFakeDaemon({ host, samePort }: FakeDaemonOptions): FakeDaemon {
  let server: Server | undefined;
  let alive = false;
  let thawed = Promise.withResolvers<void>();
  thawed.resolve();
  const state = { boots: 0, port: 0 };
  const seen = new Set<string>();

  const listen = () =>
    createServer(async (request, response) => {
      request.resume();
      await thawed.promise;
      const answer = (status: number, data: object) =>
        response
          .writeHead(status, { 'content-type': 'application/json' })
          .end(JSON.stringify({ ok: status < 300, data }));
      if (request.url !== '/chat') return void answer(daemon.healthStatus, { status: 'ok', busy: false, queued: 0 });
      await once(request, 'end');
      const fire = String(request.headers['x-matrix-wake-fire']);
      const deduped = seen.has(fire);
      seen.add(fire);
      daemon.chats.push(fire);
      answer(deduped ? 200 : 202, { conversation_id: 'c', turn_id: `turn-${seen.size}`, deduped });
    });

  const daemon: FakeDaemon = {
    get boots() {
      return state.boots;
    },
    get isUp() {
      return server !== undefined;
    },
    get port() {
      return state.port;
    },
    chats: [],
    healthStatus: 200,
    async up() {
      thawed.resolve();
      if (server) return;
      if (samePort && state.port === 0) state.port = await reservePort();
      server = listen().listen(samePort ? state.port : 0, host);
      await once(server, 'listening');
      state.port = (server.address() as AddressInfo).port;
      if (!alive) state.boots++;
      alive = true;
    },
    freeze() {
      thawed = Promise.withResolvers();
    },
    async down(forget = true) {
      if (forget) alive = false;
      const ending = server;
      server = undefined;
      if (!ending) return;
      thawed.resolve();
      ending.close();
      ending.closeAllConnections();
      await once(ending, 'close');
    },
  };
  return daemon;
}
