import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';

/** A process that reacts to signals with `onTermination`; `close` is the body of its drain. */
async function daemon(t: TestContext, close: string, hardLimitMs = 10_000) {
  const program = `
    import { onTermination } from ${JSON.stringify(import.meta.resolve('./drain.ts'))};
    import { systemClock } from ${JSON.stringify(import.meta.resolve('../clock/clock.ts'))};
    import { silentLogger } from ${JSON.stringify(import.meta.resolve('../log/log.ts'))};
    const close = async (signal) => { ${close} };
    onTermination(close, { log: silentLogger, clock: systemClock, hardLimitMs: ${hardLimitMs} });
    setInterval(() => {}, 1000);
    console.log('ready');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const output = async () => String((await once(child.stdout, 'data'))[0]).trim();
  assert.equal(await output(), 'ready');
  return { child, output, exit: once(child, 'exit').then(([code]) => code) };
}

test('the first signal drains, and the process exits with 0', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const { child, output, exit } = await daemon(t, `console.log('draining on ' + signal);`);
    child.kill(signal);
    assert.equal(await output(), `draining on ${signal}`);
    assert.equal(await exit, 0);
  }
});

test('a second signal ends the process immediately', async (t) => {
  const { child, output, exit } = await daemon(t, `console.log('draining'); await new Promise(() => {});`);
  child.kill('SIGTERM');
  assert.equal(await output(), 'draining');
  child.kill('SIGINT');
  assert.equal(await exit, 130);
});

test('the process exits with 1 if its drain throws or does not end', async (t) => {
  const throws = await daemon(t, `throw new Error('no');`);
  throws.child.kill('SIGTERM');
  assert.equal(await throws.exit, 1);
  const hangs = await daemon(t, 'await new Promise(() => {});', 50);
  hangs.child.kill('SIGTERM');
  assert.equal(await hangs.exit, 1);
});
