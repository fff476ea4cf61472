/** What one alarm says of its turn, from chronosd through the router to the agent and the notifier. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { neoChild } from '../../src/agents/neo/testing/neo-child.ts';
import { settledTurns, TOKEN } from '../../src/agents/neo/testing/workbench.ts';
import { systemClock } from '../../src/kit/clock/clock.ts';
import { silentLogger } from '../../src/kit/log/log.ts';
import { calling, modelEndpoint, type Script, saying } from '../../src/kit/model/testing/model-endpoint.ts';
import { startNotifier } from '../../src/notify/daemon.ts';
import { NOTIFICATION_KINDS } from '../../src/notify/news.ts';
import { type ChannelAdd, NotifyStore } from '../../src/notify/store.ts';
import { eventually } from '../support/eventually.ts';
import { callsIn, installAgent } from '../support/stand-ins/agents/executable.ts';
import { startStandInNtfy } from '../support/stand-ins/ntfy.ts';
import { atEnd, temporaryFolder } from '../support/temporary.ts';
import { manifestWith } from '../system/neo/manifests.ts';
import { openChronosdWithRouter, USER } from './chronosd-with-router.ts';

const TOOLS = [
  { name: 'get_price', side_effect_class: 'read' },
  { name: 'note', surface: 'natural' },
  ...['ApproveSpender', 'die', 'draw', 'fail', 'simulate_transfer', 'tidy_up', 'transfer_coins', 'wipe_everything'].map(
    (name) => ({ name }),
  ),
];

async function open(t: TestContext, ...scripts: Script[]) {
  const daemons = await openChronosdWithRouter(t);
  const endpoint = await modelEndpoint(t, ...scripts);
  const log = join(daemons.folder, 'calls.log');
  const manifest = manifestWith(daemons.folder, 'm', 'market-server.ts', [log], { tools: TOOLS });
  const neo = await neoChild(join(daemons.folder, 'neo'), {
    ...{ NEO_CHRONOS_URL: daemons.chronosUrl, NEO_MODEL: 'large', NEO_MODEL_BASE_URL: endpoint.baseUrl },
    // Learning would ask the endpoint after each turn.
    ...{ NEO_MANIFEST: manifest, NEO_CHEAP_MODEL: 'none' },
  });
  atEnd(t, () => neo.end('SIGKILL'));
  await daemons.put(USER, { provider: 'http', spec: { url: neo.url }, token: TOKEN });
  return {
    ...{ daemons, endpoint, neo },
    calls: () => (existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : []),
    asked: () =>
      endpoint.requests.map(({ body }) => [body.model, body.tools?.map(({ function: { name } }) => name) ?? []]),
    conversationOf: async (id: string) => (await daemons.finished(id)).turn!.conversation_id!,
  };
}

test('a turn uses the model and the tools of its alarm and no others, whatever the model asks for', async (t) => {
  const { daemons, endpoint, neo, calls, asked, conversationOf } = await open(
    t,
    calling({ name: 'm__note' }, { name: 'm__get_price', args: { thing: 'tea' } }),
    saying('It costs 3.'),
    saying('A plain turn.'),
    saying('Without tools.'),
  );
  const id = await daemons.setAlarm({ model: 'small', tools: ['m__get_price'], deliver: ['phone'] });
  const [turn] = await settledTurns(neo, await conversationOf(id));
  assert.deepEqual([turn!.status, turn!.reply], ['done', 'It costs 3.']);
  assert.deepEqual(turn!.terms, { model: 'small', tools: ['m__get_price'], deliver: ['phone'] });
  assert.deepEqual(asked(), [
    ['small', ['m__get_price']],
    ['small', ['m__get_price']],
  ]);
  const [refused, answered] = endpoint.requests[1]!.body.messages.slice(-2);
  assert.match(refused!.content, /"m__note" was not called: the alarm of this turn allows only "m__get_price"/);
  assert.equal(answered!.content, 'tea costs 3');
  assert.deepEqual(calls(), ['get_price']);

  await daemons.finished(await daemons.setAlarm());
  const [model, tools] = asked().at(-1) as [string, string[]];
  assert.deepEqual([model, tools.includes('m__note')], ['large', true]);

  await daemons.finished(await daemons.setAlarm({ tools: [] }));
  assert.deepEqual(asked().at(-1), ['large', []]);
});

test('a tool that the agent does not have fails the turn with its name, and no request is made', async (t) => {
  const { daemons, asked } = await open(t);
  const { turn } = await daemons.finished(await daemons.setAlarm({ tools: ['m__prize'] }));
  assert.equal(turn!.ok, false);
  assert.match(
    turn!.error!,
    /tools must be tools of the agent \(got "m__prize"; it has .*m__get_price.*\); omit tools/,
  );
  assert.deepEqual(asked(), []);
});

test('Claude Code gets the model and the tools as arguments, and Codex does not run a turn with tools', async (t) => {
  const home = realpathSync(temporaryFolder(t));
  for (const name of ['claude', 'codex'] as const) installAgent(join(home, 'bin'), name);
  const daemons = await openChronosdWithRouter(t, { PATH: `${join(home, 'bin')}:/usr/bin:/bin`, HOME: home });
  await daemons.put(USER, { provider: 'command', spec: { preset: 'claude', cwd: daemons.work } });
  const done = await daemons.finished(await daemons.setAlarm({ model: 'haiku', tools: ['Read', 'Grep'] }));
  assert.equal(done.turn!.ok, true);
  assert.deepEqual(callsIn(home)[0]!.argv.slice(-5), [
    '--model',
    'haiku',
    '--tools',
    'Read,Grep',
    '--strict-mcp-config',
  ]);

  await daemons.put(USER, { provider: 'command', spec: { preset: 'codex', cwd: daemons.work } });
  const refused = await daemons.finished(await daemons.setAlarm({ tools: ['shell'] }));
  assert.deepEqual([refused.outcome, refused.attempt, refused.turn!.ok], ['delivered', 1, false]);
  assert.match(refused.turn!.error!, /tools \(got "shell"\) cannot be limited for the preset codex; omit them/);
  assert.equal(callsIn(home).length, 1);
});

test('a result reaches the named channel once, and a turn with nothing to report sends no notification and is kept', async (t) => {
  const { daemons, neo, conversationOf } = await open(
    t,
    saying('\nNOTHING_TO_REPORT '),
    saying('The tea is ready.'),
    saying('NOTHING_TO_REPORT'),
    saying('For an unknown channel.'),
  );
  const ntfy = await startStandInNtfy(t);
  const clock = systemClock;
  const store = new NotifyStore({ dir: join(daemons.folder, 'notify'), clock, lock: 'exclusive' });
  const add = (name: string, more: Partial<ChannelAdd> = {}) =>
    store.addChannel(
      {
        ...{ user: USER, name, kind: 'ntfy', spec: { server: ntfy.url, topic: name, allow_private: true } },
        ...{ told: [], quiet: undefined, quietAll: false, ...more },
      } as ChannelAdd,
      clock.now(),
    );
  add('phone');
  add('desk', { told: NOTIFICATION_KINDS });
  add('bobs', { user: 'bob', told: NOTIFICATION_KINDS });
  const notifier = startNotifier({
    ...{ store, user: USER, alarms: daemons.client(), tasks: undefined, consoleUrl: undefined, zone: 'UTC' },
    ...{ variables: {}, clock, log: silentLogger, random: Math.random },
  });
  atEnd(t, async () => {
    await notifier.close();
    store.close();
  });
  const shown = () => ntfy.published.map(({ topic, title }) => `${topic} ${title}`).sort();

  const silent = await daemons.setAlarm({ label: 'quiet', deliver: ['phone'] });
  const [kept] = await settledTurns(neo, await conversationOf(silent));
  assert.equal(kept!.reply!.trim(), 'NOTHING_TO_REPORT');
  await daemons.finished(await daemons.setAlarm({ label: 'tea', deliver: ['phone', 'desk', 'bobs'] }));
  const wanted = ['desk Done: tea', 'desk No channel "bobs"', 'desk Rang: tea', 'phone Done: tea'];
  await eventually('the result is delivered', () => shown().length >= wanted.length);
  await daemons.finished(await daemons.setAlarm({ label: 'quiet too' }));
  await daemons.finished(await daemons.setAlarm({ label: 'fax', deliver: ['fax'] }));
  const last = ['desk Done: fax', 'desk No channel "fax"', 'desk Rang: fax'];
  await eventually('the last result is delivered', () => shown().length >= wanted.length + last.length);
  assert.deepEqual(shown(), [...wanted, ...last].sort());
});
