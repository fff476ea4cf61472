import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../kit/clock/clock.ts';
import type { Resolve } from '../kit/http/guarded-lookup.ts';
import { WebAccess } from '../kit/http/web-access.ts';
import { startGuardProxy } from './guard-proxy.ts';

async function site(t: TestContext, words: string) {
  const seen = { hits: 0 };
  const server = createServer((_, response) => {
    seen.hits++;
    response.end(words);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, port: (server.address() as AddressInfo).port };
}

/** The answer that a browser gets for an unencrypted address. */
function page(proxy: string, url: string): Promise<{ status: number; text: string }> {
  const { hostname: host, port } = new URL(proxy);
  return new Promise((resolve, reject) => {
    const asked = request({ host, port, path: url, headers: { host: 'x' }, agent: false }, async (answer) => {
      const text = (await answer.setEncoding('utf8').toArray()).join('');
      resolve({ status: answer.statusCode!, text });
    });
    asked.once('error', reject);
    asked.end();
  });
}

/** The answer of a tunnel, and the data through it. */
function tunnel(proxy: string, target: string): Promise<string> {
  const { hostname: host, port } = new URL(proxy);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port) });
    let said = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk;
      if (/^HTTP\/1\.1 200 Connection/.test(said) && !said.includes('GET sent')) {
        said += '[GET sent]';
        socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
      }
    });
    socket.once('close', () => resolve(said));
    socket.once('error', reject);
    socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n\r\n`);
  });
}

const resolve: Resolve = (name, done) => {
  if (name === 'inside.example' || name === 'open.example') done(null, [{ address: '127.0.0.1', family: 4 }]);
  else if (name === 'meta.example') done(null, [{ address: '169.254.169.254', family: 4 }]);
  else done(new Error(`no such name ${name}`), []);
};

test('a browser behind the proxy reaches only allowed addresses of this computer, by page or by tunnel', async (t) => {
  const secret = await site(t, 'secret');
  const open = await site(t, 'open');
  const web = new WebAccess({ clock: systemClock, allow: `open.example:${open.port},meta.example`, resolve });
  const proxy = await startGuardProxy(web, resolve);
  t.after(() => proxy.close());
  assert.deepEqual(await page(proxy.url, `http://open.example:${open.port}/`), { status: 200, text: 'open' });
  assert.match(await tunnel(proxy.url, `open.example:${open.port}`), /200 Connection established[\s\S]*open$/);
  const { port } = secret;
  const hosts = [
    '127.0.0.1',
    'localhost',
    '[::1]',
    '2130706433',
    '0x7f.1',
    'inside.example',
    'meta.example',
    '169.254.169.254',
  ];
  let through = 0;
  for (const host of [...hosts, '[::ffff:127.0.0.1]', '0.0.0.0', '10.0.0.1', '[fe80::1]', 'open.example']) {
    const { status } = await page(proxy.url, `http://${host}:${port}/`);
    const said = await tunnel(proxy.url, `${host}:${port}`);
    if (status === 200 || said.includes('secret')) through++;
    assert.equal(status, 403, host);
    assert.match(said, /^HTTP\/1\.1 403/, host);
  }
  for (const url of ['/', 'file:///etc/passwd', 'ftp://127.0.0.1/', 'https://127.0.0.1/'])
    assert.equal((await page(proxy.url, url)).status, 400, url);
  for (const target of ['', 'x', '/etc/passwd', `user@127.0.0.1:${port}`, '127.0.0.1:99999'])
    assert.doesNotMatch(await tunnel(proxy.url, target), /200 Connection/, target);
  assert.deepEqual([through, secret.seen.hits], [0, 0]);
  t.diagnostic(`${(hosts.length + 5) * 2 + 9} requests, ${secret.seen.hits} got through`);
});
