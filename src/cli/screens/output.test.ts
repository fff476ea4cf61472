import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createOutput } from './output.ts';

const HOSTILE = 'a\u009b2J\u202eb\u200b\u{e0041}\ue000\u001b[8m';

/** Text that is written to standard output as if it were a terminal, or a pipe. */
function written(t: TestContext, isTerminal: boolean, write: () => void): string {
  let text = '';
  const { isTTY, hasColors } = process.stdout;
  // A pipe has no such method.
  Object.assign(process.stdout, { isTTY: isTerminal, hasColors: () => true });
  const mock = t.mock.method(process.stdout, 'write', (chunk: string) => {
    text += chunk;
    return true;
  });
  try {
    write();
  } finally {
    mock.mock.restore();
    Object.assign(process.stdout, { isTTY, hasColors });
  }
  return text;
}

test('JSON on a terminal hides nothing and has the same value; piped it is unchanged', (t) => {
  const data = { text: HOSTILE };
  const shown = written(t, true, () => createOutput(process, true).result(data, []));
  assert.match(shown, /^[\x20-\x7e]+\n$/);
  assert.deepEqual(JSON.parse(shown), data);
  assert.equal(
    written(t, false, () => createOutput(process, true).result(data, [])),
    `${JSON.stringify(data)}\n`,
  );
});

test("unsafe text of a command is made harmless at output; the program's own colours stay", (t) => {
  const shown = written(t, true, () => {
    const out = createOutput(process, false);
    out.result({}, [HOSTILE, out.paint('bold', 'ours')]);
    out.line(HOSTILE);
  });
  const lines = shown.replaceAll(/\u001b\[(?:1|22)m/g, '').split('\n');
  assert.equal(lines[0], 'a\\u009b2J\\u202eb\\u200b\\u{e0041}\\ue000\\u001b[8m');
  assert.deepEqual(lines.slice(1), ['ours', lines[0], '']);
});
