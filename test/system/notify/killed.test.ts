import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, before, test } from 'node:test';
import { startReveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { type Installation, startAgent, startInstallation } from '../../support/installation.ts';
import { diceOf } from '../../support/random/random.ts';
import { type StandInExecutor, startStandInExecutor } from '../../support/stand-ins/executor.ts';
import { startStandInNtfy } from '../../support/stand-ins/ntfy.ts';
import { sharedOwner } from '../../support/temporary.ts';

const shared = sharedOwner();
let installation: Installation;
let executor: StandInExecutor;

before(async () => {
  installation = await startInstallation(shared);
  const agent = await startAgent(shared);
  await installation.run('machine', 'put', '--provider', 'http', '--url', agent.url);
  executor = await startStandInExecutor();
  shared.after(() => executor.stop());
});
after(() => shared.end());

/** Sets alarms that fire in a second. */
async function setAlarms(names: readonly string[]): Promise<void> {
  for (const label of names)
    await installation.client.createAlarm({
      kind: 'once',
      delay_seconds: 1,
      label,
      wake_message: `I look after ${label}.`,
    });
}

const names = (from: string, count: number) => Array.from({ length: count }, (_, n) => `${from} ${n}`);

test('a notifier that is killed repeatedly, with a failing receiver, loses nothing and repeats no finished notification', async (t) => {
  const dice = diceOf(t);
  const ntfy = await startStandInNtfy(t, 'tk_of_the_phone');
  await installation.run(
    ...['notify', 'add', 'ntfy', '--server', ntfy.url, '--topic', 'ada', '--token', 'tk_of_the_phone'],
    ...['--allow-private', '--about', 'all'],
  );
  const env = { NEO_EXECUTOR_URL: executor.url, NEO_EXECUTOR_TOKEN: executor.token };
  const start = () => startReveille(t, installation.home.path, ['notifier', '--json'], { env });
  let notifier = start();
  await notifier.until(({ stdout }) => stdout.includes('"system":"notifier"'));
  executor.course = () => ({
    gates: [{ nodeId: 'pay', question: 'alice 5.00 → bob', tool: 'ledger/transfer', args: '{"amount":"5.00"}' }],
  });
  await fetch(`${executor.url}/messages/async`, {
    method: 'POST',
    headers: {
      ...{ authorization: `Bearer ${executor.token}`, 'content-type': 'application/json' },
      'x-matrix-user': `${installation.label}`,
    },
    body: JSON.stringify({ prose: 'Pay bob', idempotency_key: 'pay-bob' }),
  });
  const unanswered: ServerResponse[] = [];
  let fails = 0;
  // A third of the posts is accepted and never answered, a sixth refused, a sixth disconnected before it was read.
  ntfy.misbehave = (response, when) => {
    const face = dice(6);
    if (when === 'arrived' && face === 0) {
      fails++;
      response.destroy();
      return true;
    }
    if (when === 'arrived' && face === 1) {
      fails++;
      response.writeHead(503).end();
      return true;
    }
    if (when !== 'published' || face > 2) return false;
    unanswered.push(response);
    return true;
  };
  for (let kill = 0; kill < 3; kill++) {
    await setAlarms(names(`round ${kill}`, 3));
    const [posts, before] = [ntfy.published.length, unanswered.length];
    // During a post that was accepted and not acknowledged, where there is one.
    await eventually('a notice arrives', () => unanswered.length > before || ntfy.published.length > posts + 2);
    await notifier.end('SIGKILL');
    notifier = start();
  }
  ntfy.misbehave = undefined;
  for (const response of unanswered) response.destroy();
  const titles = [0, 1, 2].flatMap((kill) => names(`round ${kill}`, 3)).map((label) => `Rang: ${label}`);
  const wanted = [...titles, 'Approve? ledger/transfer'].sort();
  await eventually('all notifications are delivered', () => ntfy.shown().length >= wanted.length);
  await eventually('no wake waits', async () => {
    const [channel] = (await installation.run('notify', 'list', '--json')).trim().split('\n');
    return JSON.parse(channel!).waiting === 0;
  });
  const repeated = ntfy.published.length - ntfy.shown().length;
  t.diagnostic(
    `3 kills, ${unanswered.length} posts unanswered, ${fails} failed: ${wanted.length} notified, ${repeated} repetitions`,
  );
  assert.deepEqual(
    ntfy
      .shown()
      .map(({ title }) => title)
      .sort(),
    wanted,
  );
  assert.equal((await notifier.end('SIGTERM')).status, 0);
});
