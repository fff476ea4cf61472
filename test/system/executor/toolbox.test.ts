import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openBook } from '../../../examples/ledger/book.ts';
import { createToolbox } from '../../../src/executor/tools/create-toolbox.ts';
import type { CallReport, Toolbox } from '../../../src/executor/tools/toolbox.ts';
import { systemClock, wait } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { bundledManifest } from '../../../src/mcp-host/bundled-programs.ts';
import { lockPathOf } from '../../../src/mcp-host/tool-lock.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { type LedgerManifestOptions, writeLedgerManifest } from '../../support/ledger/ledger-manifest.ts';
import { temporaryFolder } from '../../support/temporary.ts';

const never = new AbortController().signal;

async function start(t: TestContext, manifest: { path: string } | 'bundled', dataDir: string, more: object = {}) {
  const variables = { PATH: process.env.PATH, REVEILLE_HOME: dataDir, LEDGER_DATA_DIR: join(dataDir, 'ledger') };
  const toolbox = await createToolbox({ manifest, variables, dataDir, clock: systemClock, log: silentLogger, ...more });
  t.after(() => toolbox.close());
  return toolbox;
}

async function startFaulty(t: TestContext, options: LedgerManifestOptions) {
  const folder = temporaryFolder(t);
  const { path, ledgerDir } = writeLedgerManifest(folder, options);
  return { toolbox: await start(t, { path }, folder), ledgerDir };
}

const call = (toolbox: Toolbox, name: string, args: Record<string, unknown>, signal = never) =>
  toolbox.call(name, args, {
    ...{ signal, user: 'alice' },
    definitionSha256: toolbox.find(name)?.definitionSha256 ?? '',
  });

const order = (key: string, amount = '10.00') => ({
  ...{ from: 'alice', to: 'rent', amount, currency: 'EUR', idempotency_key: key },
});

function answered(report: CallReport) {
  assert.equal(report.status, 'answered', JSON.stringify(report));
  return report as Extract<CallReport, { status: 'answered' }>;
}

/** Asks until a ledger that was killed is there again. */
async function statusOf(toolbox: Toolbox, key: string): Promise<unknown> {
  for (;;) {
    const report = toolbox.find('ledger/status') && (await call(toolbox, 'ledger/status', { idempotency_key: key }));
    if (report?.status === 'answered') return report.structured;
    await wait(systemClock, 50);
  }
}

test('the manifest that ships gives a ledger whose transfers need approval, and whose lock is in force', async (t) => {
  const folder = temporaryFolder(t);
  const toolbox = await start(t, 'bundled', folder, { workspace: join(folder, 'workspace') });
  const ofLedger = toolbox.tools().filter(({ name }) => name.startsWith('ledger/'));
  assert.deepEqual(
    ofLedger.map(({ name, surface, sideEffectClass }) => [name, surface, sideEffectClass]),
    [
      ['ledger/accounts', 'natural', 'read'],
      ['ledger/exchange', 'escalate', 'write'],
      ['ledger/quote', 'natural', 'read'],
      ['ledger/simulate', 'natural', 'read'],
      ['ledger/status', 'natural', 'write'],
      ['ledger/transfer', 'escalate', 'write'],
    ],
  );
  assert.deepEqual(toolbox.warnings(), []);
  const path = bundledManifest('executor');
  assert.equal(toolbox.manifestSha256, createHash('sha256').update(readFileSync(path)).digest('hex'));
  const { servers } = JSON.parse(readFileSync(lockPathOf(path), 'utf8')) as {
    servers: { ledger: Record<string, string> };
  };
  assert.equal(toolbox.find('ledger/transfer')?.definitionSha256, servers.ledger.transfer);
  assert.equal(toolbox.find('ledger/transfer')?.rail?.idempotency_key, 'idempotency_key');
  assert.match(
    toolbox.absence('ledger/transfr'),
    /no tool "ledger\/transfr" \(did you mean ledger\/transfer\?\); the tools of ledger are ledger\/accounts, .*transfer$/,
  );
  assert.match(toolbox.absence('bank/pay'), /no tool "bank\/pay"; the servers are chronos, .*ledger/);
});

test('an answer comes with the digest of the very message that carried it', async (t) => {
  const { toolbox } = await startFaulty(t, { faults: ['ok'] });
  const report = answered(await call(toolbox, 'ledger/transfer', order('k1')));
  assert.equal(report.isError, false);
  assert.match(report.rawSha256, /^[0-9a-f]{64}$/);
  assert.ok(report.rawBytes > report.text.length);
  const other = answered(await call(toolbox, 'ledger/accounts', { accounts: ['rent'] }));
  assert.deepEqual(other.structured, { accounts: [{ account: 'rent', balance: '10.00', currency: 'EUR' }] });
  assert.notEqual(other.rawSha256, report.rawSha256);
});

test('a tool that says that it failed has answered', async (t) => {
  const { toolbox, ledgerDir } = await startFaulty(t, { faults: ['ok', 'ok'] });
  const poor = answered(await call(toolbox, 'ledger/transfer', order('k1', '5000.01')));
  assert.deepEqual([poor.isError, /less than 5000\.01/.test(poor.text)], [true, true]);
  const wrong = answered(await call(toolbox, 'ledger/transfer', { from: 'alice' }));
  assert.equal(wrong.isError, true);
  const book = openBook(ledgerDir, systemClock);
  t.after(() => book.close());
  assert.equal(book.accounts(['alice'])[0]?.balance, '5000.00');
});

test('a tool with another definition than the approved one is not called', async (t) => {
  const toolbox = await start(t, 'bundled', temporaryFolder(t));
  const report = await toolbox.call('ledger/transfer', order('k1'), {
    ...{ signal: never, user: 'alice' },
    definitionSha256: 'a'.repeat(64),
  });
  assert.equal(report.status, 'not_run');
  assert.match(report.status === 'not_run' ? report.message : '', /its definition has changed \(known aaaaaaaaaaaa/);
  assert.deepEqual(await statusOf(toolbox, 'k1'), { status: 'not_done' });
});

test('a tool that is not there, and one that is called off before, are certain not to have run', async (t) => {
  const toolbox = await start(t, 'bundled', temporaryFolder(t));
  for (const name of ['ledger/steal', 'bank/transfer', 'transfer', '']) {
    assert.equal((await call(toolbox, name, {})).status, 'not_run', name);
  }
  const report = await call(toolbox, 'ledger/transfer', order('k1'), AbortSignal.abort());
  assert.equal(report.status, 'not_run');
});

test('a ledger that dies before or after the transfer leaves it unknown, and tells afterwards which it was', async (t) => {
  const { toolbox, ledgerDir } = await startFaulty(t, { faults: ['die-before', 'die-after'] });
  assert.equal((await call(toolbox, 'ledger/transfer', order('k1'))).status, 'unknown');
  assert.deepEqual(await statusOf(toolbox, 'k1'), { status: 'not_done' });
  assert.equal((await call(toolbox, 'ledger/transfer', order('k2'))).status, 'unknown');
  assert.match(JSON.stringify(await statusOf(toolbox, 'k2')), /"status":"done","transfer_id"/);
  const late = answered(await call(toolbox, 'ledger/transfer', order('k1')));
  assert.match(late.text, /closed/);
  const book = openBook(ledgerDir, systemClock);
  t.after(() => book.close());
  assert.equal(book.accounts(['rent'])[0]?.balance, '10.00');
});

test('a lost answer, one that is given up, and one that is no result leave the call unknown', async (t) => {
  const { toolbox } = await startFaulty(t, { faults: ['mute', 'mute', 'garble'], timeoutMs: 300 });
  const lost = await call(toolbox, 'ledger/transfer', order('k1'));
  assert.deepEqual([lost.status, /within 300 ms/.test(JSON.stringify(lost))], ['unknown', true]);
  const givenUp = new AbortController();
  const pending = call(toolbox, 'ledger/transfer', order('k2'), givenUp.signal);
  setImmediate(() => givenUp.abort());
  assert.equal((await pending).status, 'unknown');
  assert.equal((await call(toolbox, 'ledger/transfer', order('k3'))).status, 'unknown');
  assert.match(JSON.stringify(await statusOf(toolbox, 'k1')), /"done"/);
});

/** A manifest with one member of the transfer's rail in the place of another. */
function withRail(folder: string, rail: object): string {
  const { path } = writeLedgerManifest(folder);
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  const transfer = manifest.servers[0].tools.find(({ name }: { name: string }) => name === 'transfer');
  Object.assign(transfer.rail, rail);
  writeFileSync(path, JSON.stringify(manifest));
  return path;
}

async function refused(t: TestContext, rail: object): Promise<ReveilleError> {
  const folder = temporaryFolder(t);
  const path = withRail(folder, rail);
  const thrown = await start(t, { path }, folder).then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof ReveilleError, String(thrown));
  return thrown;
}

test('a manifest that promises what cannot be is refused at the start', async (t) => {
  const nowhere = await refused(t, { dry_run: { tool: 'rehearse', args: {} } });
  assert.equal(nowhere.code, 'invalid_request');
  assert.match(nowhere.message, /ledger\/transfer: rail\.dry_run names "rehearse"/);
  const itself = await refused(t, { read_back: { tool: 'transfer', args: {} } });
  assert.match(itself.message, /needs approval itself/);
  const elsewhere = await refused(t, { amount: '/sum' });
  assert.equal(elsewhere.code, 'conflict');
  assert.match(elsewhere.message, /rail\.amount points to \/sum, which is not an argument of the tool/);
  assert.match((await refused(t, { amount: 'sum' })).message, /rail\.amount must be a JSON Pointer/);
});

test('a server that is away takes its tools with it, and the others stay', async (t) => {
  const folder = temporaryFolder(t);
  const { path } = writeLedgerManifest(folder);
  const manifest = JSON.parse(readFileSync(path, 'utf8'));
  manifest.servers.push({ alias: 'bank', command: fileURLToPath(new URL('./no-such-program', import.meta.url)) });
  writeFileSync(path, JSON.stringify(manifest));
  const toolbox = await start(t, { path }, folder);
  assert.equal(toolbox.tools().length, 6);
  assert.match(toolbox.absence('bank/transfer'), /"bank\/transfer" is not available: server "bank" did not start/);
  assert.match(toolbox.warnings().join(), /server "bank"/);
});
