import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { type CallToolResult, Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { sliceAt } from '../../../src/wire/json.ts';
import { payloadTextOf, type StandInChronosd, startStandInChronosd } from '../../support/stand-ins/chronosd.ts';
import { type AgentFiles, makeAgentFiles } from './agent-files.ts';
import { type McpProcess, mcpCommand, spawnMcp } from './mcp-process.ts';

/** Mixed scripts, control characters, trailing spaces, a line separator, an astral character, a single quote. */
const WAKE_MESSAGE = 'Prüfe ob 完了 готово مرحبا שלום 🚀\u0000\u0001\u001f\u007f\t\r\n\u2028"\\  ';
const BIG = '12345678901234567890';
const textOf = (result: CallToolResult) => (result.content[0] as { type: 'text'; text: string }).text;

/** The latest create that chronosd has seen. */
const createIn = ({ seen }: StandInChronosd) =>
  seen.findLast(({ method, path }) => method === 'POST' && path === '/v1/alarms')!;
const structured = (result: CallToolResult) => result.structuredContent as Record<string, unknown>;

/** A number that `JSON.stringify` writes with all its digits. */
const rawNumber = (digits: string): unknown => (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(digits);

for (const era of ['2025', '2026-07-28'] as const) {
  describe(`the alarm tools, called by the SDK's client of ${era}`, () => {
    let chronosd: StandInChronosd;
    let agent: AgentFiles;
    let client: Client;
    before(async () => {
      chronosd = await startStandInChronosd();
      agent = makeAgentFiles();
      const versionNegotiation = { mode: era === '2025' ? 'legacy' : { pin: era } } as const;
      client = new Client({ name: 'test', version: '0' }, { versionNegotiation });
      await client.connect(new StdioClientTransport({ ...mcpCommand(agent.envFor(chronosd)), stderr: 'ignore' }));
    });
    after(async () => {
      await client.close();
      await chronosd.close();
      agent.remove();
    });
    beforeEach(() => {
      chronosd.seen.length = 0;
      chronosd.issued.length = 0;
    });
    const call = (name: string, args: Record<string, unknown>) =>
      client.callTool({ name, arguments: args }) as Promise<CallToolResult>;

    test('are listed with schemas that refuse unknown fields', async () => {
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name, inputSchema }) => [name, inputSchema.additionalProperties]),
        [
          ['alarm_set', false],
          ['alarm_list', false],
          ['alarm_cancel', false],
        ],
      );
    });

    test('carry message and payload through byte for byte, 20-digit integers included', async () => {
      const result = await call('alarm_set', {
        kind: 'once',
        delay_seconds: 600,
        wake_message: WAKE_MESSAGE,
        payload: { id: rawNumber(BIG), list: [rawNumber('1.0'), rawNumber('1e400')], 10: 'b', 9: 'a' },
      });
      assert.equal(result.isError, undefined);
      assert.deepEqual(JSON.parse(textOf(result)), result.structuredContent);
      assert.equal(structured(result).status, 'active');
      const sent = createIn(chronosd);
      assert.equal(payloadTextOf(sent), `{"9":"a","10":"b","id":${BIG},"list":[1.0,1e400]}`);
      assert.equal((JSON.parse(sent.body) as { wake_message: string }).wake_message, WAKE_MESSAGE);

      const listed = await call('alarm_list', { alarm_id: structured(result).id });
      assert.equal(listed.isError, undefined, textOf(listed));
      assert.match(textOf(listed), new RegExp(`"id":${BIG},"list":\\[1\\.0,1e400\\]`));

      const id = String(structured(result).id);
      const cancelled = await call('alarm_cancel', { alarm_id: id });
      assert.equal(structured(cancelled).status, 'cancelled');
      const { alarms } = structured(await call('alarm_list', { status: 'cancelled' }));
      assert.deepEqual(
        (alarms as { id: string }[]).map((view) => view.id),
        [id],
      );
    });

    test('prove the identity again for every call and keep no token', async () => {
      await call('alarm_list', {});
      await call('alarm_list', {});
      assert.deepEqual(
        chronosd.seen.map(({ path }) => path.replace(/\?.*/, '')),
        [1, 2].flatMap(() => ['/v1/agent/auth/challenge', '/v1/agent/auth/verify', '/v1/alarms']),
      );
      assert.equal(new Set(chronosd.issued).size, 2);
      assert.deepEqual(
        chronosd.seen.flatMap(({ principal }) => principal ?? []),
        chronosd.issued,
      );
    });

    test('accept numbers sent as strings', async () => {
      const set = await call('alarm_set', { kind: 'once', wake_message: 'x', delay_seconds: '600' });
      assert.equal(set.isError, undefined, textOf(set));
      assert.equal(sliceAt(createIn(chronosd).body, ['delay_seconds']), '600');
      assert.equal((await call('alarm_list', { limit: '2' })).isError, undefined);
    });

    test('answer bad input with the field, the value and the remedy, as JSON and as text, and do not call chronosd', async () => {
      const cases: [name: string, args: Record<string, unknown>, says: RegExp][] = [
        [
          'alarm_set',
          { kind: 'once', wake_message: 'x', delay_seconds: -5 },
          /delay_seconds must be at least 1 \(got -5\)/,
        ],
        [
          'alarm_set',
          { kind: 'once', wake_message: 'x', delay_seconds: rawNumber(BIG) },
          /delay_seconds .*12345678901234567890/,
        ],
        ['alarm_set', { kind: 'once', wake_message: 'x', snooze: true }, /unknown field "snooze"/],
        ['alarm_set', { kind: 'once', wake_message: '' }, /wake_message is required/],
        [
          'alarm_set',
          { kind: 'once', wake_message: 'x', payload: 'p'.repeat(70_000) },
          /payload must be at most 65536 bytes/,
        ],
        ['alarm_list', { limit: 501 }, /limit must be at most 500 \(got 501\)/],
        ['alarm_cancel', {}, /alarm_id is required/],
      ];
      for (const [name, args, pattern] of cases) {
        const result = await call(name, args);
        assert.equal(result.isError, true);
        const error = result.structuredContent as { code: string; message: string; retryable: boolean };
        assert.deepEqual(JSON.parse(textOf(result)), error);
        assert.deepEqual([error.code, error.retryable], ['invalid_request', false]);
        assert.match(error.message, pattern);
      }
      assert.deepEqual(chronosd.seen, []);
    });

    test("pass chronosd's own errors on", async () => {
      const unknown = await call('alarm_cancel', { alarm_id: '0195f2b1-7c1e-7000-8000-00000000dead' });
      assert.equal(unknown.isError, true);
      assert.equal(structured(unknown).code, 'not_found');
      const incomplete = await call('alarm_set', { kind: 'once', wake_message: 'x' });
      assert.match(textOf(incomplete), /invalid_request.*delay_seconds or fire_at/);
    });

    test('an unknown tool is a protocol error', async () => {
      await assert.rejects(call('alarm_snooze', {}), { code: -32602, message: /alarm_snooze/ });
    });

    test('twenty calls at once each get their own answer', async () => {
      const results = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          call('alarm_set', { kind: 'once', wake_message: `call ${index}`, delay_seconds: 60, payload: { index } }),
        ),
      );
      const ids = new Set(results.map((result) => structured(result).id));
      assert.equal(ids.size, 20);
      assert.equal(new Set(chronosd.issued).size, 20);
    });
  });
}

describe('the bytes on stdio', () => {
  let chronosd: StandInChronosd;
  let agent: AgentFiles;
  let mcp: McpProcess;
  before(async () => {
    chronosd = await startStandInChronosd();
    agent = makeAgentFiles();
    mcp = spawnMcp(agent.envFor(chronosd));
    await mcp.initialize();
  });
  after(async () => {
    await mcp.end();
    await chronosd.close();
    agent.remove();
  });

  test('keep a payload exactly as written, white space and repeated keys included, in both halves of a result', async () => {
    const payload = `{ "a" : ${BIG}, "a":1.0 ,\t"😀":"\\u0000\\/", "n":[ 1e400,-0 ] }`;
    const fields = `"kind":"once","wake_message":"x","delay_seconds":60`;
    const { answer } = await mcp.request(
      'tools/call',
      `{"name":"alarm_set","arguments":{${fields},"payload":${payload} }}`,
    );
    assert.equal(answer.result.isError, undefined);
    assert.equal(payloadTextOf(createIn(chronosd)), payload);

    const { line } = await mcp.request('tools/call', '{"name":"alarm_list","arguments":{"full":true}}');
    assert.ok(sliceAt(line, ['result', 'structuredContent', 'alarms'])?.includes(payload));
    const text = JSON.parse(line).result.content[0].text as string;
    assert.equal(text, sliceAt(line, ['result', 'structuredContent']));
  });

  test('absent arguments are an empty object, and arguments other than objects are refused', async () => {
    for (const given of ['', ',"arguments":null', ',"arguments":{}'])
      assert.equal((await mcp.request('tools/call', `{"name":"alarm_list"${given}}`)).answer.result.isError, undefined);
    for (const value of ['[]', '"{}"', '7']) {
      const { answer } = await mcp.request('tools/call', `{"name":"alarm_list","arguments":${value}}`);
      assert.deepEqual(answer.error, { code: -32_602, message: 'params.arguments must be an object' });
    }
  });

  test('a field with the name of the internal argument carrier is an ordinary field', async () => {
    const { answer } = await mcp.request('tools/call', '{"name":"alarm_list","arguments":{"source":{"text":"{}"}}}');
    assert.match(answer.result.structuredContent.message, /unknown field "source"/);
  });
});
