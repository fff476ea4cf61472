/** The modules that programs import, against real daemons. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { generateText, stepCountIs } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { type Installation, startInstallation } from '../../test/support/installation.ts';
import { sharedOwner, temporaryFolder } from '../../test/support/temporary.ts';
import { localClients } from './client.ts';
import { ReveilleError, VERSION } from './index.ts';
import { alarmTools, mcpServers } from './tools.ts';
import { checkReceipts } from './verify.ts';

const owner = sharedOwner();
let installation: Installation;
before(async () => {
  installation = await startInstallation(owner);
});
after(() => owner.end());

test('the clients of this machine find its daemons and act as its agent', async () => {
  const { chronos, router } = await localClients({ REVEILLE_HOME: installation.home.path });
  const { id } = await chronos.createAlarm({
    ...{ kind: 'once', delay_seconds: 600, wake_message: 'look', conversation_id: 'builds' },
  });
  const page = await installation.client.listAlarms();
  assert.deepEqual(
    page.alarms.map((alarm) => alarm.id),
    [id],
  );
  await chronos.cancelAlarm(id);
  assert.deepEqual(await router.list(), []);
});

test('without a setup, the clients print the remedy', async (t) => {
  await assert.rejects(localClients({ REVEILLE_HOME: temporaryFolder(t) }), (error: unknown) => {
    assert.ok(error instanceof ReveilleError);
    assert.match(error.message, /reveille up/);
    return true;
  });
});

test('the AI SDK accepts the tools unchanged: a model that calls alarm_set has set an alarm', async () => {
  const input = { kind: 'once', delay_seconds: 600, wake_message: 'Grüße', conversation_id: 'c' };
  const call = { type: 'tool-call', toolCallId: '1', toolName: 'alarm_set', input: JSON.stringify(input) } as const;
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const answer = (content: unknown[], unified: 'tool-calls' | 'stop') =>
    ({ content, finishReason: { unified, raw: unified }, usage, warnings: [] }) as never;
  const model = new MockLanguageModelV4({
    doGenerate: [answer([call], 'tool-calls'), answer([{ type: 'text', text: 'done' }], 'stop')],
  });
  const tools = alarmTools({ home: installation.home.path });
  const { text, steps } = await generateText({ model, prompt: 'Remind me.', tools, stopWhen: stepCountIs(2) });
  assert.equal(text, 'done');
  const { id } = steps[0]!.toolResults[0]!.output as { id: string };
  assert.equal((await installation.client.getAlarm(id)).wake_message, 'Grüße');
  // The model gets the same arguments that MCP clients get.
  const given = model.doGenerateCalls[0]!.tools!.map((tool) => [tool.name, 'inputSchema' in tool && tool.inputSchema]);
  const listed = JSON.parse(readFileSync(join(import.meta.dirname, '../chronos-mcp/chronos-tools.json'), 'utf8'));
  const expected = listed.tools.map((tool: { name: string; inputSchema: object }) => [tool.name, tool.inputSchema]);
  assert.deepEqual(given, expected);
});

test('a tool call that chronosd refuses is an error with the reason', async () => {
  const { alarm_set, alarm_cancel } = alarmTools({ home: installation.home.path });
  await assert.rejects(alarm_set.execute({ kind: 'once', delay_seconds: -5 }), /delay_seconds/);
  const missing = alarm_cancel.execute({ alarm_id: '01a206a3-09b9-75e1-9cfa-bb6341bc3a57' });
  await assert.rejects(missing, (error: unknown) => error instanceof ReveilleError && error.code === 'not_found');
});

test('a tool changes, pauses and continues the alarm that it has set', async () => {
  const { alarm_set } = alarmTools({ home: installation.home.path });
  const { id } = await alarm_set.execute({
    kind: 'cron',
    cron_expr: '@daily',
    wake_message: 'before',
    overlap: 'skip',
  });
  const paused = await alarm_set.execute({ alarm_id: id, wake_message: 'after', overlap: null, action: 'pause' });
  assert.deepEqual([paused.id, paused.status], [id, 'paused']);
  const { wake_message, overlap } = await installation.client.getAlarm(id as string);
  assert.deepEqual([wake_message, overlap], ['after', undefined]);
  assert.equal((await alarm_set.execute({ alarm_id: id, action: 'resume' })).status, 'active');
});

test('a tool previews an alarm without setting it', async () => {
  const { alarm_set } = alarmTools({ home: installation.home.path });
  const { count } = await installation.client.listAlarms();
  const given = { when: 'every weekday at 9', timezone: 'Europe/Berlin', dry_run: true };
  const { reading, occurrences, id, note } = await alarm_set.execute(given);
  assert.deepEqual(
    [(reading as { text: string }).text, (occurrences as unknown[]).length],
    ['every weekday at 09:00 in Europe/Berlin', 5],
  );
  assert.deepEqual([id, note], [undefined, undefined]);
  assert.equal((await installation.client.listAlarms()).count, count);
});

test('the library previews an alarm, and counts a backfill before it fires', async () => {
  const { chronos } = await localClients({ REVEILLE_HOME: installation.home.path });
  const series = { kind: 'cron', cron_expr: '0 9 * * *', wake_message: 'x' } as const;
  const { occurrences } = await chronos.previewAlarm({ ...series, count: 2 });
  assert.equal(occurrences.length, 2);
  const { id } = await chronos.createAlarm(series);
  const part = { from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00Z' };
  const ends = { first: '2026-01-01T09:00:00.000Z', last: '2026-01-02T09:00:00.000Z' };
  const planned = await chronos.backfillAlarm(id, { ...part, dry_run: true });
  assert.deepEqual(planned.backfill, { added: 2, known: 0, ...ends, dry_run: true });
  assert.deepEqual((await chronos.backfillAlarm(id, part)).backfill, { added: 2, known: 0, ...ends });
  await chronos.cancelAlarm(id);
});

test('an MCP server of the package is this Node and its own program', () => {
  const { chronos, chronometric } = mcpServers();
  assert.deepEqual(chronos.command, process.execPath);
  assert.match(chronos.args.join(' '), /bin.reveille\.mjs mcp$/);
  assert.match(chronometric.args.join(' '), /bin.reveille\.mjs chronometric$/);
  assert.match(VERSION, /^\d+\.\d+\.\d+/);
});

test('the verifier gives the verdict of the specification for every vector', async () => {
  const folder = join(import.meta.dirname, '../../test/contract/receipt-vectors');
  const lines = ['valid', 'broken'].flatMap((name) =>
    readFileSync(join(folder, `${name}.jsonl`), 'utf8')
      .trim()
      .split('\n'),
  );
  const expected = (key: string | undefined) => (key === undefined ? [] : [key.toUpperCase()]);
  for (const line of lines) {
    const vector = JSON.parse(line);
    const given = {
      ...(vector.key === undefined ? {} : { keys: expected(vector.key) }),
      ...(vector.approver === undefined ? {} : { approvers: expected(vector.approver) }),
    };
    const checked = await checkReceipts(vector.text, given);
    assert.equal(checked.length > 0 && checked.every(({ valid }) => valid), vector.expected.valid, vector.name);
    if (vector.expected.valid) continue;
    const broken = checked.find(({ valid }) => !valid)!;
    assert.equal(broken.report?.broken?.property ?? 'unreadable', vector.expected.property, vector.name);
    assert.ok(broken.why);
  }
});
