import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../../../kit/log/log.ts';
import { missingTools } from '../../../wire/tool-surface.ts';
import { surfaceOf } from '../testing/surface.ts';
import { testCall, textOf } from '../testing/tool-call.ts';
import { createToolSet } from './tool-set.ts';
import { toolsOfTurn } from './turn-tools.ts';

const PRICE_URI = 'matrix://tool/mcp/m/price@1.0.0';

function bench() {
  const surface = surfaceOf({
    core_execute: { run: () => 'handed over', repeatable: true },
    m__note: { run: () => 'noted' },
    m__price: { run: () => '3', repeatable: true },
  });
  const tools = surface.schemas().map((one) => (one.name === 'm__price' ? { ...one, uri: PRICE_URI } : one));
  const escalated = [{ name: 'm__pay', uri: 'matrix://tool/mcp/m/pay@1.0.0', reason: 'pays' }];
  return Object.assign(surface, { describe: () => ({ tools, escalate: ['m__pay'], escalated, warnings: [] }) });
}

const limited = (surface: ReturnType<typeof bench>, tools: string[]) => toolsOfTurn({ terms: { tools } }, surface);

test('a turn without tools in its terms has all of the agent', () => {
  const surface = bench();
  assert.equal(toolsOfTurn({}, surface), surface);
  assert.equal(toolsOfTurn({ terms: { model: 'm' } }, surface), surface);
});

test('a turn has the named tools and no others, whatever the model asks for', async () => {
  const surface = bench();
  const turn = limited(surface, [PRICE_URI]);
  assert.deepEqual(
    turn.schemas().map(({ name }) => name),
    ['m__price'],
  );
  assert.equal(textOf(await turn.dispatch('m__price', {}, testCall())), '3');
  for (const name of ['m__note', 'core_execute', 'm__pay', 'unknown']) {
    const answer = await turn.dispatch(name, {}, testCall());
    assert.equal(answer.isError, true);
    assert.match(textOf(answer), /was not called: the alarm of this turn allows only/);
    assert.equal(turn.repeatable(name), false);
  }
  assert.deepEqual(
    surface.calls.map(({ name }) => name),
    ['m__price'],
  );
});

test('an empty list means no tools', async () => {
  const surface = bench();
  const turn = limited(surface, []);
  assert.deepEqual(turn.schemas(), []);
  assert.match(textOf(await turn.dispatch('m__note', {}, testCall())), /allows no tools$/);
  assert.deepEqual(surface.calls, []);
});

test('a tool that the agent does not have is refused with its name, the names there are, and the remedy', () => {
  const surface = bench();
  const sentence =
    'tools must be tools of the agent (got "m__prize"; it has core_execute, m__note, m__price); omit tools for all of them';
  assert.equal(missingTools(['m__note', 'm__prize'], surface.describe()), sentence);
  assert.throws(() => limited(surface, ['m__prize']), { message: `the turn was not begun: ${sentence}` });
  assert.match(missingTools(['m__pay'], surface.describe())!, /; name core_execute for a tool that moves funds/);
  assert.equal(missingTools(['m__note', PRICE_URI, 'core_execute'], surface.describe()), undefined);
});

test('an alarm for tools that the agent does not have is refused when Neo sets it, and nothing is set', async () => {
  const hosted = (tool: string) => ({
    ...{ alias: 'chronos', tool, functionName: `chronos__${tool}`, uri: `matrix://tool/mcp/chronos/${tool}@1.0.0` },
    ...{ surface: 'natural' as const, definition: { inputSchema: { type: 'object' } } },
  });
  const tools = ['alarm_set', 'alarm_list'].map(hosted);
  const set: unknown[] = [];
  const surface = createToolSet({
    host: {
      tools: () => tools,
      call(_alias, _tool, args) {
        set.push(args);
        return Promise.resolve({ content: [{ type: 'text', text: 'set' }] });
      },
      warnings: () => [],
      close: () => Promise.resolve(),
    },
    patterns: [],
    log: silentLogger,
  });
  const alarmSet = (args: object) => surface.dispatch('chronos__alarm_set', args, testCall());
  const refused = await alarmSet({ wake_message: 'look', tools: ['chronos__alarm_list', 'web_search'] });
  assert.equal(refused.isError, true);
  assert.match(
    textOf(refused),
    /^nothing was set: tools must be tools of the agent \(got "web_search"; it has chronos__alarm_list, chronos__alarm_set\)/,
  );
  assert.deepEqual(set, []);
  for (const args of [{ tools: ['chronos__alarm_list'] }, { tools: [] }, { tools: null }, {}]) await alarmSet(args);
  assert.equal(set.length, 4);

  // A turn with limited tools cannot leave the limit by an alarm.
  const { turn } = testCall();
  const limit = ['chronos__alarm_set', 'matrix://tool/mcp/chronos/alarm_list@1.0.0'];
  const limitedTurn = { ...turn, terms: { tools: limit } };
  const own = toolsOfTurn(limitedTurn, surface);
  const send = (args: object) => own.dispatch('chronos__alarm_set', args, { ...testCall(), turn: limitedTurn });
  const wider = [
    { wake_message: 'x' },
    { wake_message: 'x', tools: null },
    { wake_message: 'x', tools: '["chronos__alarm_set"]' },
    { alarm_id: 'a', wake_message: 'x' },
    { alarm_id: 'a', payload: {} },
    { alarm_id: 'a', tools: null },
    { alarm_id: null, wake_message: 'x' },
    { alarm_id: '', wake_message: 'x' },
    { alarm_id: 'a', more: { wake_message: 'x' } },
    { alarm_id: 'a', more: '{"payload": {}}' },
    { alarm_id: 'a', more: { tools: ['web_search'] } },
    { alarm_id: 'a', clear: ['tools'] },
    { alarm_id: 'a', clear: '["tools"]' },
    { alarm_id: 'a', clear: '["\\u0074ools"]' },
    { alarm_id: 'a', more: { clear: ['tools'] } },
    { alarm_id: 'a', more: { clear: '["\\u0074ools"]' } },
    { alarm_id: 'a', more: { run: { argv: ['true'] } } },
    { more: { alarm_id: null, wake_message: 'x' } },
  ];
  for (const args of wider)
    assert.match(textOf(await send(args)), /^nothing was set: (?:the alarm of this turn allows only|tools must be)/);
  assert.equal(set.length, 4);
  for (const args of [
    { wake_message: 'x', tools: ['chronos__alarm_list'] },
    { wake_message: 'x', more: { tools: ['none'] } },
    { alarm_id: 'a', action: 'pause' },
    { alarm_id: 'a', delay_seconds: 60 },
  ])
    assert.ok(!(await send(args)).isError, JSON.stringify(args));
  assert.equal(set.length, 8);
});
