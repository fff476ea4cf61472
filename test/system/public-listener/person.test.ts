/** A person connects to their agent: the router's public listener before a real Neo that sleeps and wakes. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createNeoClient, type NeoClient, type NeoEvent } from '../../../src/agents/neo/client.ts';
import { personClient } from '../../../src/cli/access/router.ts';
import { createContext } from '../../../src/cli/context.ts';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { createRouterClient, type RouterClient } from '../../../src/router/client.ts';
import { eventually } from '../../support/eventually.ts';
import { type Installation, startInstallation } from '../../support/installation.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';

/** The events that a permanently connected client has seen. */
function listening(client: NeoClient, conversationId: string, owner: { after(end: () => void): void }) {
  const seen: NeoEvent[] = [];
  const lost: string[] = [];
  const over = new AbortController();
  owner.after(() => over.abort());
  const onConnection = (connection: { state: string; error?: Error }) =>
    lost.push(connection.error?.message ?? connection.state);
  const done = (async () => {
    for await (const event of client.events({ conversationId, signal: over.signal, onConnection })) seen.push(event);
  })();
  done.catch(() => {});
  const replyTo = (turnId: string) =>
    eventually('the turn is done', () => seen.some(({ type, data }) => isEnd(type, data) && turnOf(data) === turnId));
  const opened = (times: number) =>
    eventually('the stream is open', () => lost.filter((reason) => reason === 'open').length >= times);
  return { seen, lost, replyTo, opened, stop: () => over.abort() };
}

const turnOf = (data: object) => ('turn_id' in data ? data.turn_id : undefined);
const isEnd = (type: string, data: object) => type === 'turn' && 'status' in data && data.status === 'done';

describe('a person at the public listener', () => {
  let installation: Installation;
  let machines: RouterClient;
  let ada: NeoClient;
  let token: string;
  const shared = sharedOwner();

  before(async () => {
    installation = await startInstallation(shared);
    const { router, secrets, home } = installation;
    machines = createRouterClient({ url: router.url, token: secrets.ROUTER_ADMIN_TOKEN });
    await machines.put('ada', {
      provider: 'process',
      spec: {
        command: [process.execPath, PROGRAM, 'neo'],
        env: { NEO_DATA_DIR: join(home.path, 'neo'), NEO_MANIFEST: 'none', MATRIX_USER_ID: 'ada' },
      },
      token: secrets.NEO_DAEMON_TOKEN,
    });
    const added = JSON.parse(await installation.run('user', 'add', 'ada', '--name', 'laptop', '--json'));
    token = added.token;
    ada = createNeoClient({ url: router.public.url, token });
  });
  after(() => shared.end());

  test('a message wakes the machine, its events come back, and a stream resumes at the same event after a sleep', async (t) => {
    const first = listening(ada, 'talk', t);
    await first.opened(1);
    assert.equal((await machines.show('ada')).running, 'ready');
    const one = await ada.chat({ message: 'good morning', conversation_id: 'talk' });
    await first.replyTo(one.turn_id);

    // Put to sleep under the open stream: it ends, and reopens by itself, which wakes the machine.
    await machines.suspend('ada');
    assert.equal((await machines.show('ada')).running, 'asleep');
    await machines.restore('ada');
    const two = await ada.chat({ message: 'and good night', conversation_id: 'talk' });
    await first.replyTo(two.turn_id);
    const ids = first.seen.flatMap(({ id }) => id ?? []);
    assert.equal(new Set(ids).size, ids.length, 'no event is repeated');
    first.stop();

    const { turns } = await ada.conversation('talk');
    assert.deepEqual(
      turns.map(({ origin, message, status }) => ({ origin, message, status })),
      ['good morning', 'and good night'].map((message) => ({ origin: 'user', message, status: 'done' })),
    );
  });

  test('a credential of this listener opens no other API, and no other credential opens this one', async () => {
    const { router, secrets } = installation;
    const status = async (url: string, bearer: string, path: string) =>
      (await fetch(url + path, { headers: { authorization: `Bearer ${bearer}` } })).status;
    assert.equal(await status(router.url, token, '/admin/machines'), 401);
    assert.equal(await status(router.url, token, '/internal/receipt-keys/ada'), 401);
    for (const secret of [secrets.ROUTER_ADMIN_TOKEN, secrets.CHRONOS_WAKE_TOKEN, secrets.NEO_DAEMON_TOKEN]) {
      assert.equal(await status(router.public.url, secret, '/conversations'), 401);
    }
    for (const path of ['/admin/machines', '/internal/wake', '/metrics']) {
      assert.equal(await status(router.public.url, token, path), 404, path);
    }
  });

  test('a revoked token ends the stream that it opened, and opens nothing any more', async (t) => {
    const made = JSON.parse(await installation.run('user', 'token', 'ada', '--name', 'phone', '--json'));
    const phone = createNeoClient({ url: installation.router.public.url, token: made.token });
    const stream = listening(phone, 'talk', t);
    await stream.opened(1);
    const revoked = await installation.run('user', 'revoke', 'ada', '--token', made.id.slice(0, 6));
    assert.match(revoked, /^Revoked phone \([0-9a-f]{12}\): open streams end now\n$/);
    await eventually('the stream ends', () => stream.lost.some((reason) => /ended the stream/.test(reason)));
    await assert.rejects(phone.tools(), {
      code: 'unauthorized',
      message: /^this needs "Authorization: Bearer <token>"/,
    });
    assert.match(await installation.run('user', 'list', 'ada'), /ada +[0-9a-f]{12} .* revoked .* phone\n/);
  });

  test('commands of another home connect with the address and the token', async (t) => {
    const env = {
      REVEILLE_HOME: temporaryFolder(t),
      REVEILLE_URL: installation.router.public.url,
      REVEILLE_TOKEN: token,
    };
    const process = { env, argv: [], stdout: {}, stderr: {} } as unknown as Parameters<typeof createContext>[0];
    const client = personClient(await createContext(process, {}));
    assert.equal(client.isHere, false);
    assert.equal((await client.conversations()).conversations[0]!.id, 'talk');
    const settings = { REVEILLE_URL: 'http://127.0.0.1:1' };
    const context = { home: installation.home, settings, clock: systemClock };
    assert.throws(() => personClient(context), { code: 'unauthorized', message: /set REVEILLE_TOKEN/ });
  });
});
