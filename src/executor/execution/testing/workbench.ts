/** An executor for tests: a real journal in a temporary folder, a manual clock, and a bank. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { eventually } from '../../../../test/support/eventually.ts';
import { ManualClock } from '../../../kit/clock/testing/manual-clock.ts';
import { generateKey } from '../../../kit/identity/keys.ts';
import { type TestApprover, testApprover } from '../../../kit/identity/testing/approver.ts';
import { silentLogger } from '../../../kit/log/log.ts';
import type { GateAnswer, IntentRequest } from '../../../wire/executor.ts';
import { RawJson } from '../../../wire/json.ts';
import type { Compiler } from '../../compile/compiler.ts';
import type { IntentBounds } from '../../config.ts';
import { type Journal, openJournal } from '../../journal/journal.ts';
import type { Policy, PolicyRequest } from '../../policy/policy.ts';
import type { ExecutorRail } from '../../rail.ts';
import { signingKey } from '../../receipt/chain.ts';
import { verifyReceipt } from '../../receipt/verify-receipt.ts';
import { createRail } from '../rail.ts';
import { type Bank, createBank } from './bank.ts';

export const DAY_MS = 24 * 60 * 60 * 1000;

/** An intent that consists of these nodes, one after the other. */
export function planOf(...nodes: unknown[]): RawJson {
  const plan = nodes.length === 1 ? nodes[0] : { id: 'all', kind: 'sequence', nodes };
  return new RawJson(JSON.stringify({ verb: 'pay', plan }));
}

export const transfer = (id: string, amount = '10.00', to = 'bob') => ({
  id,
  kind: 'call',
  tool: 'bank/transfer',
  args: { to, amount, currency: 'EUR' },
});
export const call = (id: string, tool: string, args: object) => ({ id, kind: 'call', tool: `bank/${tool}`, args });

export type Workbench = {
  readonly clock: ManualClock;
  readonly bank: Bank;
  readonly folder: string;
  rail: ExecutorRail;
  journal: Journal;
  /** Replaces the default policy, which asks for escalate-class calls and allows others. */
  decide: ((request: PolicyRequest) => ReturnType<Policy['decide']>) | undefined;
  compile: Compiler['compile'];
  submit(intent: RawJson, more?: Partial<IntentRequest>, user?: string): Promise<string>;
  status(intentId: string, user?: string): string;
  /** Waits until the intent has this status. */
  reaches(intentId: string, status: string, user?: string): Promise<void>;
  /** Waits for the gate of a node. */
  gate(intentId: string, nodeId: string, user?: string): Promise<ReturnType<ExecutorRail['gates']>[number]>;
  /** The person's approver key, enrolled for `alice` and `bob`. */
  readonly approver: TestApprover;
  approve(intentId: string, nodeId: string, user?: string): Promise<void>;
  /** A signed answer to the pending gate. */
  answerTo(intentId: string, nodeId: string, said?: Partial<GateAnswer>, user?: string): Promise<GateAnswer>;
  kinds(intentId: string, user?: string): string[];
  /** The intent's receipt, which must verify. */
  verified(intentId: string, user?: string): ReturnType<ExecutorRail['receipt']>;
  stop(): Promise<void>;
  /** Starts a new executor on the same journal. */
  start(): void;
};

/** Limits that tests do not reach accidentally. */
export const BOUNDS: IntentBounds = { openIntents: 1000, contextBytes: 16 * 1024 * 1024 };

export function createWorkbench(t: TestContext, bounds: IntentBounds = BOUNDS): Workbench {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-rail-'));
  const clock = new ManualClock();
  const bank = createBank();
  const key = signingKey(generateKey());
  const approver = testApprover(() => clock.now());
  const policy: Policy = {
    sha256: 'b'.repeat(64),
    approvalTimeoutMs: DAY_MS,
    decide: (request) =>
      bench.decide?.(request) ?? {
        effect: request.surface === 'escalate' ? 'ask' : 'allow',
        rule: 'default',
        reason: 'no rule says otherwise',
      },
  };
  const open = () => {
    const journal = openJournal({ dataDir: folder, key, clock, log: silentLogger, bounds });
    const compiler: Compiler = { compile: (draft) => bench.compile(draft) };
    const rail = createRail({
      ...{ journal, policy, compiler, clock },
      toolbox: bank.toolbox,
      log: silentLogger,
      reconcileMs: 2000,
    });
    return { journal, rail };
  };
  const bench: Workbench = {
    clock,
    bank,
    folder,
    approver,
    ...open(),
    decide: undefined,
    compile: async () => ({ outcome: 'refused', code: 'no_model', reason: 'there is no model' }),
    async submit(intent, more = {}, user = 'alice') {
      const { intentId } = await bench.rail.submit(user, { intent, ...more });
      return intentId;
    },
    status: (intentId, user = 'alice') => bench.rail.state(user, intentId).status,
    async reaches(intentId, status, user = 'alice') {
      await eventually(`${intentId} is ${status}`, () => bench.status(intentId, user) === status);
    },
    async gate(intentId, nodeId, user = 'alice') {
      const find = () => bench.rail.gates(user, intentId).find(({ node_id }) => node_id === nodeId);
      return eventually(`the gate ${nodeId} waits`, find);
    },
    async approve(intentId, nodeId, user = 'alice') {
      await bench.rail.answer(user, intentId, nodeId, await bench.answerTo(intentId, nodeId, {}, user));
    },
    answerTo: async (intentId, nodeId, said = {}, user = 'alice') =>
      approver.answer(intentId, await bench.gate(intentId, nodeId, user), said),
    kinds: (intentId, user = 'alice') => bench.rail.receipt(user, intentId).envelopes.map(({ kind }) => kind),
    verified(intentId, user = 'alice') {
      const receipt = bench.rail.receipt(user, intentId);
      const report = verifyReceipt(receipt);
      assert.equal(report.broken, undefined, JSON.stringify(report.broken));
      return receipt;
    },
    async stop() {
      await bench.rail.close(0);
      await bench.journal.close();
    },
    start() {
      Object.assign(bench, open());
      bench.rail.start();
    },
  };
  for (const user of ['alice', 'bob']) bench.journal.roster.enroll(approver.enrollment(key.publicKeyHex, user));
  t.after(async () => {
    await bench.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return bench;
}
