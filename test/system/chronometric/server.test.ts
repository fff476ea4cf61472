import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { openChronometric } from '../../../src/chronometric/daemon.ts';
import { openState } from '../../../src/chronometric/state/open-state.ts';
import { systemClock, wait } from '../../../src/kit/clock/clock.ts';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import {
  breakAnswerSchema,
  idleStatusSchema,
  sessionEndedSchema,
  sessionStartedSchema,
  timeContextSchema,
} from '../../../src/wire/chronometric.ts';
import {
  CHRONOMETRIC_ERRORS,
  CHRONOMETRIC_TOOLS,
  type ChronometricTool,
} from '../../../src/wire/chronometric-vocabulary.ts';
import { noSmallDisk, SmallDisk } from '../../support/cluster/small-disk.ts';
import { personOf, serverCommand, startServer } from './server-process.ts';

const STRICT = {
  get_time_context: timeContextSchema,
  mark_session_start: sessionStartedSchema,
  mark_session_end: sessionEndedSchema,
  request_break_if_needed: breakAnswerSchema,
  idle_status: idleStatusSchema,
} as const;

for (const mode of ['legacy', { pin: '2026-07-28' }, 'auto'] as const) {
  test(`the SDK's client can use every tool (${JSON.stringify(mode)})`, async (t) => {
    const client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode } });
    await client.connect(new StdioClientTransport({ ...serverCommand(personOf(t)), stderr: 'ignore' }));
    t.after(() => client.close());
    const { tools } = await client.listTools();
    assert.deepEqual(
      tools.map(({ name }) => name),
      [...CHRONOMETRIC_TOOLS],
    );
    // The client checks structured content against the output schema itself, and throws on a mismatch.
    const answers = {
      get_time_context: await client.callTool({ name: 'get_time_context' }),
      mark_session_start: await client.callTool({ name: 'mark_session_start', arguments: { intent: ' a ' } }),
      request_break_if_needed: await client.callTool({
        name: 'request_break_if_needed',
        arguments: { threshold_minutes: 5 },
      }),
      idle_status: await client.callTool({ name: 'idle_status', arguments: {} }),
      mark_session_end: await client.callTool({ name: 'mark_session_end', arguments: { summary: ' b ' } }),
    };
    for (const [name, { structuredContent, content, isError }] of Object.entries(answers)) {
      assert.equal(isError ?? false, false, name);
      STRICT[name as keyof typeof STRICT].strict().parse(structuredContent);
      const [text] = content as [{ type: string; text: string }];
      const json = name === 'request_break_if_needed' ? { result: JSON.parse(text.text) } : JSON.parse(text.text);
      assert.deepEqual(json, structuredContent, name);
    }
    const refused = await client.callTool({ name: 'mark_session_end' });
    assert.equal(refused.isError, true);
    assert.equal(refused.structuredContent, undefined);
    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri }) => uri),
      ['chronometric://sessions/today', 'chronometric://sessions/week'],
    );
    for (const { uri } of resources) {
      const { contents } = await client.readResource({ uri });
      const page = JSON.parse((contents[0] as { text: string }).text);
      const sessions = uri.endsWith('today') ? page.sessions : page.days.at(-1).sessions;
      assert.deepEqual([sessions[0].intent, sessions[0].summary], [' a ', ' b ']);
    }
    await assert.rejects(client.readResource({ uri: 'chronometric://sessions/ever' }), /not found/);
  });
}

test('each tool describes to a model its purpose and its effects', async (t) => {
  const server = await startServer(t, personOf(t));
  const { result } = await server.request('tools/list', {});
  const hints: Record<string, boolean> = {};
  for (const { name, title, description, inputSchema, outputSchema, annotations } of result.tools) {
    assert.ok(title && description.length > 150, name);
    assert.equal(inputSchema.additionalProperties, false);
    assert.equal(outputSchema.type, 'object');
    assert.deepEqual([annotations.openWorldHint, annotations.destructiveHint], [false, false]);
    hints[name] = annotations.readOnlyHint;
  }
  assert.deepEqual(hints, {
    get_time_context: true,
    mark_session_start: false,
    mark_session_end: false,
    request_break_if_needed: true,
    idle_status: true,
  });
});

describe('an error', () => {
  const WRONG: [tool: string, args: unknown, code: string][] = [
    ['mark_session_start', undefined, 'INTENT_REQUIRED'],
    ['mark_session_start', { intent: 7 }, 'INTENT_REQUIRED'],
    ['mark_session_start', { intent: ' \n' }, 'INTENT_REQUIRED'],
    ['mark_session_start', { intent: 'x'.repeat(16_385) }, 'INTENT_TOO_LONG'],
    ['mark_session_end', { summary: 'x'.repeat(16_385) }, 'SUMMARY_TOO_LONG'],
    ['mark_session_end', {}, 'NO_OPEN_SESSION'],
    ['request_break_if_needed', {}, 'INVALID_THRESHOLD'],
    ['request_break_if_needed', { threshold_minutes: '45 minutes' }, 'INVALID_THRESHOLD'],
    ['request_break_if_needed', { threshold_minutes: 0.5 }, 'INVALID_THRESHOLD'],
    ['request_break_if_needed', { threshold_minutes: -1 }, 'INVALID_THRESHOLD'],
    ['request_break_if_needed', { threshold_minutes: null }, 'INVALID_THRESHOLD'],
  ];

  test('is a result with a code of the closed set and a message, as text alone', async (t) => {
    const server = await startServer(t, personOf(t));
    for (const [tool, args, code] of WRONG) {
      const { parsed: json, isError, structured } = await server.call(tool, args);
      assert.equal(isError, true, `${tool} ${JSON.stringify(args)}`);
      assert.deepEqual(Object.keys(json), ['code', 'message']);
      assert.equal(json.code, code);
      assert.ok(CHRONOMETRIC_ERRORS.includes(json.code));
      assert.ok(json.message.length > 20);
      assert.equal(structured, undefined);
    }
  });

  test('outside the closed set of codes is a protocol error', async (t) => {
    const server = await startServer(t, personOf(t));
    const wrong: [string, unknown, RegExp][] = [
      ['mark_session_end', { summary: 7 }, /summary must be text/],
      ['get_the_time', {}, /the tools are get_time_context/],
    ];
    for (const [tool, args, message] of wrong) {
      const { protocolError } = await server.call(tool, args);
      assert.equal(protocolError?.code, -32602);
      assert.match(protocolError.message, message);
    }
  });
});

test('unknown arguments are ignored, a session id too', async (t) => {
  const server = await startServer(t, personOf(t));
  const { structured: first } = await server.call('mark_session_start', { intent: 'a', session_id: 'mine' });
  const { structured: ended } = await server.call('mark_session_end', { session_id: 'another', force: true });
  assert.equal(ended.session_id, first.session_id);
  assert.match(first.session_id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal((await server.call('get_time_context', { random_string: 'x' })).isError, false);
});

test('two servers see one session and one last prompt, also across restarts, and no call is a prompt', async (t) => {
  const person = personOf(t);
  const [one, other] = [await startServer(t, person), await startServer(t, person)];
  const { structured: started } = await one.call('mark_session_start', { intent: '  both windows\n' });
  for (const server of [one, other, one])
    assert.equal((await server.call('get_time_context')).structured.time_since_last_prompt, null);
  // As `reveille time hook` does.
  const state = openState({ dataDir: person.dataDir, clock: systemClock, dayEnd: (instant) => instant });
  t.after(() => state.close());
  state.prompted(systemClock.now());
  for (const server of [one, other])
    assert.match((await server.call('get_time_context')).structured.time_since_last_prompt, /^PT\d+S$/);
  const { structured: taken } = await other.call('mark_session_start', { intent: 'next' });
  assert.deepEqual(
    [taken.auto_closed_prior_session.session_id, taken.auto_closed_prior_session.intent],
    [started.session_id, '  both windows\n'],
  );
  assert.deepEqual([await one.end(), await other.end()], [0, 0]);
  const later = await startServer(t, person);
  assert.match((await later.call('get_time_context')).structured.time_since_last_prompt, /^PT\d+S$/);
  assert.equal((await later.call('mark_session_end')).structured.session_id, taken.session_id);
});

test('the overlap policy of the profile applies from the next call on', async (t) => {
  const person = personOf(t);
  const server = await startServer(t, person, { env: { REVEILLE_PROFILE: person.profile } });
  writeFileSync(person.profile, 'chronometric:\n  session_overlap_policy: error\n');
  await server.call('mark_session_start', { intent: 'first' });
  const refused = await server.call('mark_session_start', { intent: 'second' });
  assert.equal(refused.parsed.code, 'SESSION_ALREADY_OPEN');
  writeFileSync(person.profile, 'chronometric:\n  session_overlap_policy: auto_close\n');
  assert.equal(
    (await server.call('mark_session_start', { intent: 'third' })).structured.auto_closed_prior_session.intent,
    'first',
  );
});

test('an unreadable profile disables only the parts that depend on it', async (t) => {
  const person = personOf(t);
  writeFileSync(person.profile, 'privacy: [unclosed\n');
  const server = await startServer(t, person, { env: { REVEILLE_PROFILE: person.profile } });
  assert.equal((await server.call('get_time_context')).structured.energy_zone, 'unknown');
  assert.deepEqual((await server.call('idle_status')).structured, {
    consent_granted: false,
    hyperfocus_signal: 'unknown',
  });
  assert.equal(
    (await server.call('request_break_if_needed', { threshold_minutes: 1 })).parsed.code,
    'PROFILE_UNREADABLE',
  );
  assert.equal((await server.call('mark_session_start', { intent: 'a' })).isError, false);
  assert.equal((await server.call('mark_session_start', { intent: 'b' })).parsed.code, 'PROFILE_UNREADABLE');
  assert.equal((await server.call('mark_session_end')).structured.intent, 'a');
  rmSync(person.profile);
  const { parsed: json } = await server.call('request_break_if_needed', { threshold_minutes: 1 });
  assert.match(json.message, /does not exist/);
});

test('a machine without a time zone is reported, and a zone in the profile helps at once', async (t) => {
  const person = personOf(t);
  const server = await startServer(t, person, { zone: 'Nowhere/Land', env: { REVEILLE_PROFILE: person.profile } });
  writeFileSync(person.profile, '');
  for (const tool of CHRONOMETRIC_TOOLS.filter((name) => name !== 'idle_status')) {
    const { parsed: json } = await server.call(tool, { intent: 'a', threshold_minutes: 1 });
    assert.equal(json.code, 'INTERNAL_CLOCK_UNAVAILABLE', tool);
  }
  assert.equal((await server.call('idle_status')).isError, false, 'which never fails');
  writeFileSync(person.profile, 'chronometric:\n  timezone: Asia/Kathmandu\n');
  assert.match((await server.call('get_time_context')).structured.now, /\+05:45$/);
  assert.equal((await server.call('mark_session_end')).parsed.code, 'NO_OPEN_SESSION');
});

test('each call that needs the state reports a failure to open it, and the next one tries again', async (t) => {
  const person = personOf(t);
  mkdirSync(dirname(person.dataDir), { recursive: true });
  writeFileSync(person.dataDir, 'a file where a folder should be');
  const server = await startServer(t, person);
  assert.equal((await server.request('tools/list', {})).result.tools.length, 5);
  for (const tool of ['mark_session_start', 'mark_session_end', 'request_break_if_needed']) {
    const { protocolError } = await server.call(tool, { intent: 'a', threshold_minutes: 1 });
    assert.equal(protocolError?.code, -32603, tool);
    assert.ok(protocolError.message.includes(person.dataDir), protocolError.message);
  }
  rmSync(person.dataDir);
  assert.equal((await server.call('mark_session_start', { intent: 'a' })).isError, false);
  assert.equal(await server.end(), 0);
});

test('each call reports a full disk, and nothing is lost when there is space again', async (t) => {
  const reason = noSmallDisk();
  if (reason !== false) return t.skip(reason);
  const person = personOf(t);
  const disk = new SmallDisk(4);
  const server = await startServer(t, { ...person, dataDir: disk.folder });
  // After the server's own end: no process may use the disk any more.
  t.after(() => disk.remove());
  await server.call('mark_session_start', { intent: 'outlive a full disk' });
  disk.fill();
  const { protocolError } = await server.call('mark_session_end', { summary: 'x'.repeat(2000) });
  assert.equal(protocolError?.code, -32603);
  assert.match(protocolError.message, /full|nothing was stored/);
  disk.free();
  assert.equal((await server.call('mark_session_end')).structured.intent, 'outlive a full disk');
  assert.equal(await server.end(), 0);
});

describe('the server ends', () => {
  test('with exit 0 when stdin ends, after it has answered 20 calls from a pipe', async (t) => {
    const { command, args, env } = serverCommand(personOf(t));
    const names = ['get_time_context', 'idle_status'];
    const calls = Array.from(
      { length: 20 },
      (_, id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${names[id % 2]}"}}`,
    );
    const running = promisify(execFile)(command, args, { env });
    running.child.stdin!.end(calls.join('\n'));
    const answers = (await running).stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      answers.map(({ id }) => id).sort((a, b) => a - b),
      [...calls.keys()],
    );
    for (const { result } of answers) assert.ok(result.structuredContent);
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`with exit 0 at ${signal}`, async (t) => {
      const server = await startServer(t, personOf(t));
      await server.call('get_time_context');
      server.child.kill(signal);
      assert.equal(await server.exited, 0);
    });
  }

  test('not after a message that exceeds the length limit: it is refused', async (t) => {
    const server = await startServer(t, personOf(t));
    server.write(`{"jsonrpc":"2.0","id":99,"method":"ping","params":{"x":"${'x'.repeat(17 * 1024 * 1024)}"}}`);
    await server.call('get_time_context');
    assert.match(server.stdout(), /"code":-32600,"message":"a message must have at most 16777216 bytes/);
    assert.equal(await server.end(), 0);
  });

  test('when its answers are no longer read', async (t) => {
    const server = await startServer(t, personOf(t));
    server.child.stdout.destroy();
    server.write('{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"get_time_context"}}');
    assert.equal(await server.exited, 0);
  });
});

/** A server in this process, on a clock that the test moves: nights and breaks pass at once. */
async function onManualClock(t: TestContext, startsAt: string, presence: 'running' | 'calls' = 'running') {
  const person = personOf(t);
  writeFileSync(person.profile, 'chronometric:\n  timezone: Europe/Berlin\n  end_of_day_local: "18:00"\n');
  const clock = new ManualClock(Date.parse(startsAt));
  const parts = {
    dataDir: person.dataDir,
    environment: { REVEILLE_PROFILE: person.profile },
    log: silentLogger,
    presence,
    clock,
  };
  const chronometric = openChronometric({ ...parts, machineZone: () => undefined });
  t.after(() => chronometric.close());
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of many shapes
  const call = async (name: ChronometricTool, args: object = {}): Promise<any> =>
    (await chronometric.call(name, { ...args }, new AbortController().signal)).text;
  // As another program on the machine does it: the prompt hook.
  const state = openState({ dataDir: person.dataDir, clock, dayEnd: (instant) => instant + 86_400_000 });
  t.after(() => state.close());
  return { clock, call, profile: person.profile, state };
}

const HOUR = 3_600_000;
const MINUTE = 60_000;

test('eight hours of sleep are not work, and a forgotten session ends when it was last seen', async (t) => {
  const { clock, call } = await onManualClock(t, '2026-06-15T20:00:00+02:00');
  await call('mark_session_start', { intent: 'one more hour' });
  await clock.advance(HOUR);
  assert.equal((await call('get_time_context')).active_length, 'PT1H');
  // The lid is closed: the wall clock continues, no timer does.
  clock.jump(10 * HOUR);
  await clock.advance(MINUTE);
  const morning = await call('get_time_context');
  assert.match(morning.active_length, /^PT1H(1M)?(\d+S)?$/);
  assert.equal(morning.current_session_length, 'PT11H1M', 'no client has ended it');
  const { auto_closed_prior_session: forgotten } = await call('mark_session_start', { intent: 'a new day' });
  assert.equal(forgotten.intent, 'one more hour');
  assert.deepEqual([forgotten.ended_at, forgotten.duration], ['2026-06-15T21:00:00+02:00', 'PT1H']);
});

test('the count of a break request restarts after a real break, and half past midnight is one level harder', async (t) => {
  const { clock, call } = await onManualClock(t, '2026-06-15T22:00:00+02:00');
  await call('mark_session_start', { intent: 'night shift' });
  const ask = () => call('request_break_if_needed', { threshold_minutes: 45 });
  await clock.advance(44 * MINUTE);
  assert.equal(await ask(), null);
  await clock.advance(MINUTE);
  const due = await ask();
  assert.deepEqual([due.elapsed, due.active_elapsed, due.level], ['PT45M', 'PT45M', 'none'], 'under 60 minutes');
  clock.jump(5 * MINUTE);
  await clock.advance(44 * MINUTE);
  assert.equal(await ask(), null);
  await clock.advance(61 * MINUTE);
  const late = await ask();
  assert.match((await call('get_time_context')).now, /^2026-06-16T00:35:00/);
  assert.deepEqual([late.level, late.reason.rung, late.reason.rule], ['hard', 2, 'past_end_of_day']);
  assert.deepEqual([late.elapsed, late.active_elapsed, late.threshold_from], ['PT2H35M', 'PT1H44M45S', 'caller']);
});

test('a clock that is set back makes nothing negative and ends no session in the future', async (t) => {
  const { clock, call } = await onManualClock(t, '2026-06-15T12:00:00+02:00');
  await call('mark_session_start', { intent: 'back and forth' });
  await clock.advance(10 * MINUTE);
  clock.jump(-3 * HOUR);
  const { time_since_last_prompt, current_session_length } = await call('get_time_context');
  assert.equal(time_since_last_prompt, null);
  assert.match(current_session_length, /^PT\d/);
  const ended = await call('mark_session_end');
  assert.deepEqual([ended.duration, ended.active_duration], ['PT0S', 'PT0S']);
});

test('under a daemon that runs all night only prompts count as presence, and a woken agent is not work', async (t) => {
  const { clock, call, state } = await onManualClock(t, '2026-06-15T17:00:00+02:00', 'calls');
  await call('mark_session_start', { intent: 'a word with Neo' });
  // A conversation: a prompt every two minutes.
  for (let said = 0; said < 15; said++) {
    await clock.advance(2 * MINUTE);
    state.prompted(clock.now());
  }
  assert.equal((await call('get_time_context')).active_length, 'PT30M');
  await clock.advance(12 * HOUR);
  // An alarm at half past five.
  assert.match((await call('get_time_context')).now, /^2026-06-16T05:30/);
  await clock.advance(4 * HOUR);
  assert.equal(await call('request_break_if_needed', { threshold_minutes: 1 }), null);
  const { auto_closed_prior_session: forgotten } = await call('mark_session_start', { intent: 'a new day' });
  assert.match(forgotten.ended_at, /^2026-06-15T17:3[0-5]/);
  assert.match(forgotten.active_duration, /^PT3[0-5]M/);
});

test('queries of the time and the idle state, however many, change no other answer', async (t) => {
  const evening = async (asks: boolean) => {
    const { clock, call } = await onManualClock(t, '2026-06-15T17:00:00+02:00', 'calls');
    const answers: unknown[] = [];
    const ask = async () => {
      for (const tool of ['get_time_context', 'idle_status'] as const) if (asks) await call(tool);
    };
    await ask();
    const { started_at } = await call('mark_session_start', { intent: 'watched' });
    for (let minute = 0; minute < 40; minute += 2) {
      await clock.advance(2 * MINUTE);
      await ask();
    }
    answers.push(started_at, await call('request_break_if_needed', { threshold_minutes: 1 }));
    const { time_since_last_prompt, active_length, current_session_length } = await call('get_time_context');
    answers.push(time_since_last_prompt, active_length, current_session_length);
    const { session_id: _, ...ended } = await call('mark_session_end');
    return [...answers, ended];
  };
  const [watched, alone] = [await evening(true), await evening(false)];
  assert.deepEqual(watched, alone);
  assert.deepEqual(watched.slice(2, 5), [null, 'PT4M45S', 'PT40M']);
});

test('a running server counts as presence beside an agent CLI, and not with --by-calls, as the agents of daemons run it', async (t) => {
  for (const flags of [[], ['--by-calls']]) {
    const person = personOf(t);
    const server = await startServer(t, person, { flags });
    const state = openState({ dataDir: person.dataDir, clock: systemClock, dayEnd: (instant) => instant });
    t.after(() => state.close());
    const readPresence = async () => {
      await server.request('resources/read', { uri: 'chronometric://sessions/today' });
      return state.spansBetween(0, Number.MAX_SAFE_INTEGER).length;
    };
    // The first beat comes when the tools are loaded.
    while (flags.length === 0 && (await readPresence()) === 0) await wait(systemClock, 20);
    for (let reads = 0; reads < 5; reads++) assert.equal(await readPresence(), flags.length === 0 ? 1 : 0);
  }
  for (const agent of ['neo', 'default']) {
    const manifest = readFileSync(join(import.meta.dirname, '..', '..', '..', 'agents', `${agent}.json`), 'utf8');
    const { servers } = JSON.parse(manifest) as { servers: { alias: string; command?: string }[] };
    const { command } = servers.find(({ alias }) => alias === 'chronometric')!;
    assert.equal(command, 'reveille chronometric --by-calls', agent);
  }
});

test('changed zones, thresholds and the ladder in the profile apply at once, without a restart', async (t) => {
  const { clock, call, profile } = await onManualClock(t, '2026-06-15T10:00:00+02:00');
  const ask = () => call('request_break_if_needed', { threshold_minutes: 200 });
  await call('mark_session_start', { intent: 'half an hour' });
  await clock.advance(31 * MINUTE);
  assert.equal((await call('get_time_context')).energy_zone, 'morning_peak');
  assert.equal(await ask(), null);
  const lines = [
    '  hyperfocus_break_minutes: 30',
    '  hyperfocus_ladder_minutes: [10, 20, 30]',
    '  zones: {midday: "10:00-11:00"}',
  ];
  writeFileSync(profile, ['chronometric:', '  timezone: Asia/Kathmandu', ...lines, ''].join('\n'));
  assert.equal((await call('get_time_context')).now, '2026-06-15T14:16:00+05:45');
  const { threshold_minutes, level, reason } = await ask();
  assert.deepEqual([threshold_minutes, level, reason.rung, reason.profile_line], [30, 'hard', 3, 3]);
  writeFileSync(profile, ['chronometric:', '  timezone: Europe/Berlin', ...lines, ''].join('\n'));
  assert.equal((await call('get_time_context')).energy_zone, 'midday');
});
