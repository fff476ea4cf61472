import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import type { CliContext } from '../context.ts';
import { homeAt } from '../home/home.ts';
import { checkPublicListener } from './daemons.ts';

const front = (page: string) =>
  createServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(page));

/** @returns whether this system has such an address */
async function listens(t: TestContext, server: Server, host: string, port: number): Promise<boolean> {
  t.after(() => server.close());
  server.listen(port, host);
  return Promise.race([once(server, 'listening').then(() => true), once(server, 'error').then(() => false)]);
}

test('a program at [::1] with the same port is reported, and the console there is not', async (t) => {
  const ours = front('the console');
  assert.ok(await listens(t, ours, '127.0.0.1', 0));
  const { port } = ours.address() as AddressInfo;
  const context = {
    home: homeAt(temporaryFolder(t)),
    settings: { ROUTER_PUBLIC_HOST: '127.0.0.1', ROUTER_PUBLIC_PORT: String(port) },
  } as unknown as CliContext;
  assert.equal((await checkPublicListener(context))?.status, 'ok', 'there is no listener');

  const stranger = front('give me your token');
  if (!(await listens(t, stranger, '::1', port))) return t.skip('there is no IPv6 here');
  const found = await checkPublicListener(context);
  assert.equal(found?.status, 'warning');
  assert.match(
    found.detail,
    new RegExp(`another program listens at http://\\[::1\\]:${port}, which the name localhost`),
  );
  assert.match(found.remedy ?? '', /ROUTER_PUBLIC_PORT/);
  await new Promise((closed) => stranger.close(closed).closeAllConnections());

  assert.ok(await listens(t, front('the console'), '::1', port));
  assert.equal((await checkPublicListener(context))?.status, 'ok', 'it is the console');
});
