/** Attacks on the question whose a command is: an agent must not get one run in the name of the person. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wakeBody } from '../../../src/chronos/dispatch/http-waker.ts';
import type { Claim } from '../../../src/chronos/store/store.ts';
import { personProof } from '../../../src/kit/identity/person-rights.ts';
import { ADMIN, createHttpBench } from './http-bench.ts';

const RUN = { argv: ['sh', '-s'] };
const CHECK = { command: { argv: ['./check.sh'] } };

async function commandBench(t: Parameters<typeof createHttpBench>[0]) {
  const bench = await createHttpBench(t);
  const { store, clock } = bench;
  const ada = await bench.agent('ada');
  const byPerson = (method: string, path: string, body?: object) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    const proof = personProof('Ada', { method, path, body: text }, { secret: ADMIN, now: clock.now() });
    return ada.call(method, path, { ...(body && { body: text }), headers: { 'x-chronos-person': proof } });
  };
  const set = async (fields: object, { person = true } = {}) => {
    const body = { wake_message: 'echo fine', kind: 'cron', cron_expr: '0 9 * * *', ...fields };
    const answer = await (person ? byPerson('POST', '/v1/alarms', body) : ada.call('POST', '/v1/alarms', { body }));
    assert.equal(answer.status, 200, answer.text);
    return answer.data.id;
  };
  /** What the next wake says about whose its commands are. */
  const claims = async (id: string, owner = 'ada') => {
    const { alarm, occurrences } = (await store.get(owner, id))!;
    const [occurrence] = occurrences;
    const body = JSON.parse(wakeBody({ alarm, occurrence } as Claim)) as {
      run?: { argv: string[]; by_person?: true };
      check_state?: { by_person?: true };
      set_by?: object;
    };
    return { run: body.run?.by_person === true, check: body.check_state?.by_person === true, argv: body.run?.argv };
  };
  return { ...bench, ada, byPerson, set, claims };
}

test('no edit, repetition or other request of an agent makes its command that of a person', async (t) => {
  const { ada, set, claims, byPerson, store, clock } = await commandBench(t);
  assert.deepEqual(await claims(await set({ run: RUN, check: CHECK })), { run: true, check: true, argv: RUN.argv });
  assert.deepEqual(await claims(await set({ run: RUN, check: CHECK }, { person: false })), {
    ...{ run: false, check: false, argv: RUN.argv },
  });
  let attacks = 0;
  const edits: [what: string, edit: object, run: boolean, check: boolean][] = [
    ['another command', { run: { argv: ['touch', 'x'] } }, false, true],
    ['the same command again', { run: RUN }, false, true],
    ['another check', { check: { command: { argv: ['touch', 'x'] } } }, false, false],
    ['the same check again', { check: CHECK }, false, false],
    ['the message that the command reads', { wake_message: 'touch owned' }, false, true],
    ['the payload that the command reads', { payload: { a: '$(touch owned)' } }, false, true],
    ['its time, which decides when it runs', { cron_expr: '0 10 * * *' }, false, false],
    ['another way to decide when it runs', { catch_up: 'all' }, false, false],
    ['its label, which it does not read', { label: 'x' }, true, true],
  ];
  for (const [what, edit, run, check] of edits) {
    const id = await set({ run: RUN, check: CHECK });
    const answer = await ada.call('PATCH', `/v1/alarms/${id}`, { body: edit });
    assert.equal(answer.status, 200, `${what}: ${answer.text}`);
    const { argv: _, ...whose } = await claims(id);
    assert.deepEqual(whose, { run, check }, what);
    // The person can take it back.
    assert.equal((await byPerson('PATCH', `/v1/alarms/${id}`, { run: RUN, check: CHECK })).status, 200);
    assert.equal((await claims(id)).run, true, what);
    attacks++;
  }
  // The source of the events that it reads.
  for (const edit of [
    { event: { source: 'webhook', verify: 'path' } },
    { event: { source: 'webhook', filter: { pointer: '/x' } } },
  ]) {
    const id = await set({ kind: 'event', cron_expr: undefined, event: { source: 'webhook' }, run: RUN });
    assert.equal((await ada.call('PATCH', `/v1/alarms/${id}`, { body: edit })).status, 200);
    assert.equal((await claims(id)).run, false);
    attacks++;
  }
  // Fields that only chronosd writes, in whatever place.
  const foreign = [
    { run_by_person: true, run: RUN },
    { run: { ...RUN, by_person: true } },
    { check: { ...CHECK, by_person: true } },
    { check_state: { byPerson: true }, check: CHECK },
    { run: RUN, set_by: { kind: 'person', name: 'Ada' } },
    { run: RUN, setBy: 'Ada' },
    { run: RUN, options: '{"run_by_person":true}' },
    { run: RUN, followers: [] },
    { run: RUN, hook_secret: 'whsec_AAAA' },
    { run: RUN, event_state: { last: 0, next: 1, bytes: 0 } },
  ];
  const own = await set({ run: RUN, check: CHECK }, { person: false });
  for (const fields of foreign) {
    const body = { wake_message: 'x', kind: 'once', delay_seconds: 60, ...fields };
    for (const answer of [
      await ada.call('POST', '/v1/alarms', { body }),
      await ada.call('PATCH', `/v1/alarms/${own}`, { body: fields }),
    ]) {
      assert.equal(answer.status, 400, JSON.stringify(fields));
      attacks++;
    }
  }
  assert.deepEqual(await claims(own), { run: false, check: false, argv: RUN.argv });
  // A payload and a message are never a check or a command.
  const looks = await set(
    {
      wake_message: JSON.stringify({ run: RUN, check: CHECK, check_state: { by_person: true } }),
      payload: { run: RUN, check: CHECK, events: [], run_by_person: true },
    },
    { person: false },
  );
  assert.deepEqual(await claims(looks), { run: false, check: false, argv: undefined });
  attacks += 2;
  // Repetitions: the first request decides, and no repetition.
  const key = { idempotency_key: 'k', run: RUN, check: CHECK };
  const first = await set(key, { person: false });
  assert.equal(await set(key), first);
  assert.deepEqual(await claims(first), { run: false, check: false, argv: RUN.argv });
  const other = { ...key, idempotency_key: 'l' };
  const second = await set(other);
  const repeated = await ada.call('POST', '/v1/alarms', {
    body: { wake_message: 'echo owned', kind: 'cron', cron_expr: '0 9 * * *', ...other },
  });
  assert.equal(repeated.status, 409);
  assert.deepEqual(await claims(second), { run: true, check: true, argv: RUN.argv });
  attacks += 2;
  // What only moves an alarm on keeps whose it is.
  for (const action of ['pause', 'resume', 'trigger']) {
    for (const id of [first, second])
      assert.ok([200, 403, 409].includes((await ada.call('POST', `/v1/alarms/${id}/${action}`)).status));
    assert.equal((await claims(first)).run, false, action);
    assert.equal((await claims(second)).run, true, action);
    attacks++;
  }
  // Another owner's alarm: neither edited, nor followed, nor repeated.
  const limits = { maxActive: 1000, maxStored: 1000, maxBytes: 1e9 };
  await store.moveAlarms({ from: 'ada', to: 'eve', limits, now: clock.now() });
  assert.equal((await claims(first, 'eve')).run, false);
  for (const answer of [
    await ada.call('PATCH', `/v1/alarms/${second}`, { body: { wake_message: 'x' } }),
    await ada.call('POST', '/v1/alarms', { body: { wake_message: 'x', after: { alarm: second } } }),
    await ada.call('POST', '/v1/alarms', { body: { wake_message: 'x', event: { source: 'alarm', alarm: second } } }),
  ]) {
    assert.equal(answer.status, 404, answer.text);
    attacks++;
  }
  t.diagnostic(`${attacks} attacks`);
});

test('a proof of a person is of one request, of one body, for five minutes', async (t) => {
  const { ada, clock } = await commandBench(t);
  const body = JSON.stringify({ wake_message: 'x', kind: 'once', delay_seconds: 600, run: RUN });
  const now = clock.now();
  const sign = (more: object = {}, at = now, secret = ADMIN) =>
    personProof('Ada', { method: 'POST', path: '/v1/alarms', body, ...more }, { secret, now: at });
  const proofs = [
    sign({ body: '{}' }),
    sign({ path: '/v1/alarms/x' }),
    sign({ method: 'PATCH' }),
    sign({}, now - 301_000),
    sign({}, now + 301_000),
    sign({}, now, 'another-token-of-an-operator'),
    sign().slice(0, -1),
    `${sign()}.x`,
    sign().replace(/\.\d+\./, '.9.'),
    'Ada',
    'true',
    '',
  ];
  for (const proof of proofs)
    assert.equal(
      (await ada.call('POST', '/v1/alarms', { body, headers: { 'x-chronos-person': proof } })).status,
      403,
      proof,
    );
  t.diagnostic(`${proofs.length} attacks`);
});

test('commands that no argv may be', async (t) => {
  const { ada } = await commandBench(t);
  const argvs: unknown[] = [
    [],
    [''],
    [' '],
    ['a\0b'],
    ['sh', '-c', '\0'],
    'sh -c id',
    { 0: 'sh' },
    [1],
    [null],
    [['sh']],
    Array.from({ length: 65 }, () => 'x'),
    ['x'.repeat(4097)],
    Array.from({ length: 64 }, () => 'x'.repeat(4096)),
    Array.from({ length: 64 }, () => '\u0001'.repeat(300)),
  ];
  const limits = [
    { timeout_seconds: 0 },
    { timeout_seconds: -1 },
    { timeout_seconds: 1e9 },
    { timeout_seconds: 1.5 },
    { timeout_seconds: '30' },
    { cwd: '/' },
    { shell: true },
    { env: { A: 'b' } },
    { user: 'root' },
    { stdin: 'x' },
  ];
  const check = [
    ...limits,
    { env: ['A B'] },
    { env: ['A=B'] },
    { env: [''] },
    { env: ['A\0'] },
    { env: Array.from({ length: 33 }, () => 'A') },
    { network: 'yes' },
  ];
  let attacks = 0;
  const refuse = async (fields: object) => {
    const body = { wake_message: 'x', kind: 'once', delay_seconds: 60, ...fields };
    const answer = await ada.call('POST', '/v1/alarms', { body });
    assert.ok([400, 413].includes(answer.status), `${JSON.stringify(fields).slice(0, 100)}: ${answer.text}`);
    attacks++;
  };
  for (const argv of argvs) {
    await refuse({ run: { argv } });
    await refuse({ check: { command: { argv } } });
  }
  for (const more of [...limits, { network: true }, { env: ['A'] }]) await refuse({ run: { argv: ['true'], ...more } });
  for (const more of check) await refuse({ check: { command: { argv: ['true'], ...more } } });
  t.diagnostic(`${attacks} attacks`);
});
