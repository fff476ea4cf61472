import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { createdAnswer, definitionOf, failedAnswer } from './answers.ts';
import type { ClientLine, ReceiverLine } from './history.ts';
import { openJournal, recordClient, recordReceiver } from './journal.ts';
import { readClientLogs, readReceiverLogs } from './read-log.ts';

const folder = mkdtempSync(join(tmpdir(), 'reveille-journal-'));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
const newFile = () => join(folder, `${files++}.jsonl`);

const openClient = (path: string) => openJournal<ClientLine>(path, { log: 'client', clockToleranceMs: 20 });
const openReceiver = (path: string, runsTurns = true) =>
  openJournal<ReceiverLine>(path, { log: 'receiver', clockToleranceMs: 30, runsTurns });

const create = {
  op: 'create',
  key: 'k',
  definition: definitionOf({ kind: 'once', wake_message: 'ü \u2028\n', delay_seconds: 1 }),
} as const;
const created = createdAnswer({ id: 'a', status: 'active', deduped: false, next_fire_at: '2026-06-15T08:10:00.000Z' });

/** A client log with one answered and one unanswered call. */
function writeClient(path: string): void {
  const journal = openClient(path);
  const recorder = recordClient(journal.write, journal.lines);
  recorder.invoke('ada', create, 1)(created, 2);
  recorder.invoke('ada', { op: 'cancel', alarmId: 'a' }, 3);
  journal.close();
}

const refusalOf = (read: () => unknown): string => {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof ReveilleError);
    assert.equal(error.code, 'invalid_request');
    return error.message;
  }
  return assert.fail('it was read');
};

test('requests and answers are read back; a call without an answer counts as lost', () => {
  const path = newFile();
  writeClient(path);
  const { log, remarks } = readClientLogs([path]);
  assert.equal(log.clockToleranceMs, 20);
  assert.deepEqual(remarks, []);
  assert.deepEqual(log.calls, [
    { user: 'ada', operation: create, invokedAt: 1, answeredAt: 2, answer: created },
    {
      user: 'ada',
      operation: { op: 'cancel', alarmId: 'a' },
      invokedAt: 3,
      answeredAt: null,
      answer: { answer: 'lost', reason: 'the log ends before the answer' },
    },
  ]);
});

test('wakes are read back with their answers, and turns; a payload keeps its digits', () => {
  const path = newFile();
  const journal = openReceiver(path);
  const recorder = recordReceiver(journal.write);
  const arrival = { fireId: 'a@1', user: 'ada', conversation: null, message: 'm', payload: '{"n":1e400}' };
  const answered = recorder.woken({ ...arrival, attempt: 1 }, 5);
  recorder.woken(arrival, 6);
  answered(202, 7);
  recorder.turn({ fireId: 'a@1', user: 'ada', conversation: 'c', message: 'm', status: 'done' }, 8);
  journal.close();
  const { wakes, turns } = readReceiverLogs([path]).log;
  assert.deepEqual(
    wakes.map(({ receivedAt, answeredAt, status, attempt, payload }) => [
      receivedAt,
      answeredAt,
      status,
      attempt,
      payload,
    ]),
    [
      [5, 7, 202, 1, '{"n":1e400}'],
      [6, null, null, null, '{"n":1e400}'],
    ],
  );
  assert.deepEqual(turns, [{ at: 8, fireId: 'a@1', user: 'ada', conversation: 'c', message: 'm', status: 'done' }]);
});

test('a log continues at its end, and an incomplete line of a crash is cut off', () => {
  const path = newFile();
  writeClient(path);
  appendFileSync(path, '{"event":"answered","call":1,"at":9,"ans');
  const { remarks } = readClientLogs([path]);
  assert.deepEqual(remarks, [`the last line of ${path} is incomplete and is ignored`]);

  const journal = openClient(path);
  assert.equal(journal.lines, 3);
  recordClient(journal.write, journal.lines).invoke('bob', create, 10)(created, 11);
  journal.close();
  const { log, remarks: later } = readClientLogs([path]);
  assert.deepEqual(later, []);
  assert.deepEqual(
    log.calls.map(({ user }) => user),
    ['ada', 'ada', 'bob'],
  );
});

test('each line is in the file when its write returns, even if the writer is killed', () => {
  const path = newFile();
  const script = `
    import { openJournal, recordClient } from ${JSON.stringify(join(import.meta.dirname, 'journal.ts'))};
    const journal = openJournal(${JSON.stringify(path)}, { log: 'client', clockToleranceMs: 0 });
    const recorder = recordClient(journal.write);
    for (let n = 0; n < 50; n++) recorder.invoke('ada', { op: 'read', alarmId: String(n) }, n);
    process.kill(process.pid, 'SIGKILL');`;
  const { signal } = spawnSync(process.execPath, ['--input-type=module', '--eval', script]);
  assert.equal(signal, 'SIGKILL');
  assert.equal(readClientLogs([path]).log.calls.length, 50);
});

test('a line for which there is no space leaves nothing behind', () => {
  const path = newFile();
  const script = `
    import { openJournal, recordClient } from ${JSON.stringify(join(import.meta.dirname, 'journal.ts'))};
    process.on('SIGXFSZ', () => {});
    const journal = openJournal(${JSON.stringify(path)}, { log: 'client', clockToleranceMs: 0 });
    const recorder = recordClient(journal.write);
    const ask = (n, size) => recorder.invoke('ada', { op: 'read', alarmId: 'x'.repeat(size) }, n);
    ask(1, 10);
    let refused = '';
    try { ask(2, 100_000); } catch (error) { refused = error.message; }
    ask(3, 10);
    console.log(refused);`;
  const program = `ulimit -f 32; exec "$0" --input-type=module --eval "$1"`;
  const { stdout, stderr } = spawnSync('/bin/sh', ['-c', program, process.execPath, script], { encoding: 'utf8' });
  assert.match(stdout, /cannot be written: EFBIG/, stderr);
  assert.deepEqual(
    readClientLogs([path]).log.calls.map(({ invokedAt }) => invokedAt),
    [1, 3],
  );
});

test('a file with other contents is not written to', () => {
  const path = newFile();
  for (const text of [
    'precious\n',
    '{"log":"receiver","version":1,"clockToleranceMs":0}\n',
    '{"log":"client","version":2,"clockToleranceMs":0}\n',
  ]) {
    writeFileSync(path, text);
    assert.throws(() => openClient(path), /is not a client log of version 1; name a new file/);
    assert.equal(readFileSync(path, 'utf8'), text);
  }
  assert.throws(() => openClient(folder), /cannot be opened: EISDIR/);
});

test('an invalid log is refused with the file, the line and the remedy', () => {
  const header = '{"log":"client","version":1,"clockToleranceMs":0}\n';
  const invoked = '{"event":"invoked","call":0,"at":1,"user":"ada","operation":{"op":"read","alarmId":"a"}}\n';
  const cases: [text: string | Buffer, complaint: RegExp][] = [
    ['', / is empty: the first line of a log declares its kind$/],
    [
      `${header}${invoked}not json\n${invoked}`,
      / line 3 is not JSON \(.*\): one line contains one JSON object; use the log as it was written$/,
    ],
    [`${header}${invoked}${invoked}`, / line 3: call 0 was invoked before; /],
    [
      `${header}{"event":"answered","call":7,"at":1,"answer":{"answer":"lost","reason":""}}\n`,
      / line 2: call 7 was never invoked, but is answered; /,
    ],
    [
      `${header}{"event":"invoked"}\n`,
      / line 2: call is required; at is required; user is required; operation is required; /,
    ],
    [header.replace('"version":1', '"version":2'), / is a log of version 2, and this checker reads version 1; /],
    [header.replace('client', 'receiver'), / is the log of the receiver; use it with --receiver, not --client$/],
    [
      header.replace('}', ',"tolerance":1}'),
      / line 1: unknown field "tolerance"; allowed here: log, version, clockToleranceMs, runsTurns/,
    ],
    [Buffer.concat([Buffer.from(header), Buffer.from([0xff, 0x0a])]), / line 2 is not UTF-8; /],
  ];
  for (const [text, complaint] of cases) {
    const path = newFile();
    writeFileSync(path, text);
    assert.match(
      refusalOf(() => readClientLogs([path])),
      complaint,
    );
  }
  assert.match(
    refusalOf(() => readClientLogs([join(folder, 'missing')])),
    /missing cannot be read: there is no such file; /,
  );
  assert.match(
    refusalOf(() => readClientLogs([folder])),
    / cannot be read: EISDIR/,
  );
});

test('several logs are read as one, with the widest tolerance; receivers agree on whether they run turns', () => {
  const [first, second] = [newFile(), newFile()];
  writeClient(first);
  writeClient(second);
  assert.equal(readClientLogs([first, second]).log.calls.length, 4);

  const [running, still] = [newFile(), newFile()];
  openReceiver(running).close();
  openReceiver(still, false).close();
  assert.equal(readReceiverLogs([still]).log.turns, null);
  assert.match(
    refusalOf(() => readReceiverLogs([running, still])),
    /do not agree on runsTurns/,
  );
  appendFileSync(
    still,
    '{"event":"turn","at":1,"fireId":"a@1","user":"ada","conversation":null,"message":"m","status":"done"}\n',
  );
  assert.match(
    refusalOf(() => readReceiverLogs([still])),
    /contains turns; its first line must have "runsTurns":true$/,
  );
});

test('only a refusal by chronosd counts as refused', () => {
  assert.equal(failedAnswer(new ReveilleError('conflict', 'no')).answer, 'refused');
  for (const thrown of [
    new ReveilleError('unavailable', 'no'),
    new ReveilleError('internal', 'no'),
    new ReveilleError('invalid_request', 'the request took too long to arrive', { status: 408, retryable: true }),
    new Error('cut'),
    'cut',
  ])
    assert.equal(failedAnswer(thrown).answer, 'lost');
});
