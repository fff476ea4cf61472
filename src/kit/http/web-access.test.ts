import assert from 'node:assert/strict';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { ReveilleError } from '../../wire/errors.ts';
import { systemClock } from '../clock/clock.ts';
import type { Resolve } from './guarded-lookup.ts';
import { WebAccess } from './web-access.ts';

/** A server that counts its requests. */
async function site(
  t: TestContext,
  answer: RequestListener = (_, response) => response.end('secret'),
  at?: [string, number],
) {
  const seen = { hits: 0 };
  const server = createServer((request, response) => {
    seen.hits++;
    answer(request, response);
  });
  const [host, wanted] = at ?? ['127.0.0.1', 0];
  await new Promise<void>((resolve) => server.listen(wanted, host, resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { seen, port: (server.address() as AddressInfo).port };
}

/** Resolves names for the test; each answer of a list is used once, the last one repeatedly. */
function names(table: Record<string, readonly (readonly string[])[]>): Resolve & { asked: number } {
  const left = new Map(Object.entries(table).map(([name, answers]) => [name, [...answers]]));
  const resolve = (name: string, done: Parameters<Resolve>[1]) => {
    resolve.asked++;
    const answers = left.get(name);
    if (!answers) return done(new Error(`no such name ${name}`), []);
    const [first] = answers.length > 1 ? answers.splice(0, 1) : answers;
    done(
      null,
      first!.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  resolve.asked = 0;
  return resolve;
}

function openWeb(t: TestContext, allow = '', resolve?: Resolve) {
  const web = new WebAccess({ clock: systemClock, allow, ...(resolve && { resolve }) });
  t.after(() => web.close());
  return web;
}

/** The outcome: the error code, or the page. */
async function outcome(web: WebAccess, url: string) {
  try {
    return (await web.get({ url })).body.toString();
  } catch (thrown) {
    assert.ok(thrown instanceof ReveilleError, String(thrown));
    return thrown.code;
  }
}

const REFUSED = new Set(['forbidden', 'invalid_request']);

describe('pages from untrusted addresses', () => {
  test('an address of this computer or a private network is refused, however it is spelt', async (t) => {
    const { seen, port } = await site(t);
    const web = openWeb(t);
    const hosts = [
      ...[
        '127.0.0.1',
        '127.0.0.1.',
        '127.1',
        '127.0.1',
        '2130706433',
        '0x7f000001',
        '0x7f.1',
        '0177.0.0.1',
        '017700000001',
      ],
      ...['0', '0.0.0.0', '%31%32%37.0.0.1', '１２７.0.0.1', '127。0。0。1', '①②⑦.0.0.1'],
      ...[
        '[::1]',
        '[::]',
        '[0:0:0:0:0:0:0:1]',
        '[::ffff:127.0.0.1]',
        '[::ffff:7f00:1]',
        '[::127.0.0.1]',
        '[64:ff9b::7f00:1]',
      ],
      ...[
        '[2002:7f00:1::]',
        '[::ffff:0:127.0.0.1]',
        '[fe80::1]',
        '[fe80::1%25lo]',
        '[fe80::1%lo]',
        '[fc00::1]',
        '[fec0::1]',
      ],
      ...[
        '10.0.0.1',
        '172.16.0.1',
        '192.168.0.1',
        '100.64.0.1',
        '169.254.169.254',
        '2852039166',
        '0xa9fea9fe',
        '100.100.100.200',
      ],
      ...[
        '168.63.129.16',
        '192.0.0.192',
        '[fd00:ec2::254]',
        '[::ffff:169.254.169.254]',
        '255.255.255.255',
        '224.0.0.1',
      ],
      ...['user@127.0.0.1', '127.0.0.1:80@127.0.0.1', 'localhost', 'LOCALHOST', 'localhost.'],
    ];
    const through = [];
    for (const host of hosts) {
      const found = await outcome(web, `http://${host}:${port}/`);
      if (!REFUSED.has(found)) through.push([host, found]);
    }
    // A name that does not resolve is refused as well.
    const reached = through.filter(([, found]) => found !== 'unavailable');
    assert.deepEqual([reached, seen.hits], [[], 0]);
    t.diagnostic(`${hosts.length} spellings, ${reached.length} got through`);
  });

  test('an address that is not of the web is refused', async (t) => {
    const web = openWeb(t);
    const urls = [
      'file:///etc/passwd',
      'ftp://127.0.0.1/',
      'gopher://127.0.0.1:70/_x',
      'data:text/plain,x',
      'javascript:1',
    ];
    for (const url of [
      ...urls,
      'unix:/run/docker.sock',
      '//example.org/',
      'example.org',
      '',
      ' ',
      'http://',
      `http://e/${'x'.repeat(9000)}`,
    ])
      assert.equal(await outcome(web, url), 'invalid_request', url);
  });

  test('a name that resolves to a private address is refused, also if only one of several is private', async (t) => {
    const { seen, port } = await site(t);
    const addresses = [
      ...[['127.0.0.1'], ['10.1.2.3'], ['169.254.169.254'], ['::1'], ['::ffff:127.0.0.1'], ['fd00::1'], ['0.0.0.0']],
      ...[
        ['93.184.216.34', '127.0.0.1'],
        ['127.0.0.1', '93.184.216.34'],
        ['2606:4700::1111', '::1'],
      ],
    ];
    const resolve = names(Object.fromEntries(addresses.map((list, index) => [`n${index}.example`, [list]])));
    const web = openWeb(t, '', resolve);
    for (const index of addresses.keys())
      assert.equal(await outcome(web, `http://n${index}.example:${port}/`), 'forbidden', String(addresses[index]));
    assert.equal(seen.hits, 0);
    t.diagnostic(`${addresses.length} names, ${seen.hits} got through`);
  });

  test('a redirect to a forbidden address is refused, at any position in the chain', async (t) => {
    const secret = await site(t);
    const targets = [
      ...[`http://127.0.0.1:${secret.port}/`, `http://localhost:${secret.port}/`, `http://[::1]:${secret.port}/`],
      ...[`http://inside.example:${secret.port}/`, `http://2130706433:${secret.port}/`, `//127.0.0.1:${secret.port}/`],
      ...[
        'http://169.254.169.254/latest/meta-data/',
        'file:///etc/passwd',
        'gopher://127.0.0.1/',
        'http://u:p@open.example/',
      ],
    ];
    const open = await site(t, (request, response) => {
      const [, kind, index] = request.url!.split('/');
      const location = kind === 'far' ? `/near/${index}` : targets[Number(index)];
      response.writeHead(kind === 'far' ? 307 : 302, { location }).end('moved');
    });
    const web = openWeb(
      t,
      `open.example:${open.port}`,
      names({ 'open.example': [['127.0.0.1']], 'inside.example': [['127.0.0.1']], localhost: [['127.0.0.1']] }),
    );
    for (const kind of ['near', 'far'])
      for (const index of targets.keys()) {
        const found = await outcome(web, `http://open.example:${open.port}/${kind}/${index}`);
        assert.ok(REFUSED.has(found), `${kind} ${targets[index]}: ${found}`);
      }
    assert.deepEqual([secret.seen.hits, open.seen.hits], [0, targets.length * 3]);
    t.diagnostic(`${targets.length * 2} redirects, ${secret.seen.hits} got through`);
  });

  test('a name that resolves differently later has no effect: the connection uses the checked address', async (t) => {
    const open = await site(t, (_, response) => response.end('open'), ['127.0.0.2', 0]);
    const secret = await site(t, undefined, ['127.0.0.3', open.port]);
    const rebinding = names({ 'rebind.example': [['127.0.0.2'], ['127.0.0.3']] });
    const web = openWeb(t, `rebind.example:${open.port}`, rebinding);
    assert.equal(await outcome(web, `http://rebind.example:${open.port}/`), 'open');
    assert.deepEqual([rebinding.asked, secret.seen.hits], [1, 0]);
    // Each request and each redirect is checked again.
    const back = await site(t, (_, response) => response.writeHead(302, { location: '/again' }).end());
    const turning = names({ 'turn.example': [['127.0.0.1'], ['169.254.169.254']] });
    const other = openWeb(t, `turn.example:${back.port}`, turning);
    assert.equal(await outcome(other, `http://turn.example:${back.port}/`), 'forbidden');
    assert.deepEqual([turning.asked, back.seen.hits], [2, 1]);
  });

  test('an allowed host is reached at its port only; metadata and link-local addresses never are', async (t) => {
    const wiki = await site(t, (_, response) => response.end('the wiki'));
    const other = await site(t);
    const resolve = names({ 'wiki.lan': [['127.0.0.1']], 'meta.lan': [['169.254.169.254']] });
    const web = openWeb(t, `wiki.lan:${wiki.port}, META.lan, [fe80::1]`, resolve);
    assert.equal(await outcome(web, `http://wiki.lan:${wiki.port}/`), 'the wiki');
    assert.equal(await outcome(web, `http://wiki.lan:${other.port}/`), 'forbidden');
    assert.equal(await outcome(web, `http://127.0.0.1:${wiki.port}/`), 'forbidden');
    for (const url of ['http://meta.lan/', 'http://[fe80::1]/']) assert.equal(await outcome(web, url), 'forbidden');
    await assert.rejects(web.get({ url: `http://127.0.0.1:${wiki.port}/` }), /allow 127\.0\.0\.1:\d+ by name$/);
    assert.equal(other.seen.hits, 0);
    for (const allow of ['10.0.0.0/8', 'a b', '*', 'http://wiki.lan'])
      assert.throws(() => openWeb(t, allow), /^ReveilleError: --allow must be hosts/, allow);
  });

  test('endless redirects, pages and decompressed pages are limited', async (t) => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    const { seen, port } = await site(t, (request, response) => {
      if (request.url === '/loop') return void response.writeHead(302, { location: '/loop' }).end();
      if (request.url === '/bomb') return void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
      const chunk = Buffer.alloc(256 * 1024, 'x');
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    });
    const web = openWeb(t, `127.0.0.1:${port}`);
    assert.equal(await outcome(web, `http://127.0.0.1:${port}/loop`), 'unavailable');
    assert.equal(seen.hits, 6);
    assert.equal(await outcome(web, `http://127.0.0.1:${port}/bomb`), 'unavailable');
    const { body, truncated } = await web.get({ url: `http://127.0.0.1:${port}/endless` });
    assert.deepEqual([body.length, truncated], [4 * 1024 * 1024, true]);
  });

  test('a request without an answer ends when the call is cancelled', async (t) => {
    const { port } = await site(t, () => {});
    const web = openWeb(t, `127.0.0.1:${port}`);
    const waiting = web.get({ url: `http://127.0.0.1:${port}/`, signal: AbortSignal.timeout(50) });
    await assert.rejects(waiting, /did not answer/);
  });
});
