import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Outcome, startReveille } from '../../../test/support/command-line.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { type Installation, startAgent, startInstallation } from '../../../test/support/installation.ts';
import { sharedOwner } from '../../../test/support/temporary.ts';

const lines = ({ stdout }: Outcome) => stdout.split('\n').filter((line) => line !== '');
const watches = ({ stdout }: Outcome) => stdout.startsWith('Watching ');

describe('reveille alarm watch', () => {
  const shared = sharedOwner();
  let house: Installation;
  let agent: Awaited<ReturnType<typeof startAgent>>;
  before(async () => {
    house = await startInstallation(shared);
    agent = await startAgent(shared);
    await house.run('machine', 'put', '--provider', 'http', '--url', agent.url);
  });
  after(() => shared.end());
  const wake = async (message: string, delay_seconds = 1) =>
    (await house.client.createAlarm({ kind: 'once', wake_message: message, delay_seconds })).id;

  test('prints every fire once, also of alarms that are added and removed meanwhile, and Ctrl-C ends it with 0', async (t) => {
    const old = await wake('firedLines before');
    await eventually('the alarm has fired', async () => (await house.client.getAlarm(old)).status === 'fired');
    // The watch must begin in a later second than that fire.
    const ended = Date.parse((await house.client.listFires(old)).fires[0]!.finished_at);
    await eventually('a later second', () => Math.floor(Date.now() / 1000) > Math.floor(ended / 1000));

    const watching = startReveille(t, house.home.path, ['alarm', 'watch']);
    await watching.until(watches);
    const once = await wake('first');
    const series = (await house.client.createAlarm({ kind: 'cron', wake_message: 'second', cron_expr: '@yearly' })).id;
    await house.client.triggerAlarm(series);
    await house.client.pauseAlarm(series);
    await house.client.triggerAlarm(series);
    await watching.until((outcome) => lines(outcome).length >= 4);
    const { status, stdout, stderr } = await watching.end('SIGINT');
    assert.deepEqual([status, stderr], [0, '']);
    const printed = stdout.split('\n').slice(1, -1);
    const firedLines = (id: string) =>
      printed.filter((line) => line.includes(id.slice(0, 13)) && / fired /.test(line)).length;
    assert.deepEqual([firedLines(once), firedLines(series), printed.length], [1, 2, 3]);
    assert.match(
      printed.join('\n'),
      /^\d\d:\d\d:\d\d {2}fired {4}[0-9a-f-]{13} {2}.*(late|on time|early).* {2}(first|second)$/m,
    );
  });

  test('prints a failure with its error, as a JSON line for programs, and SIGTERM ends it with 0', async (t) => {
    const watching = startReveille(t, house.home.path, ['alarm', 'watch', '--json']);
    // It prints nothing before the first fire: a printed fire shows that it watches.
    let rung = 0;
    await Promise.all([
      watching.until((outcome) => lines(outcome).length > 0),
      eventually('a fire is printed', async () => {
        if (lines(watching.outcome).length === 0) await wake(`probe ${++rung}`);
        return lines(watching.outcome).length > 0;
      }),
    ]);
    agent.status = 410;
    const id = await wake('is refused');
    const failures = (outcome: Outcome) => lines(outcome).filter((line) => JSON.parse(line).alarm_id === id);
    await watching.until((outcome) => outcome.stdout.endsWith('\n') && failures(outcome).length > 0);
    agent.status = 202;
    const { status, stdout } = await watching.end('SIGTERM');
    assert.equal(status, 0);
    const [event] = failures({ status, stdout, stderr: '' }).map((line) => JSON.parse(line));
    assert.deepEqual([event.outcome, event.status, event.kind, event.attempt], ['failed', 'failed', 'once', 1]);
    assert.match(event.error, /410/);
    assert.match(event.fire_id, new RegExp(`^${id}@\\d+$`));
  });

  test('follows one alarm to its end', async (t) => {
    const id = await wake('the one', 3600);
    const watching = startReveille(t, house.home.path, ['alarm', 'watch', '--id', id.slice(0, 23)]);
    await watching.until(watches);
    await wake('another', 1);
    // Only now: the command may take longer to start than an alarm takes to fire.
    await house.client.patchAlarm(id, { delay_seconds: 1 });
    await watching.ended;
    assert.equal(watching.outcome.status, 0);
    assert.match(watching.outcome.stdout, /^Watching 1 active alarm; Ctrl-C ends\.\n[^\n]+ {2}the one\n$/);
  });

  test('continues while chronosd is down, and prints the events of that time afterwards', async (t) => {
    const own = sharedOwner();
    t.after(() => own.end());
    const other = await startInstallation(own);
    const awake = await startAgent(own);
    await other.run('machine', 'put', '--provider', 'http', '--url', awake.url);
    const watching = startReveille(t, other.home.path, ['alarm', 'watch']);
    await watching.until(watches);
    const { id } = await other.client.createAlarm({ kind: 'once', wake_message: 'through it', delay_seconds: 1 });
    await other.chronos.close();
    await watching.until(({ stderr }) => stderr.includes('chronosd does not answer; asking again every second\n'));
    await other.restartChronos();
    await watching.until(({ stdout }) => stdout.includes(id.slice(0, 13)));
    await watching.until(({ stderr }) => stderr.endsWith('chronosd answers again\n'));
    assert.equal((await watching.end('SIGINT')).status, 0);
  });

  test('an absent alarm, and an unreachable chronosd, end it at once', async () => {
    const absent = await house.attempt(['alarm', 'watch', '--id', '019ed2b4-7c11-7000-8000-000000000001']);
    assert.equal(absent.status, 1);
    assert.match(absent.stderr, /you have no alarm with this id/);
    const env = { MATRIX_CHRONOS_URL: 'http://127.0.0.1:1', MATRIX_CHRONOS_TOKEN: 'x' };
    const nowhere = await house.attempt(['alarm', 'watch'], { env });
    assert.equal(nowhere.status, 1);
    assert.match(nowhere.stderr, /cannot reach chronosd/);
  });
});
