/** The executor under attack: its real daemon over HTTP, with the play-money ledger as its own process. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestContext } from 'node:test';
import { parseExecutorConfig } from '../../../src/executor/config.ts';
import { startExecutor } from '../../../src/executor/daemon.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import type { GateAnswer } from '../../../src/wire/executor.ts';
import { ADMIN_TOKEN, signedAnswer } from '../../support/cluster/approval.ts';
import { eventually } from '../../support/eventually.ts';
import { writeLedgerManifest } from '../../support/ledger/ledger-manifest.ts';

const TOKEN = 'a-token-for-the-red-team';

export type Gate = {
  readonly node_id: string;
  readonly question: string;
  readonly call: { readonly tool: string; readonly args: Record<string, unknown>; readonly call_sha256: string };
  readonly displayed_sha256: string;
};
export type State = {
  readonly status: string;
  readonly clarify?: string;
  readonly error?: { readonly code: string; readonly message: string };
};
type Envelope = { readonly kind: string; readonly body: Record<string, unknown> };

/** Statuses in which an intent waits for an external action. */
const WAITING_STATUSES = new Set(['awaiting_approval', 'completed', 'failed', 'denied', 'cancelled', 'unknown']);

export async function executorUnderAttack(t: TestContext, modelUrl: string) {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-red-team-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { path, ledgerDir } = writeLedgerManifest(folder);
  const config = parseExecutorConfig({
    EXECUTOR_PORT: '0',
    EXECUTOR_DATA_DIR: join(folder, 'executor'),
    EXECUTOR_MANIFEST: path,
    EXECUTOR_TOKEN: TOKEN,
    EXECUTOR_ADMIN_TOKEN: ADMIN_TOKEN,
    EXECUTOR_MODEL: 'adversary',
    EXECUTOR_MODEL_BASE_URL: modelUrl,
  });
  const variables = { PATH: process.env.PATH, HOME: folder };
  const executor = await startExecutor({ config, variables, clock: systemClock, log: silentLogger });
  t.after(() => executor.close());

  async function ask(user: string, route: string, body?: object | string): Promise<{ status: number; data: unknown }> {
    const headers = {
      authorization: `Bearer ${TOKEN}`,
      'x-matrix-user': user,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const text = typeof body === 'object' ? JSON.stringify(body) : body;
    const init = text === undefined ? { headers } : { headers, method: 'POST', body: text };
    const response = await fetch(executor.url + route, init);
    const { data } = (await response.json()) as { data?: unknown };
    return { status: response.status, data };
  }

  async function ok<T>(user: string, route: string, body?: object): Promise<T> {
    const { status, data } = await ask(user, route, body);
    assert.ok(status < 300, `${route}: ${status} ${JSON.stringify(data)}`);
    return data as T;
  }

  return {
    submit: async (user: string, request: object) =>
      (await ok<{ intent_id: string }>(user, '/messages/async', request)).intent_id,
    /** The same for the text of a body; `undefined` when it is refused. */
    async submitText(user: string, body: string): Promise<string | undefined> {
      const { status, data } = await ask(user, '/messages/async', body);
      assert.ok(status < 300 || status === 400, `${status} ${JSON.stringify(data)}`);
      return status === 400 ? undefined : (data as { intent_id: string }).intent_id;
    },
    /** Waits until the intent needs an external action. */
    atRest: (user: string, intentId: string): Promise<State> =>
      eventually('the intent waits', async () => {
        const state = await ok<State>(user, `/messages/async/${intentId}`);
        return (WAITING_STATUSES.has(state.status) || state.clarify !== undefined) && state;
      }),
    gates: async (user: string, intentId: string) =>
      (await ok<{ pending: Gate[] }>(user, `/intents/${intentId}/gates`)).pending,
    receipt: async (user: string, intentId: string) =>
      (await ok<{ envelopes: Envelope[] }>(user, `/intents/${intentId}/receipt`)).envelopes,
    /** Signed by the user's approver. @returns the HTTP status */
    async answer(user: string, intentId: string, nodeId: string, reply: Partial<GateAnswer>): Promise<number> {
      const { url } = executor;
      const answer = await signedAnswer({ url, token: TOKEN }, user, intentId, nodeId, reply);
      return (await ask(user, `/intents/${intentId}/gates/${nodeId}/answer`, answer)).status;
    },
    /** An answer, sent unchanged. @returns the HTTP status */
    sendAnswer: async (user: string, intentId: string, nodeId: string, answer: object) =>
      (await ask(user, `/intents/${intentId}/gates/${nodeId}/answer`, answer)).status,
    /** Every transfer in the ledger's file. */
    transfers(): { source: string; target: string; cents: number }[] {
      const db = new DatabaseSync(join(ledgerDir, 'ledger.db'), { readOnly: true });
      try {
        return db
          .prepare('SELECT source, target, cents FROM transfers WHERE idempotency_key IS NOT NULL')
          .all()
          .map((row) => ({ ...row })) as { source: string; target: string; cents: number }[];
      } finally {
        db.close();
      }
    },
  };
}
