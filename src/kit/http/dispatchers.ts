/**
 * What we use of undici, file by file: all of it, with its caches, mocks and sockets, takes 40 ms of CPU at the start of
 * each daemon.
 */
import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const require = createRequire(import.meta.url);

export const Agent: typeof Undici.Agent = require('undici/lib/dispatcher/agent.js');
export type Agent = Undici.Agent;
export const Pool: typeof Undici.Pool = require('undici/lib/dispatcher/pool.js');
export const buildConnector: typeof Undici.buildConnector = require('undici/lib/core/connect.js');

/** The standard's `fetch`, which takes the dispatchers above; loaded when it is asked for. */
export const lateFetch = (): typeof Undici.fetch => require('undici/lib/web/fetch/index.js').fetch;
