import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { probeBubblewrap } from '../../../src/kit/process/bubblewrap.ts';
import { eventually } from '../../support/eventually.ts';
import { installedPackage } from '../../support/package.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { needsSandbox } from '../../support/tools.ts';
import { Containers } from './containers.ts';

const secret = () => randomBytes(24).toString('hex');
const SECRETS = [
  ...['POSTGRES_PASSWORD', 'CHRONOS_TOKEN', 'CHRONOS_AGENT_AUTH_SECRET', 'CHRONOS_ADMIN_TOKEN', 'WAKE_TOKEN'],
  ...['ROUTER_ADMIN_TOKEN', 'EXECUTOR_TOKEN', 'EXECUTOR_ADMIN_TOKEN', 'NEO_DAEMON_TOKEN'],
];
const DAEMONS = ['chronosd', 'router', 'executor', 'neo'];

type Token = { token: string };
type Fire = { outcome: string; turn?: { finished_at?: string; ok?: boolean } };

const means = await probeBubblewrap(process.env.PATH);

describe('the services of the compose file, in namespaces', { skip: needsSandbox(means) }, () => {
  const owner = sharedOwner();
  let database: PostgresServer;
  let containers: Containers;

  before(async () => {
    const variables: Record<string, string> = { MATRIX_USER_ID: 'ada' };
    for (const name of SECRETS) variables[name] = secret();
    database = await startPostgres();
    owner.after(() => database.stop('immediate'));
    const client = new pg.Client({ connectionString: database.uri() });
    await client.connect();
    await client.query(`CREATE ROLE chronos LOGIN PASSWORD '${variables.POSTGRES_PASSWORD}'`);
    await client.query("CREATE DATABASE chronos OWNER chronos TEMPLATE template0 ENCODING 'UTF8'");
    await client.end();
    const installed = await installedPackage(owner);
    containers = await Containers.of(owner, variables, { installed, database: database.port });
    for (const service of ['chronosd', 'router', 'executor']) await containers.start(service);
    // The steps of docs/operate/deploy.md for the first agent.
    const submitter = (await containers.run('executor', 'submitter', 'add', '--user', 'ada', "ada's agent")) as Token;
    containers.environment('neo').NEO_EXECUTOR_TOKEN = submitter.token;
    await containers.start('neo');
    const { NEO_PORT: port, NEO_DAEMON_TOKEN: token } = containers.environment('neo');
    const { public_key: key } = (await containers.run('neo', 'agent', 'whoami')) as { public_key: string };
    await containers.run('chronosd', 'agent', 'enroll', '--label', 'ada', '--public-key', key);
    const target = ['--provider', 'http', '--url', `http://neo:${port}`, '--token', token!];
    await containers.run('router', 'machine', 'put', 'ada', ...target);
  });
  after(() => owner.end());

  /** Sets an alarm from within the agent's container, due in this many seconds. */
  const set = async (message: string, when: string) =>
    ((await containers.run('neo', 'alarm', 'set', message, '--in', when)) as { id: string }).id;
  const turnEnds = (id: string) =>
    eventually(`the turn of ${id} has ended`, async () => {
      // A command in a container is two processes.
      await delay(500);
      const { fires } = (await containers.run('neo', 'alarm', 'show', id)) as { fires: Fire[] };
      return fires.some(({ turn }) => turn?.ok === true) && fires;
    });

  test('an alarm that the agent sets fires, and reaches its conversation', async () => {
    const fires = await turnEnds(await set('Look at the build', '1s'));
    assert.deepEqual(
      fires.map(({ outcome }) => outcome),
      ['delivered'],
    );
  });

  for (const service of ['db', ...DAEMONS]) {
    test(`kill -9 of ${service}: alarms that became due meanwhile fire once when it is back`, async () => {
      const id = await set(`after the end of ${service}`, '2s');
      await (service === 'db' ? database.kill() : containers.kill(service));
      await (service === 'db' ? database.start() : containers.start(service));
      const fires = await turnEnds(id);
      assert.equal(fires.filter(({ outcome }) => outcome === 'delivered').length, 1);
    });
  }
});
