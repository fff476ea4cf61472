/**
 * An executor over the ledger that kills itself: it submits transfers, approves them, and kills itself at a given step.
 * Without a step it completes everything, and records the outcome.
 */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { offlineCompiler } from '../../../../src/executor/compile/compiler.ts';
import { createRail } from '../../../../src/executor/execution/rail.ts';
import { openJournal } from '../../../../src/executor/journal/journal.ts';
import { readPolicy } from '../../../../src/executor/policy/read-policy.ts';
import { loadSigningKey, type SigningKey } from '../../../../src/executor/receipt/chain.ts';
import { createToolbox } from '../../../../src/executor/tools/create-toolbox.ts';
import type { RailTool, Toolbox } from '../../../../src/executor/tools/toolbox.ts';
import { systemClock } from '../../../../src/kit/clock/clock.ts';
import { AgentKey } from '../../../../src/kit/identity/keys.ts';
import { testApprover } from '../../../../src/kit/identity/testing/approver.ts';
import { createLogger } from '../../../../src/kit/log/log.ts';
import { RawJson } from '../../../../src/wire/json.ts';
import type { KillPoint } from './kill-point.ts';

export type Life = {
  readonly folder: string;
  /** The tools: the part of the bundled manifest that is called here. */
  readonly manifest: string;
  /** Keys of transfers to submit; a transfer that was submitted before is recognised by its key. */
  readonly keys: readonly string[];
  readonly kill: (KillPoint & { readonly count: number }) | undefined;
};

const { folder, manifest, keys, kill } = JSON.parse(process.argv[2]!) as Life;
const log = createLogger('kill-matrix', 'error');

let left = kill?.count ?? 0;
function reached(at: KillPoint['at'], what: string): void {
  if (!kill || kill.at !== at || what !== ('kind' in kill ? kill.kind : kill.tool)) return;
  left--;
  if (left === 0) process.kill(process.pid, 'SIGKILL');
}

/** Signs as the key does, which is the last step before an envelope is stored. */
function watched(key: SigningKey): SigningKey {
  return {
    ...key,
    sign(message) {
      reached('signing', /"kind":"([^"]+)","prev_hash":"[0-9a-f]+","seq":\d+\}$/.exec(message)?.[1] ?? '');
      return key.sign(message);
    },
  };
}

/** The ledger, and a copy named `blind`, whose manifest entry gives no way to look up the outcome of a call. */
function twofold(ledger: Toolbox): Toolbox {
  const blind = (tool: RailTool | undefined): RailTool | undefined =>
    tool && {
      ...tool,
      name: tool.name.replace('ledger/', 'blind/'),
      rail: { amount: '/amount', currency: '/currency' },
    };
  return {
    ...{
      manifestSha256: ledger.manifestSha256,
      tools: () => ledger.tools(),
      warnings: () => [],
      close: () => ledger.close(),
    },
    find: (name) =>
      name.startsWith('blind/') ? blind(ledger.find(name.replace('blind/', 'ledger/'))) : ledger.find(name),
    absence: (name) => ledger.absence(name),
    async call(name, args, options) {
      const tool = name.slice(name.indexOf('/') + 1);
      // A record that the executor itself does not write.
      if (tool === 'transfer') appendFileSync(join(folder, 'calls.log'), `${String(args.idempotency_key)}\n`);
      reached('calling', tool);
      reached('calling', name);
      const answer = ledger.call(`ledger/${tool}`, args, options);
      setImmediate(() => reached('sent', tool));
      const report = await answer;
      reached('answered', tool);
      return report;
    },
  };
}

const dataDir = join(folder, 'executor');
const hosted = await createToolbox({
  manifest: { path: manifest },
  variables: { PATH: process.env.PATH ?? '' },
  dataDir,
  clock: systemClock,
  log,
});
const toolbox = twofold(hosted);
const key = watched(loadSigningKey(join(dataDir, 'executor.key')));
const journal = openJournal({
  dataDir,
  key,
  clock: systemClock,
  log,
  bounds: { openIntents: 1000, contextBytes: 16 * 1024 * 1024 },
});
const policy = readPolicy(undefined);
const rail = createRail({
  journal,
  toolbox,
  policy,
  compiler: offlineCompiler,
  clock: systemClock,
  log,
  reconcileMs: 5000,
});

/** The same in every life. */
const approver = testApprover(systemClock.now, new AgentKey('5e'.repeat(32)));

const userOf = (name: string) => name.split('.')[0]!;

/** Approves the question about a node, as its owner would. */
function approve(intentId: string): void {
  const { user } = journal.loadAny(intentId).row;
  if (journal.roster.activeApprover(user, approver.approver) === undefined)
    journal.roster.enroll(approver.enrollment(key.publicKeyHex, user));
  for (const gate of rail.gates(user, intentId)) {
    void rail.answer(user, intentId, gate.node_id, approver.answer(intentId, gate));
  }
}

const finished = Promise.withResolvers<void>();
journal.onChange(({ row }, entries) => {
  // The acceptance is reported below, also when it is repeated.
  for (const { kind } of entries) if (kind !== 'intent.accepted') reached('stored', kind);
  if (entries.some(({ kind }) => kind === 'gate.asked')) setImmediate(() => approve(row.id));
});
rail.start();
for (const { id } of journal.open()) setImmediate(() => approve(id));

/** Every other transfer uses the tool whose outcome cannot be looked up. */
function planOf(name: string): RawJson {
  const order = { from: 'alice', to: 'rent', amount: '0.01', currency: 'EUR' };
  const isBlind = Number(name.split('.').at(-1)) % 2 === 1;
  const args = isBlind ? { ...order, idempotency_key: name } : order;
  const node = { id: 'pay', kind: 'call', tool: isBlind ? 'blind/transfer' : 'ledger/transfer', args };
  return new RawJson(JSON.stringify({ verb: 'pay', plan: node }));
}

const accepted = await Promise.all(
  keys.map(async (name) => {
    const { intentId } = await rail.submit(userOf(name), { intent: planOf(name), idempotency_key: name });
    reached('stored', 'intent.accepted');
    return { name, intentId };
  }),
);
const check = () => {
  if (journal.open().length === 0) finished.resolve();
};
journal.onChange(check);
check();
await finished.promise;

mkdirSync(join(folder, 'outcomes'), { recursive: true });
for (const { name, intentId } of accepted) {
  const user = userOf(name);
  const outcome = { name, state: rail.state(user, intentId), receipt: rail.receipt(user, intentId) };
  writeFileSync(join(folder, 'outcomes', `${name}.json`), JSON.stringify(outcome));
}
await rail.close(5000);
await toolbox.close();
await journal.close();
