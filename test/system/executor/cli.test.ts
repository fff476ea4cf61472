import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { ADMIN_TOKEN } from '../../support/cluster/approval.ts';
import { reveille } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { callerOf, startedExecutor, TOKEN, transfer } from './executor-bench.ts';

async function open(t: TestContext) {
  const folder = temporaryFolder(t);
  const executor = await startedExecutor(t, folder);
  const home = join(folder, 'home');
  const env = {
    EXECUTOR_PORT: String(executor.port),
    EXECUTOR_TOKEN: TOKEN,
    EXECUTOR_ADMIN_TOKEN: ADMIN_TOKEN,
    MATRIX_USER_ID: 'ada',
    REVEILLE_APPROVER_DIR: join(folder, 'approver'),
    REVEILLE_APPROVER_STORE: 'file',
  };
  const enrolling = await reveille(home, ['approver', 'enroll'], { env });
  assert.equal(enrolling.status, 0, enrolling.stderr);
  const run = (args: string[], more: Record<string, string> = {}, input?: string) =>
    reveille(home, ['intent', ...args], { env: { ...env, ...more }, ...(input !== undefined && { input }) });
  const file = join(folder, 'intent.json');
  writeFileSync(file, JSON.stringify(transfer()));
  const submit = async (text = JSON.stringify(transfer())) => {
    const task = join(folder, 'task.json');
    writeFileSync(task, text);
    const { stdout, stderr } = await run(['submit', '--json-file', task, '--json']);
    assert.equal(stderr, '');
    return JSON.parse(stdout).intent_id as string;
  };
  return { folder, executor, run, submit, file, ada: callerOf(executor, 'ada') };
}

test('a task is submitted, inspected, approved by its digest, followed to its end, and proved by hand', async (t) => {
  const { folder, run, file, ada } = await open(t);
  const submitted = await run(['submit', '--json-file', file, '--idempotency-key', 'k']);
  assert.equal(submitted.status, 0, submitted.stderr);
  const [id] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(submitted.stdout)!;
  const { call, displayed_sha256: question } = await ada.waiting(id);
  const shown = await run(['show', id]);
  assert.match(shown.stdout, /status +awaiting approval/);
  assert.ok(shown.stdout.includes(`call_sha256 ${call.call_sha256}`));
  assert.ok(shown.stdout.includes('"amount": "12.50"'));
  const listed = await run(['list', '--status', 'awaiting_approval', '--json']);
  assert.equal(JSON.parse(listed.stdout).intent_id, id);

  const asked = await run(['approve', id]);
  assert.equal(asked.status, 2, 'no approver is there to say yes');
  assert.match(asked.stderr, /--displayed-sha256/);
  const wrong = await run(['approve', id, '--call-sha256', 'f'.repeat(64)]);
  assert.equal(wrong.status, 1);
  assert.match(wrong.stderr, /does not match the waiting call/);
  assert.equal((await ada.state(id)).status, 'awaiting_approval');
  const approved = await run(['approve', id, 'pay', '--displayed-sha256', question, '--call-sha256', call.call_sha256]);
  assert.equal(approved.status, 0, approved.stderr);
  assert.ok(approved.stdout.includes('"amount": "12.50"'), 'the approved call is shown');
  const watched = await run(['watch', id]);
  assert.equal(watched.status, 0);
  assert.match(watched.stdout, /completed/);
  const again = await run(['approve', id, '--displayed-sha256', question]);
  assert.equal(again.status, 1);

  const receipt = join(folder, 'receipt.json');
  const written = await run(['receipt', id, '--output', receipt]);
  assert.equal(written.status, 0, written.stderr);
  const printed = await run(['receipt', id]);
  assert.equal(printed.stdout, readFileSync(receipt, 'utf8'));
  const [, check] = /^ {2}reveille (receipt verify .* --key [0-9a-f]{64})$/m.exec(written.stdout)!;
  const verified = await reveille(join(folder, 'elsewhere'), check!.split(' '));
  assert.equal(verified.status, 0, verified.stdout + verified.stderr);
  const over = await run(['receipt', id, '--output', receipt]);
  assert.equal(over.status, 1, 'an existing file is left unchanged');
  assert.match(over.stderr, /exists; name a new file/);
  assert.ok(statSync(receipt).size > 0);
});

test('an intent can be named by the beginning of its id, which the list shows', async (t) => {
  const { run, submit, ada } = await open(t);
  const first = await submit();
  await ada.waiting(first);
  const second = await submit();
  const listed = await run(['list']);
  const begins = (id: string) =>
    listed.stdout
      .split('\n')
      .map((line) => line.split(' ')[0]!)
      .find((prefix) => prefix !== '' && id.startsWith(prefix))!;
  for (const id of [first, second]) {
    assert.ok(begins(id).length < 36, listed.stdout);
    const shown = await run(['show', begins(id).toUpperCase(), '--json']);
    assert.equal(JSON.parse(shown.stdout).intent_id, id, shown.stderr);
  }
  assert.match((await run(['cancel', begins(second)])).stdout, new RegExp(`Intent ${second} is cancelled`));
  const ambiguous = await run(['deny', first.slice(0, 6)]);
  assert.equal(ambiguous.status, 1);
  assert.match(ambiguous.stderr, /matches .*give more of the id/);
  const none = await run(['receipt', 'ffffff']);
  assert.match(none.stderr, /begins with ffffff; list yours with: reveille intent list/);
  assert.equal((await ada.state(first)).status, 'awaiting_approval');
});

test('a denied step is not executed, and watching it ends with 1', async (t) => {
  const { folder, run, submit, ada } = await open(t);
  const id = await submit();
  await ada.waiting(id);
  const denied = await run(['deny', id, '--answer', 'not this month']);
  assert.equal(denied.status, 0, denied.stderr);
  const watched = await run(['watch', id, '--json']);
  assert.equal(watched.status, 1);
  assert.match(watched.stdout, /"status":"denied"/);
  const { ended_at } = JSON.parse(watched.stdout.trim().split('\n').at(-1)!);
  const [, ended] = /^(\d\d:\d\d:\d\d) {2}denied$/m.exec((await run(['watch', id])).stdout)!;
  const expectedTime = new Intl.DateTimeFormat('en-GB', { timeZone: 'Europe/Berlin', timeStyle: 'medium' }).format(
    Date.parse(ended_at),
  );
  assert.equal(ended, expectedTime, 'the time of the record, not of the query');
  assert.match(watched.stdout, /not this month|denied/);
  assert.match((await run(['show', id])).stdout, /status +denied\n/);
  assert.match((await run(['list', '--status', 'denied'])).stdout, / denied +/);
  assert.equal((await run(['list', '--status', 'failed'])).stdout, 'No intents.\n');
  const receipt = join(folder, 'denied.json');
  assert.equal((await run(['receipt', id, '--output', receipt])).status, 0);
  const verified = await reveille(folder, ['receipt', 'verify', receipt]);
  assert.match(verified.stdout, /ended +denied at [^\n]*: ada denied the call/);
});

/** A proxy between the commands and an executor: changes arrive there, and their answers are lost on the way back. */
async function lossy(t: TestContext, port: number): Promise<number> {
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    const forwarded = httpRequest({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
      if (method !== 'POST') {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      } else answer.resume().on('end', () => request.socket.destroy());
    });
    request.pipe(forwarded);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test('a text task without a model is refused at once, with the missing setting, and leaves nothing behind', async (t) => {
  const { run } = await open(t);
  const refused = await run(['submit', 'Pay bob 25 EUR']);
  assert.deepEqual([refused.status, refused.stdout], [1, '']);
  const said = refused.stderr.replace(/\s+/g, ' ');
  assert.match(
    said,
    /this executor has no model.* Set EXECUTOR_MODEL .*NEO_MODEL_BASE_URL.* as JSON, which needs no model/,
  );
  assert.doesNotMatch((await run(['list'])).stdout, /Pay bob/);
});

test('where the answer is lost, the message says that the intent may exist, and the advised repetition makes no second one', async (t) => {
  const { run, file, executor, ada } = await open(t);
  const env = { EXECUTOR_PORT: String(await lossy(t, executor.port)) };
  const lost = await run(['submit', '--json-file', file], env);
  assert.equal(lost.status, 1);
  const [, key] =
    /unknown whether your task was accepted; it may still be carried out\. .*repeat it safely: the same command with: --idempotency-key (\S+)\n$/.exec(
      lost.stderr,
    ) ?? assert.fail(lost.stderr);
  const again = await run(['submit', '--json-file', file, '--idempotency-key', key!, '--json']);
  const id = JSON.parse(again.stdout).intent_id as string;
  const { displayed_sha256: question } = await ada.waiting(id);
  assert.equal((await run(['list', '--json'])).stdout.trim().split('\n').length, 1, 'there is one intent');
  const approved = await run(['approve', id, '--displayed-sha256', question], env);
  assert.equal(approved.status, 1);
  const may =
    'It is unknown whether your approval was accepted; it may still be carried out. Check with: reveille intent show';
  assert.ok(approved.stderr.endsWith(`${may} ${id}\n`), approved.stderr);
  await ada.until(id, 'completed');
  assert.match((await run(['cancel', id], env)).stderr, /whether the cancellation was accepted; .*intent show/);
  const nobody = await run(['submit', '--json-file', file], { EXECUTOR_PORT: '1' });
  assert.doesNotMatch(nobody.stderr, /not known/, 'what was not sent was not taken');
});

test('an intent that waits behind another names it, on every screen', async (t) => {
  const { run, submit, file, ada } = await open(t);
  const first = await submit();
  await ada.waiting(first);
  const submitted = await run(['submit', '--json-file', file]);
  assert.match(submitted.stdout, new RegExp(`it waits for intent ${first}`));
  const [second] = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(submitted.stdout)!;
  const listed = (await run(['list'])).stdout.split('\n');
  const [short] = listed.find((line) => line.includes('awaiting'))!.split(' ');
  assert.ok(first.startsWith(short!));
  assert.ok(
    listed.some((line) => line.includes(`, behind ${short} `)),
    listed.join('\n'),
  );
  assert.match((await run(['show', second])).stdout, new RegExp(`waits for +intent ${first}`));
  const watching = run(['watch', second]);
  assert.equal((await run(['deny', first])).status, 0);
  await ada.waiting(second);
  assert.equal((await run(['deny', second])).status, 0);
  const { stdout } = await watching;
  assert.match(stdout, /denied/);
});

test('an intent is cancelled, and a tool query for a known one changes nothing', async (t) => {
  const { run, submit, ada } = await open(t);
  const id = await submit();
  await ada.waiting(id);
  assert.match((await run(['cancel', id])).stdout, new RegExp(`Intent ${id} is cancelled`));
  assert.match((await run(['reconcile', id])).stdout, /is cancelled/);
});

test('characters that hide or turn text are made visible where a call is approved', async (t) => {
  const { run, submit, ada } = await open(t);
  const hidden = 'rent\u202e05.21\u200b\u2066 \u001b[2K';
  const id = await submit(JSON.stringify(transfer('12.50', { memo: hidden })));
  await ada.waiting(id);
  const { stdout } = await run(['show', id]);
  assert.doesNotMatch(stdout, /[\u202e\u200b\u2066\u001b]/);
  assert.match(stdout, /\\u\{?202e/i);
});

test('invalid input ends with 2, a failure with 1, and each has a reason', async (t) => {
  const { run, file } = await open(t);
  const cases: [words: string[], env: Record<string, string>, status: number, said: RegExp][] = [
    [['submit'], {}, 2, /give the intent as a sentence or with --json-file/],
    [['submit', 'pay', '--json-file', file], {}, 2, /not both/],
    [['submit', '--json-file', '/nowhere.json'], {}, 2, /cannot be read/],
    [['list', '--status', 'done'], {}, 2, /--status must be one of/],
    [['list', '--limit', '0'], {}, 2, /--limit/],
    [['list', '--user', 'a b'], {}, 2, /user id/],
    [['approve', 'x', '--call-sha256', 'abc'], {}, 2, /64 lower-case hex/],
    [['show', 'nothing'], {}, 1, /no intent with this id; "reveille intent list"/],
    [['list'], { EXECUTOR_TOKEN: 'another-token-altogether' }, 1, /Bearer/],
    [['list'], { EXECUTOR_PORT: '1' }, 1, /cannot reach the executor at http:\/\/127\.0\.0\.1:1 .*reveille up/],
    [['list'], { NEO_EXECUTOR_URL: 'http://127.0.0.1:1' }, 1, /cannot reach the executor at http:\/\/127\.0\.0\.1:1/],
  ];
  for (const [args, env, status, message] of cases) {
    const outcome = await run(args, env);
    assert.deepEqual([args, outcome.status], [args, status], outcome.stderr);
    assert.match(outcome.stderr, message);
  }
});
