/** Each kind of check with each verdict, and input that is wrong or hostile, at a real router. */

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ADMIN_TOKEN, WAKE_TOKEN } from '../../../src/router/testing/bench.ts';
import { CHECK_HEADER, readVerdict } from '../../../src/wire/check-verdict.ts';
import { commandLines } from '../../support/command-lines.ts';
import { needs } from '../../support/tools.ts';
import { type ChecksBench, checksBench, SECRET } from './bench.ts';

/** Decides, and expects a skip without a start. */
async function skips(bench: ChecksBench, check: object, reason: RegExp, state: object = {}) {
  const starts = bench.starts();
  const { status, verdict, text } = await bench.decide(check, state);
  assert.equal(status, 200, text);
  assert.equal(verdict?.verdict, 'skip', text);
  assert.match(verdict.reason, reason);
  assert.equal(bench.starts(), starts);
}

async function wakes(bench: ChecksBench, check: object, reason: RegExp, state: object = {}) {
  const { status, verdict, text } = await bench.decide(check, state);
  assert.equal(status, 202, text);
  assert.equal(verdict?.verdict, 'wake');
  assert.match(verdict.reason, reason);
  assert.equal(bench.news()?.reason, verdict.reason);
  return { verdict, output: bench.news()?.output };
}

test('an address: status, ETag, body and value', async (t) => {
  const bench = await checksBench(t);
  const { site } = bench;
  const http = (more: object = {}) => ({ http: { url: `${site.url}/state`, ...more } });
  await wakes(bench, http(), /status 200/);
  await skips(bench, http({ status: 404 }), /status 200, not 404/);
  site.answer = (_, response) => response.writeHead(503).end('{"state":"open"}');
  await skips(bench, http(), /status 503, not 200 to 299/);
  await wakes(bench, http({ status: 503 }), /status 503/);
  await wakes(bench, http({ etag: 'changed' }), /could not be decided: the answer has status 503/);
  await skips(bench, { ...http({ etag: 'changed' }), on_error: 'skip' }, /could not be decided/);

  site.answer = (_, response) => response.writeHead(200, { etag: '"one"' }).end('x');
  const first = await wakes(bench, http({ etag: 'changed' }), /ETag is known for the first time/);
  assert.equal(first.verdict.value, '"one"');
  await skips(bench, http({ etag: 'changed' }), /ETag has not changed/, { value: '"one"' });
  await wakes(bench, http({ etag: 'changed' }), /ETag has changed/, { value: '"zero"' });
  site.answer = (_, response) => response.end('a body');
  const { verdict } = await wakes(bench, http({ etag: 'changed' }), /body is known/);
  await skips(bench, http({ etag: 'changed' }), /body has not changed/, { value: verdict.value });

  site.answer = (_, response) => response.end('{"pulls":[{"state":"open","n":9007199254740993}]}');
  await skips(bench, http({ pointer: '/pulls/0/state', equals: 'closed' }), /is not "closed"/);
  const open = await wakes(bench, http({ pointer: '/pulls/0/state', equals: 'open' }), /is "open"/);
  assert.equal(open.output, '"open"');
  await skips(bench, http({ pointer: '/pulls/0/n', equals: 9007199254740992 }), /is not/);
  await skips(bench, http({ pointer: '/pulls/0/n', changed: true }), /not changed/, { value: '9007199254740993e0' });
  await wakes(bench, http({ pointer: '/pulls/0/n', changed: true }), /has changed/, { value: '9007199254740992e0' });
  await wakes(bench, http({ pointer: '/none', changed: true }), /has changed/, { value: '1e0' });
});

test('an address that is private, redirects there, never ends, or answers garbage', async (t) => {
  const bench = await checksBench(t);
  const { site, closed } = bench;
  const get = (url: string, more: object = {}) => ({ http: { url, ...more } });
  for (const url of [
    closed.url,
    'http://169.254.169.254/latest',
    'http://[::1]:9',
    'http://0.0.0.0:9',
    'http://10.0.0.1',
  ])
    assert.match(
      (await bench.refusal(get(url)))!,
      /^400 check: .*(?:private|loopback|link-local|this computer|not reached)/,
    );
  assert.equal(await bench.refusal(get(site.url)), undefined);
  await wakes(bench, get(closed.url), /could not be decided: .*not reached/);
  // An address that may not be called wakes even with on_error: skip, so that it is noticed.
  await wakes(bench, { ...get(`http://localhost:${new URL(closed.url).port}`), on_error: 'skip' }, /not reached/);
  site.answer = (_, response) => response.writeHead(302, { location: `${closed.url}/secret` }).end();
  await wakes(bench, get(site.url), /could not be decided: .*not reached/);
  assert.equal(closed.hits, 0);
  site.answer = (request, response) => response.writeHead(302, { location: `${request.url}x` }).end();
  await wakes(bench, get(site.url), /redirects again after 3 redirects/);

  site.answer = (_, response) => {
    const more = () => !response.destroyed && response.write('x'.repeat(64 * 1024), () => setImmediate(more));
    more();
  };
  await wakes(bench, get(site.url, { etag: 'changed' }), /longer than 65536 bytes/);
  await wakes(bench, get(site.url, { pointer: '/a', equals: 1 }), /longer than 65536 bytes/);
  await wakes(bench, get(site.url), /status 200/);
  for (const garbage of ['{"a":', '<html>', '', '['.repeat(10_000)]) {
    site.answer = (_, response) => response.end(garbage);
    await wakes(bench, get(site.url, { pointer: '/a', equals: 1 }), /body is not JSON/);
  }
  site.answer = (_, response) => response.destroy();
  await wakes(bench, get(site.url), /did not answer/);
  // Only the address itself gets the headers.
  const seen: (string | undefined)[] = [];
  site.answer = (request, response) => {
    seen.push(request.headers.authorization);
    response.end('fine');
  };
  await wakes(bench, get(site.url, { headers: { authorization: 'Bearer x' } }), /status 200/);
  assert.deepEqual(seen, ['Bearer x']);
});

test('a path: a file or folder, and nothing outside what the agent may read', async (t) => {
  const bench = await checksBench(t);
  const { work, home } = bench;
  const path = (name: string) => ({ path: { path: name } });
  const absent = await wakes(bench, path('inbox/new/one'), /does not exist, is known for the first time/);
  await skips(bench, path('inbox/new/one'), /has not changed/, { value: absent.verdict.value });
  mkdirSync(join(work, 'inbox'));
  const empty = (await wakes(bench, path('inbox'), /folder is known/)).verdict.value!;
  await skips(bench, path(join(work, 'inbox')), /folder has not changed/, { value: empty });
  writeFileSync(join(work, 'inbox', 'new\n[x]'), 'hello');
  const filled = await wakes(bench, path('inbox'), /folder has changed/, { value: empty });
  assert.equal(filled.output, '"new\\n[x]"');
  writeFileSync(join(work, 'note'), 'one');
  const { value } = (await wakes(bench, path('note'), /file is known/)).verdict;
  await skips(bench, path('note'), /file has not changed/, { value });
  writeFileSync(join(work, 'note'), 'two');
  await wakes(bench, path('note'), /file has changed/, { value });
  rmSync(join(work, 'note'));
  await wakes(bench, path('note'), /does not exist, has changed/, { value });

  writeFileSync(join(home, 'keys', 'secret'), SECRET);
  symlinkSync(join(home, 'keys', 'secret'), join(work, 'link'));
  symlinkSync('/etc', join(work, 'etc'));
  for (const outside of [
    '../keys/secret',
    join(home, 'keys', 'secret'),
    '/etc/passwd',
    'link',
    'etc/passwd',
    '/',
    '..',
  ]) {
    await wakes(bench, path(outside), /not in a folder that the agent may read/);
    assert.match((await bench.refusal(path(outside)))!, /^400 check: the path is not in a folder/);
  }
  await bench.put({ cwd: join(home, 'keys') });
  await wakes(bench, path('secret'), /not in a folder that the agent may read/);
});

test('a command: exit codes, last lines, output and time', { skip: needs('bubblewrap') }, async (t) => {
  const bench = await checksBench(t);
  const script = (text: string) => {
    writeFileSync(join(bench.work, 'check.sh'), `#!/bin/sh\n${text}\n`);
    chmodSync(join(bench.work, 'check.sh'), 0o755);
  };
  const command = { command: { argv: ['./check.sh', 'one argument'] } };
  script('echo "$1"; pwd; echo to-stderr >&2; echo 42');
  const { output, verdict } = await wakes(bench, command, /exit code 0/);
  assert.equal(output, `one argument\n${bench.work}\n42\n\nto-stderr`);
  assert.equal(verdict.value, '42');
  script('echo nothing; exit 1');
  await skips(bench, command, /exit code 1/);
  script('echo done; echo NO_WORK');
  await skips(bench, command, /NO_WORK/);
  script(`echo '{"wakeAgent": false}'; exit 0`);
  await skips(bench, command, /wakeAgent: false/);
  script(`echo '{"wakeAgent": true}'`);
  await wakes(bench, command, /exit code 0/);
  for (const code of [2, 101, 102, 126]) {
    script(`echo problem; exit ${code}`);
    assert.equal(
      (await wakes(bench, command, new RegExp(`exit code ${code === 102 ? 101 : code}$`))).output,
      'problem',
    );
    await skips(bench, { ...command, on_error: 'skip' }, /could not be decided/);
  }
  script('kill -9 $$');
  await wakes(bench, command, /ended by SIGKILL/);
  script('sleep 60');
  await wakes(bench, { command: { ...command.command, timeout_seconds: 1 } }, /time limit/);
  script('yes NO_WORK');
  const flood = await wakes(bench, command, /wrote too much/);
  assert.ok(flood.output!.length <= 70_000, String(flood.output!.length));
  script('head -c 1000000 /dev/zero; echo; echo last');
  assert.equal((await wakes(bench, command, /exit code 0/)).verdict.value, 'last');
  script('env | grep ^REVEILLE_ | grep -v ROOM | sort');
  const told = await wakes(bench, command, /exit code 0/, { value: 'v 1', woken_at: '2026-01-02T03:04:05Z' });
  assert.match(
    told.output!,
    /^REVEILLE_ALARM_ID=\S+\nREVEILLE_DUE_AT=2026-06-15T08:10:00.000Z\nREVEILLE_LAST_VALUE=v 1\nREVEILLE_LAST_WAKE_AT=2026-01-02T03:04:05.000Z$/,
  );

  await wakes(bench, { command: { argv: ['no-such-program'] } }, /no program "no-such-program"/);
  assert.match(
    (await bench.refusal({ command: { argv: ['no-such-program'] } }))!,
    /^400 check: there is no program .*install it/,
  );
  assert.equal(await bench.refusal(command), undefined);
  assert.equal(await bench.refusal({ command: { argv: ['sh', '-c', 'exit 1'] } }), undefined);
  // What must wake does, and says why.
  script('exit 1');
  await wakes(bench, command, /^3 fires .*; the check said no: /, { must_wake: '3 fires in a row were skipped' });
});

test('a command sees no variable, no network and no file that it was not given', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = await checksBench(t);
  const run = async (text: string, more: object = {}) => {
    const check = { command: { argv: ['sh', '-c', `${text}; echo end`], ...more } };
    return (await wakes(bench, check, /exit code 0/, { by_person: true })).output!;
  };
  const variables = (await run('env')).split('\n').map((line) => line.split('=')[0]!);
  const usual = ['PATH', 'HOME', 'LANG', 'TMPDIR', 'PWD', 'REVEILLE_ALARM_ID', 'REVEILLE_DUE_AT', 'REVEILLE_ROOM'];
  assert.deepEqual(
    variables.filter((name) => ![...usual, 'end', '_', 'OLDPWD', 'SHLVL'].includes(name)),
    [],
  );
  assert.doesNotMatch(await run('cat /proc/*/environ 2>/dev/null | tr "\\0" "\\n"'), new RegExp(SECRET));
  assert.match(await run('echo "$MODEL_KEY"', { env: ['MODEL_KEY'] }), new RegExp(SECRET));
  await wakes(bench, { command: { argv: ['true'], env: ['NOT_THERE'] } }, /no variable NOT_THERE/, { by_person: true });
  await wakes(bench, { command: { argv: ['true'], env: ['NEO_DAEMON_TOKEN'] } }, /no variable NEO_DAEMON_TOKEN/, {
    by_person: true,
  });

  const { port } = new URL(bench.closed.url);
  const dial = `node -e "require('net').connect(${port}, '127.0.0.1').on('connect', () => { console.log('reached'); process.exit() }).on('error', (e) => console.log(e.code))" || (exec 3<>/dev/tcp/127.0.0.1/${port}) 2>&1`;
  assert.doesNotMatch(await run(dial), /reached/);
  assert.doesNotMatch(await run(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && echo reached' 2>/dev/null`), /reached/);
  assert.match(await run(`bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && echo reached'`, { network: true }), /reached/);

  writeFileSync(join(bench.home, 'keys', 'secret'), SECRET);
  writeFileSync(join(bench.home, 'outside'), SECRET);
  symlinkSync(join(bench.home, 'outside'), join(bench.work, 'link'));
  assert.doesNotMatch(
    await run(`cat ${bench.home}/keys/secret ${bench.home}/outside link ../outside 2>/dev/null`),
    new RegExp(SECRET),
  );
  assert.doesNotMatch(await run(`ls ${bench.home}/router /root /home 2>/dev/null`), /router.db|machines/);
  assert.match(await run('echo x > written && cat written; echo x > ../escaped; echo x > /etc/escaped; ls ..'), /^x\n/);
  assert.doesNotMatch(await run('ls ..'), /escaped/);
  // Nothing that it started is left.
  await run('(setsid sleep 321 >/dev/null 2>&1 &)');
  assert.doesNotMatch(commandLines().join('\n'), /sleep 321/);
});

test('a command of an agent runs only where its machine allows it; that of a person does', {
  skip: needs('bubblewrap'),
}, async (t) => {
  const bench = await checksBench(t, {});
  const check = { command: { argv: ['touch', 'ran'] }, on_error: 'skip' };
  await wakes(bench, check, /agent of alice may not set a command as a check; let the person set it/);
  assert.match((await bench.refusal(check))!, /^403 check: the agent of alice may not .*--agent-checks commands/);
  await wakes(bench, check, /exit code 0/, { by_person: true });
  assert.equal(await bench.refusal(check, true), undefined);
  // Neither a payload nor the check itself can claim it.
  await wakes(bench, check, /may not set a command/, {});
  assert.equal((await bench.decide({ ...check, by_person: true })).status, 400);
});

test('a machine on another computer has neither commands nor paths', async (t) => {
  const bench = await checksBench(t);
  await bench.router.put('alice', { provider: 'http', spec: { url: 'http://127.0.0.1:9' } });
  assert.match((await bench.refusal({ command: { argv: ['true'] } }, true))!, /need a machine of this computer/);
  assert.match((await bench.refusal({ path: { path: '/tmp/x' } }))!, /need a machine of this computer/);
  assert.equal(await bench.refusal({ http: { url: bench.site.url } }), undefined);
});

test('a repeated wake that may have been accepted keeps its decision; one that was refused is decided anew', async (t) => {
  const bench = await checksBench(t);
  const { site } = bench;
  const check = { http: { url: site.url, status: 200 } };
  const fire_id = 'a-fire@1';
  const once = async () => (await bench.decide(check, {}, { fire_id })).verdict?.verdict;
  assert.equal(await once(), 'wake');
  site.answer = (_, response) => response.writeHead(204).end();
  assert.equal(await once(), 'wake');
  assert.equal(site.hits, 1);
  assert.equal((await bench.decide(check, {}, { fire_id: 'a-fire@2' })).verdict?.verdict, 'skip');

  await bench.router.put('alice', { provider: 'http', spec: { url: 'http://127.0.0.1:9' } });
  site.answer = (_, response) => response.end();
  const down = { fire_id: 'a-fire@3' };
  assert.ok((await bench.decide(check, {}, down)).status >= 500);
  site.answer = (_, response) => response.writeHead(204).end();
  assert.equal((await bench.decide(check, {}, down)).verdict?.verdict, 'skip');
});

test('a skipped wake counts for no budget, and without a fire id it is checked again', async (t) => {
  const bench = await checksBench(t);
  const { site } = bench;
  const limited = await bench.router.send('PUT', '/admin/machines/alice/budget', ADMIN_TOKEN, { wakes_per_hour: 1 });
  assert.equal(limited.status, 200, limited.text);
  const check = { http: { url: site.url, status: 204 } };
  const body = { user_id: 'alice', message: 'look', check };
  for (let n = 0; n < 3; n++) {
    const answer = await bench.router.send('POST', '/internal/wake', WAKE_TOKEN, body);
    assert.equal(readVerdict(answer.headers.get(CHECK_HEADER))?.verdict, 'skip', answer.text);
  }
  assert.equal(site.hits, 3);
  site.answer = (_, response) => response.writeHead(204).end();
  assert.equal((await bench.router.send('POST', '/internal/wake', WAKE_TOKEN, body)).status, 202);
  assert.equal((await bench.decide(check)).status, 429);
});

test('a command whose program or folder is missing is refused when it is set', async (t) => {
  const bench = await checksBench(t);
  const refusal = async (...argv: string[]) => {
    const { status, json } = await bench.router.send('POST', '/internal/checks', WAKE_TOKEN, {
      ...{ user_id: 'alice', run: { argv }, by_person: true },
    });
    return status === 200 ? undefined : `${status} ${json.error.message}`;
  };
  assert.match(
    (await refusal('./nope.sh'))!,
    /^400 run: there is no program "\.\/nope\.sh" in \/\S+\/work, the folder/,
  );
  assert.match((await refusal('no-such-program'))!, /^400 run: there is no program "no-such-program" on the PATH/);
  writeFileSync(join(bench.work, 'job.sh'), '#!/bin/sh\n');
  assert.match((await refusal('./job.sh'))!, /^400 run: there is no program/, 'it is not executable');
  chmodSync(join(bench.work, 'job.sh'), 0o755);
  assert.equal(await refusal('./job.sh'), undefined);
  assert.equal(await refusal('/bin/sh'), undefined);
  assert.equal(await refusal('sh', '-c', 'exit 1'), undefined);
  const { status, json } = await bench.router.send('POST', '/internal/checks', WAKE_TOKEN, {
    ...{ user_id: 'alice', run: { argv: ['sh'] }, by_person: false },
  });
  assert.equal(status, 200, JSON.stringify(json));
  await bench.put({});
  const ofAgent = await bench.router.send('POST', '/internal/checks', WAKE_TOKEN, {
    ...{ user_id: 'alice', run: { argv: ['sh'] }, by_person: false },
  });
  assert.match(ofAgent.json.error.message, /^run: the agent of alice may not set commands; .*--agent-checks commands/);
  assert.equal(ofAgent.status, 403);
  rmSync(bench.work, { recursive: true });
  assert.match((await refusal('sh'))!, /^400 run: the machine's folder .* is not an existing folder/);
});
