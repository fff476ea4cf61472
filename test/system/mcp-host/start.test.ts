import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { loadManifest } from '../../../src/mcp-host/manifest.ts';
import { ServerPool } from '../../../src/mcp-host/server-pool.ts';
import { lockOf } from '../../../src/mcp-host/tool-lock.ts';
import { CHRONOMETRIC_TOOLS } from '../../../src/wire/chronometric-words.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { hostile, isAlive, reference, startPool, tame, textOf } from './bench.ts';

/** The pids that a fixture wrote down. */
const pidsIn = (file: string) => readFileSync(file, 'utf8').trim().split('\n').map(Number);

function refuses(code: string, ...parts: RegExp[]) {
  return (thrown: unknown) => {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    assert.equal(thrown.code, code, thrown.message);
    for (const part of parts) assert.match(thrown.message, part);
    return true;
  };
}

describe('a pool', () => {
  test('starts its servers, names their tools and calls them', async (t) => {
    const pool = await startPool(t, [tame(), hostile('tame')]);
    assert.deepEqual(pool.warnings(), []);
    assert.deepEqual(
      pool.tools().map(({ functionName, uri }) => [functionName, uri]),
      [
        ['hostile__work', 'matrix://tool/mcp/hostile/work@0.1.0'],
        ['tame__draw', 'matrix://tool/mcp/tame/draw@1.2.3'],
        ['tame__echo', 'matrix://tool/mcp/tame/echo@1.2.3'],
        ['tame__environment', 'matrix://tool/mcp/tame/environment@1.2.3'],
        ['tame__fail', 'matrix://tool/mcp/tame/fail@1.2.3'],
        ['tame__fill', 'matrix://tool/mcp/tame/fill@1.2.3'],
      ],
    );
    const echoed = await pool.call('tame', 'echo', { text: 'hällo 12345678901234567890' });
    assert.deepEqual(echoed, { content: [{ type: 'text', text: 'hällo 12345678901234567890' }], isError: false });
    assert.equal(pool.tools().find(({ tool }) => tool === 'echo')!.definition.annotations?.readOnlyHint, true);
  });

  test('speaks with a server that knows the 2026 revision only', async (t) => {
    const server = tame();
    const pool = await startPool(t, [{ ...server, args: [...(server.args as string[]), 'modern'] }]);
    assert.deepEqual(pool.warnings(), []);
    assert.equal(textOf(await pool.call('tame', 'echo', { text: 'hi' })), 'hi');
  });

  test('hosts the alarm and time tools of the manifest that ships, also while chronosd is down', async (t) => {
    const dataDir = temporaryFolder(t);
    const root = join(import.meta.dirname, '..', '..', '..');
    const variables = {
      PATH: process.env.PATH,
      HOME: dataDir,
      REVEILLE_HOME: dataDir,
      MATRIX_CHRONOS_URL: 'http://127.0.0.1:1',
      MATRIX_CHRONOS_TOKEN: 'chronos-token-of-the-tests',
      MATRIX_USER_ID: '0195f2b1-7c1e-7000-8000-000000000001',
      MATRIX_EXECUTOR_KEYFILE: join(dataDir, 'executor.key'),
    };
    const manifest = loadManifest(join(root, 'agents', 'neo.json'), variables);
    const reveille = [process.execPath, join(root, 'bin', 'reveille.ts')] as const;
    const pool = await ServerPool.start(manifest, {
      clock: systemClock,
      log: silentLogger,
      dataDir,
      programs: { reveille },
    });
    t.after(() => pool.close());
    const alarms = ['chronos__alarm_cancel', 'chronos__alarm_list', 'chronos__alarm_set'];
    const time = CHRONOMETRIC_TOOLS.map((name) => `chronometric__${name}`).sort();
    assert.deepEqual(
      pool.tools().map(({ functionName, surface }) => [functionName, surface]),
      [...time, ...alarms, 'fetch__fetch'].map((name) => [name, 'natural']),
    );
    assert.equal((await pool.call('chronos', 'alarm_list', {})).isError, true);
    const { isError, content } = await pool.call('chronometric', 'request_break_if_needed', { threshold_minutes: 45 });
    assert.deepEqual([isError, content[0]], [false, { type: 'text', text: 'null' }]);
  });

  test('keeps images and structured content', async (t) => {
    const pool = await startPool(t, [tame()]);
    const drawn = await pool.call('tame', 'draw', {});
    assert.deepEqual(drawn.structuredContent, { width: 1 });
    assert.deepEqual(drawn.content[1], { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' });
  });

  test('puts text that is too long into a file, and tells the model where', async (t) => {
    const pool = await startPool(t, [tame()], { outputTokens: 100 });
    const { content, spilled, isError } = await pool.call('tame', 'fill', { characters: 5000 });
    assert.equal(isError, false);
    assert.equal(readFileSync(spilled![0]!, 'utf8'), `<${'x'.repeat(5000)}>`);
    const [text, image] = content;
    assert.ok(text?.type === 'text' && text.text.length < 800);
    assert.ok(text.text.startsWith('<x') && text.text.endsWith('x>') && text.text.includes(spilled![0]!));
    assert.equal(image!.type, 'image');
  });

  test('tells of tools and servers that are not there in-band', async (t) => {
    const pool = await startPool(t, [tame()]);
    assert.equal(textOf(await pool.call('tame', 'nope', {})), 'server "tame" has no tool "nope"');
    assert.equal(textOf(await pool.call('nobody', 'echo', {})), 'there is no server "nobody"');
    const failed = await pool.call('tame', 'fail', {});
    assert.deepEqual([failed.isError, textOf(failed)], [true, 'no such file']);
    assert.equal((await pool.call('tame', 'echo', { text: 7 })).isError, true);
  });

  test('gives a child no variable but those on the list and its own', async (t) => {
    const variables = {
      NEO_MODEL_API_KEY: 'model-key-of-the-tests',
      FILES_TOKEN: 'files-token-of-the-tests',
      HOME: '/h',
    };
    const env = { FILES_TOKEN: reference('FILES_TOKEN'), MODE: 'fast', ELSE: reference('NOT_SET:-fallback') };
    const pool = await startPool(t, [tame('tame', { env })], { variables });
    const seen = JSON.parse(textOf(await pool.call('tame', 'environment', {}))) as Record<string, string>;
    assert.equal(seen.FILES_TOKEN, 'files-token-of-the-tests');
    assert.equal(seen.MODE, 'fast');
    assert.equal(seen.ELSE, 'fallback');
    assert.equal(seen.HOME, '/h');
    assert.equal(seen.NEO_MODEL_API_KEY, undefined);
  });

  test('ends its servers, also one that ignores the end of stdin and SIGTERM', async (t) => {
    const pids = join(temporaryFolder(t), 'pids');
    const pool = await startPool(t, [hostile('immortal', {}, pids), tame()]);
    const own = pidsIn(pids)[0]!;
    const groups = pool.servers().map(({ pid }) => pid!);
    assert.ok(isAlive(own));
    await pool.close();
    // Killed it is, its files are closed; the kernel may still be taking down the rest.
    await eventually('it is gone', () => !isAlive(own));
    for (const pid of groups) assert.ok(!isAlive(pid));
    await assert.rejects(pool.call('tame', 'echo', { text: '' }), /is being stopped/);
  });

  test('lets a call that is under way end before it closes', async (t) => {
    const pool = await startPool(t, [tame()]);
    const calls = Array.from({ length: 20 }, (_, index) => pool.call('tame', 'echo', { text: `${index}` }));
    await Promise.all([pool.close(), ...calls]);
    assert.deepEqual(
      (await Promise.all(calls)).map(textOf),
      Array.from({ length: 20 }, (_, index) => `${index}`),
    );
  });
});

describe('a server that does not start', () => {
  test('is a warning with its last words, and the others work', async (t) => {
    const servers = [hostile('dies-at-once'), { alias: 'missing', command: 'no-such-program-anywhere' }, tame()];
    const pool = await startPool(t, servers);
    assert.equal(textOf(await pool.call('tame', 'echo', { text: 'hi' })), 'hi');
    const [first, second] = pool.warnings();
    assert.match(
      first!,
      // Nothing follows its own words but what becomes of it.
      /^server "hostile" did not start: it exited with code 3; its last output: .*there is no configuration[^:]*; it is restarted in the background/,
    );
    assert.match(second!, /^server "missing" did not start: there is no program "no-such-program-anywhere"/);
    await assert.rejects(pool.call('hostile', 'work', {}), {
      mayHaveRun: false,
      reason: 'connection',
      retryable: true,
    });
  });

  test('stops the start when it is required, and nothing is left', async (t) => {
    const pids = join(temporaryFolder(t), 'pids');
    const servers = [hostile('tame', {}, pids), { ...hostile('dies-at-once'), alias: 'needed', required: true }];
    await assert.rejects(
      startPool(t, servers),
      refuses('unavailable', /server "needed" is required and did not start: it exited/),
    );
    assert.ok(!isAlive(pidsIn(pids)[0]!));
  });

  test('is given up after its time when it says nothing', async (t) => {
    const pids = join(temporaryFolder(t), 'pids');
    const pool = await startPool(t, [hostile('mute', {}, pids)], {
      startTimeoutMs: 1500,
    });
    assert.match(pool.warnings().join(), /did not start: it was not ready within 1500 ms/);
    assert.ok(!isAlive(pidsIn(pids)[0]!));
  });

  test('is started again in the background, and its tools appear', async (t) => {
    const file = join(temporaryFolder(t), 'go');
    const pool = await startPool(t, [hostile('starts-when-file', {}, file)]);
    assert.deepEqual(pool.tools(), []);
    const changed = new Promise<void>((resolve) => {
      pool.onChange(() => pool.tools().length > 0 && resolve());
    });
    writeFileSync(file, '');
    await changed;
    assert.deepEqual(pool.warnings(), []);
    assert.equal((await pool.call('hostile', 'work', {})).isError, false);
  });

  test('is refused in its own words when it turns the handshake away', async (t) => {
    const pool = await startPool(t, [hostile('refuses-handshake')]);
    assert.match(pool.warnings().join(), /the licence has run out/);
  });

  test('may list pages without end and is not believed', async (t) => {
    const pool = await startPool(t, [hostile('endless-pages')]);
    assert.match(pool.warnings().join(), /listMaxPages/);
  });

  test('is named with the variables that it lacks', async (t) => {
    const pool = await startPool(t, [
      tame('tame', { env: { A: reference('LACKING_ONE'), B: reference('LACKING_TWO') } }),
    ]);
    assert.deepEqual(pool.warnings(), [
      'server "tame" is not started: it refers to LACKING_ONE, LACKING_TWO, which are not set',
    ]);
  });

  test('can be called off while others are still starting', async (t) => {
    const pids = join(temporaryFolder(t), 'pids');
    const stop = new AbortController();
    const starting = startPool(t, [hostile('mute', {}, pids)], { signal: stop.signal });
    const refused = assert.rejects(starting, refuses('unavailable', /cancelled/));
    const pid = await eventually('it runs', () => {
      try {
        return pidsIn(pids)[0];
      } catch {
        return false;
      }
    });
    stop.abort();
    await refused;
    assert.ok(!isAlive(pid));
  });
});

describe('a server that lists a tool twice', () => {
  const twice = /server "hostile": "work" is listed twice by the server/;

  test('is a warning and in quarantine for good where nothing was agreed on, and the others work', async (t) => {
    const pids = join(temporaryFolder(t), 'pids');
    const pool = await startPool(t, [hostile('lists-twice', {}, pids), tame()]);
    assert.deepEqual(pool.warnings(), [
      'server "hostile" is in quarantine, because its tools are not the declared and pinned ones: "work" is listed twice by the server',
    ]);
    assert.equal(pool.servers()[0]!.state, 'quarantined');
    assert.ok(!isAlive(pidsIn(pids)[0]!));
    assert.ok(pool.tools().every(({ alias }) => alias === 'tame'));
    assert.equal(textOf(await pool.call('tame', 'echo', { text: 'hi' })), 'hi');
    const refused = await pool.call('hostile', 'work', {});
    assert.deepEqual([refused.isError, refused.withoutResult], [true, 'unsent']);
    assert.match(textOf(refused), /^hostile\/work is not available: server "hostile" is in quarantine/);
  });

  test('stops the start where it is required', async (t) => {
    await assert.rejects(
      startPool(t, [hostile('lists-twice', { required: true })]),
      refuses('unavailable', /server "hostile" is required and did not start: "work" is listed twice by the server/),
    );
  });

  test('stops the start where its tools are declared or pinned', async (t) => {
    const declared = hostile('lists-twice', { tools: [{ name: 'work' }] });
    await assert.rejects(startPool(t, [declared]), refuses('conflict', twice));
    const lock = lockOf((await startPool(t, [hostile('tame')])).tools());
    await assert.rejects(startPool(t, [hostile('lists-twice')], { lock }), refuses('conflict', twice));
  });
});

describe('tools that are declared', () => {
  const declared = (...names: string[]) => ({ tools: names.map((name) => ({ name })) });

  test('must be those that the server has, and every difference is named', async (t) => {
    const servers = [
      hostile('tame', declared('wrok', 'rest')),
      tame('tame', declared('echo', 'draw', 'fail', 'fill', 'extra')),
    ];
    await assert.rejects(
      startPool(t, servers),
      refuses(
        'conflict',
        /server "hostile": "work" is not declared in the manifest/,
        /server "hostile": "wrok" is declared in the manifest, but the server does not have it/,
        /server "hostile": "rest" is declared/,
        /server "tame": "environment" is not declared/,
        /server "tame": "extra" is declared/,
      ),
    );
  });

  test('carry their class, surface and timeout', async (t) => {
    const tools = [{ name: 'work', side_effect_class: 'write', surface: 'escalate', timeout_ms: 1234 }];
    const pool = await startPool(t, [hostile('tame', { tools, version: '9.9.9+b' })]);
    const [tool] = pool.tools();
    assert.deepEqual([tool!.sideEffectClass, tool!.surface, tool!.timeoutMs], ['write', 'escalate', 1234]);
    assert.equal(tool!.uri, 'matrix://tool/mcp/hostile/work@9.9.9%2Bb');
  });
});
