/** A real executor with the real ledger behind it, and callers that use HTTP. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseExecutorConfig } from '../../../src/executor/config.ts';
import { startExecutor } from '../../../src/executor/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { GateAnswer } from '../../../src/wire/executor.ts';
import { ADMIN_TOKEN, signedAnswer } from '../../support/cluster/approval.ts';
import { eventually } from '../../support/eventually.ts';
import { COMPILED, LEAN } from '../../support/quick-start.ts';
import type { Owner } from '../../support/temporary.ts';

export const TOKEN = 'a-token-for-the-tests-of-the-executor';
const LEDGER = fileURLToPath(new URL('./ledger.fixture.ts', import.meta.url));
const BUNDLED = fileURLToPath(new URL('../../../agents/executor.json', import.meta.url));

/**
 * The bundled manifest, with its ledger in this folder and without its other servers. Each would be a process for every
 * executor of these tests, and none of them is called.
 *
 * @returns the settings of an executor in that folder
 */
export function executorSettings(folder: string, more: Record<string, string> = {}): Record<string, string> {
  const manifest = JSON.parse(readFileSync(BUNDLED, 'utf8'));
  const [ledger] = manifest.servers;
  manifest.servers = [ledger];
  ledger.command = process.execPath;
  ledger.args = [...LEAN, LEDGER, join(folder, 'ledger')];
  ledger.env = COMPILED;
  const path = join(folder, 'executor.json');
  writeFileSync(path, JSON.stringify(manifest));
  return {
    PATH: process.env.PATH ?? '',
    ...ledger.env,
    EXECUTOR_PORT: '0',
    EXECUTOR_DATA_DIR: join(folder, 'executor'),
    EXECUTOR_TOKEN: TOKEN,
    EXECUTOR_ADMIN_TOKEN: ADMIN_TOKEN,
    EXECUTOR_MANIFEST: path,
    ...more,
  };
}

export async function startedExecutor(t: Owner, folder: string, more: Record<string, string> = {}) {
  const variables = executorSettings(folder, more);
  const config = parseExecutorConfig(variables);
  const executor = await startExecutor({ config, variables, clock: systemClock, log: silentLogger, drainMs: 1000 });
  t.after(() => executor.close());
  return executor;
}

export type Answer = { status: number; data: never; error: { code: string; message: string; retryable: boolean } };

/** Sends requests to an executor as one user. */
export function callerOf({ url }: { url: string }, user: string | undefined, token: string | undefined = TOKEN) {
  const headers: Record<string, string> = {
    ...(user === undefined ? {} : { 'x-matrix-user': user }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  async function call(method: 'GET' | 'POST', path: string, body?: unknown): Promise<Answer> {
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const response = await fetch(url + path, {
      method,
      headers: { ...headers, 'content-type': 'application/json' },
      ...(text === undefined ? {} : { body: text as string }),
    });
    return { ...((await response.json()) as Answer), status: response.status };
  }
  const data = async (method: 'GET' | 'POST', path: string, body?: unknown) => {
    const answer = await call(method, path, body);
    assert.equal(answer.status, 200, JSON.stringify(answer));
    return answer.data as Record<string, never>;
  };
  return {
    headers,
    call,
    data,
    async submit(body: unknown): Promise<string> {
      return (await data('POST', '/messages/async', body)).intent_id!;
    },
    state: (id: string) => data('GET', `/messages/async/${id}`),
    async until(id: string, status: string): Promise<Record<string, never>> {
      return eventually(`${id} is ${status}`, async () => {
        const state = await data('GET', `/messages/async/${id}`);
        return state.status === status && state;
      });
    },
    async gates(id: string): Promise<Gate[]> {
      return (await data('GET', `/intents/${id}/gates`)).pending!;
    },
    async waiting(id: string): Promise<Gate> {
      return eventually(`${id} asks`, async () => {
        const { pending } = await data('GET', `/intents/${id}/gates`);
        return (pending as unknown as Gate[])[0];
      });
    },
    /** An answer to the waiting question, signed by the person of these tests. */
    signed: (id: string, node: string, changes?: Partial<GateAnswer>) =>
      signedAnswer({ url, token: TOKEN }, user!, id, node, changes),
    /** Sends an answer unchanged. */
    sendAnswer: (id: string, node: string, body: unknown) => call('POST', `/intents/${id}/gates/${node}/answer`, body),
    async answer(id: string, node: string, changes?: Partial<GateAnswer>): Promise<Answer> {
      const body = await signedAnswer({ url, token: TOKEN }, user!, id, node, changes);
      return call('POST', `/intents/${id}/gates/${node}/answer`, body);
    },
  };
}

export type Gate = {
  node_id: string;
  question: string;
  options?: string[];
  call: { tool: string; args: Record<string, unknown>; call_sha256: string };
  displayed_sha256: string;
  expires_at: string;
};

/** An intent of one transfer. */
export const transfer = (amount = '12.50', more: object = {}) => ({
  verb: 'transfer',
  plan: {
    id: 'pay',
    kind: 'call',
    tool: 'ledger/transfer',
    args: { from: 'alice', to: 'bob', amount, currency: 'EUR', ...more },
  },
});

/** An intent that only reads. */
export const readOnlyPlan = () => ({
  verb: 'look',
  plan: { id: 'look', kind: 'call', tool: 'ledger/accounts', args: { accounts: ['alice', 'bob'] } },
});
