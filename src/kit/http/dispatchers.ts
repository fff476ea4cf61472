/**
 * The parts of undici that Reveille uses, imported by file. The whole package, with its caches, mocks and sockets,
 * costs each daemon 40 ms of CPU at its start.
 */
import { createRequire } from 'node:module';
import type * as Undici from 'undici';

const require = createRequire(import.meta.url);

export const Agent: typeof Undici.Agent = require('undici/lib/dispatcher/agent.js');
export type Agent = Undici.Agent;
export const Pool: typeof Undici.Pool = require('undici/lib/dispatcher/pool.js');
export const buildConnector: typeof Undici.buildConnector = require('undici/lib/core/connect.js');

/** The standard `fetch`, which accepts the dispatchers above; loaded on first use. */
export const lateFetch = (): typeof Undici.fetch => require('undici/lib/web/fetch/index.js').fetch;
