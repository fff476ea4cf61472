/** Attacks by the address of a check, and by the site that it names. */
import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import type { Resolve } from '../../../src/kit/http/guarded-lookup.ts';
import { WebAccess } from '../../../src/kit/http/web-access.ts';
import { NotAllowed, Undecided } from '../../../src/router/checks/finding.ts';
import { lookAtAddress } from '../../../src/router/checks/http-check.ts';
import { type Check, checkSchema } from '../../../src/wire/conditions.ts';
import { atEnd } from '../../support/temporary.ts';
import { startSite } from './bench.ts';

/** A tenth of the usual time limits. */
const HASTY = {
  ...systemClock,
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  after: (ms: number, task: () => void) => systemClock.after(ms / 10, task),
};

function webFor(t: TestContext, { allow = '', resolve }: { allow?: string; resolve?: Resolve } = {}) {
  const web = new WebAccess({ clock: HASTY as typeof systemClock, allow, ...(resolve && { resolve }) });
  atEnd(t, () => web.close());
  return web;
}

/** What a check finds: its verdict, or the reason against it. */
async function look(web: WebAccess, http: NonNullable<Check['http']>, last?: string): Promise<string> {
  try {
    const { yes, reason, value, output } = await lookAtAddress(web, http, last, new AbortController().signal);
    assert.ok(reason.length < 2000 && (value?.length ?? 0) <= 1024 && (output?.length ?? 0) <= 5000);
    return `${yes}: ${reason}`;
  } catch (thrown) {
    assert.ok(thrown instanceof Undecided, String(thrown));
    return thrown instanceof NotAllowed ? `refused: ${thrown.message}` : `undecided: ${thrown.message}`;
  }
}

const setRefusal = (check: unknown) => checkSchema.safeParse(check).success === false;

/** Forms of an address of this computer, or of a private network. */
const hostsOf = (port: number) =>
  [
    ...[
      '127.0.0.1',
      '127.1',
      '127.0.1',
      '2130706433',
      '0x7f000001',
      '0x7f.1',
      '0177.0.0.1',
      '017700000001',
      '127.000.000.001',
    ],
    ...[
      '0',
      '0.0.0.0',
      '000.0.0.0',
      '127.255.255.254',
      '１２７.0.0.1',
      '①②⑦.⓪.⓪.①',
      '127。0。0。1',
      '%31%32%37.0.0.1',
      '127.0.0.1.',
    ],
    ...[
      '[::1]',
      '[0:0:0:0:0:0:0:1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[0:0:0:0:0:ffff:7f00:0001]',
      '[::ffff:0:127.0.0.1]',
    ],
    ...[
      '[::127.0.0.1]',
      '[64:ff9b::127.0.0.1]',
      '[64:ff9b:1::7f00:1]',
      '[2002:7f00:1::]',
      '[fe80::1]',
      '[fc00::1]',
      '[fd12:3456::1]',
      '[fec0::1]',
      '[ff02::1]',
      '[2001:db8::1]',
      '[100::1]',
      '[5f00::1]',
    ],
    ...[
      '10.0.0.1',
      '10.255.255.255',
      '172.16.0.1',
      '172.31.255.255',
      '192.168.1.1',
      '100.64.0.1',
      '169.254.169.254',
      '169.254.1.1',
      '[::ffff:169.254.169.254]',
      '[fd00:ec2::254]',
      '100.100.100.200',
      '168.63.129.16',
      '192.0.0.192',
      '192.0.0.8',
      '198.18.0.1',
      '203.0.113.1',
      '224.0.0.1',
      '255.255.255.255',
      '240.0.0.1',
      '2852039166',
      '0xa9fea9fe',
      '0251.0376.0251.0376',
    ],
  ].map((host) => `http://${host}:${port}/`);

test('no address of this computer or of a private network is called, however it is written or reached', async (t) => {
  const site = await startSite(t);
  const port = Number(new URL(site.url).port);
  const addresses: Record<string, string[][]> = {
    'private.example': [['10.0.0.7']],
    'loopback.example': [['127.0.0.1']],
    'six.example': [['::1']],
    'mapped.example': [['::ffff:127.0.0.1']],
    'mixed.example': [['93.184.216.34', '127.0.0.1']],
    'rebinding.example': [['127.0.0.1'], ['127.0.0.1']],
    localhost: [['127.0.0.1']],
    'localhost.': [['127.0.0.1']],
    'metadata.google.internal': [['169.254.169.254']],
    'nothing.example': [[]],
    'garbage.example': [['not-an-address']],
    'xn--nxasmq6b.example': [['127.0.0.1']],
  };
  const resolve: Resolve = (name, done) => {
    const answers = addresses[name];
    const found = answers && (answers.length > 1 ? answers.shift()! : answers[0]!);
    if (!found) return done(new Error(`no such name ${name}`), []);
    done(
      null,
      found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  const web = webFor(t, { resolve });
  const urls = [
    ...hostsOf(port),
    ...Object.keys(addresses).map((name) => `http://${name}:${port}/`),
    `http://LOCALHOST:${port}/`,
    `http://user@127.0.0.1:${port}/`,
    `http://example.com@127.0.0.1:${port}/`,
    `http://example.com:80@127.0.0.1:${port}/`,
    `http:\\\\127.0.0.1:${port}/`,
    `http:/\\127.0.0.1:${port}/`,
    `http:127.0.0.1:${port}/`,
    `http://127.0.0.1:${port}\\@example.com/`,
    `https://127.0.0.1:${port}/`,
    `http://127.0.0.1:22/`,
    `http://\t127.0.0.1:${port}/`,
    `http://127.0.0.1\u00ad:${port}/`,
    'file:///etc/passwd',
    'ftp://127.0.0.1/',
    'gopher://127.0.0.1/',
    'data:text/plain,x',
    'javascript:x',
    'unix:/run/x.sock',
    'http://',
    'http://[::1',
    `http://x:99999/`,
    `http://${'a'.repeat(3000)}/`,
  ];
  for (const url of urls) {
    if (setRefusal({ http: { url } })) continue;
    assert.match(await look(web, { url }), /^(?:refused|undecided): /, url);
  }
  assert.equal(site.hits, 0, 'nothing was called');
  // The same by a redirect from a site that may be called, and by a second one.
  const gate = await startSite(t);
  const open = webFor(t, { allow: new URL(gate.url).host, resolve });
  let redirects = 0;
  for (const location of [...urls, `//127.0.0.1:${port}/`, `http://127.0.0.1:${port}/#x`]) {
    for (const status of [302, 307, 308]) {
      gate.answer = (request, response) =>
        request.url === '/' && status === 308
          ? response.writeHead(301, { location: '/next' }).end()
          : response.writeHead(status, { location: encodeURI(location).replaceAll('%25', '%') }).end();
      const found = await look(open, { url: `${gate.url}/` });
      assert.match(found, /^(?:refused|undecided): |has status 30[278]/, location);
      redirects++;
    }
  }
  assert.equal(site.hits, 0, 'nothing was called after a redirect');
  t.diagnostic(`${urls.length + redirects} attacks`);
});

/** A server that answers each connection with raw bytes. */
async function rawSite(t: TestContext, answer: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const endlessly = (socket: Socket, text: string, ms = 0) => {
  const more = () => {
    if (socket.destroyed) return;
    if (socket.write(text)) setTimeout(more, ms);
    else socket.once('drain', () => setTimeout(more, ms));
  };
  more();
};

test('a site cannot hold a check, fill its memory, or make it say something that it did not find', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\n';
  const body =
    (text: string | Buffer, more = '') =>
    (socket: Socket) => {
      socket.write(`${head}${more}content-length: ${Buffer.byteLength(text)}\r\n\r\n`);
      socket.end(text);
    };
  const packed = (coding: string, bytes: Buffer) => body(bytes, `content-encoding: ${coding}\r\n`);
  const bomb = Buffer.alloc(200_000_000);
  const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
  const value = { pointer: '/a', equals: 1 } as const;
  type Row = [what: string, answer: (socket: Socket) => void, check: object, found: RegExp];
  const rows: Row[] = [
    [
      'an endless body',
      (socket) => endlessly(socket, `${socket.bytesWritten ? '' : `${head}\r\n`}${'x'.repeat(65_536)}`),
      { etag: 'changed' },
      /undecided: .*(?:longer|incomplete)/,
    ],
    [
      'an endless chunked body',
      (socket) => {
        socket.write(`${head}transfer-encoding: chunked\r\n\r\n`);
        endlessly(socket, `400\r\n${'x'.repeat(1024)}\r\n`);
      },
      { etag: 'changed' },
      /undecided: .*longer/,
    ],
    [
      'a chunk of 4 GB',
      (socket) => {
        socket.write(`${head}transfer-encoding: chunked\r\n\r\nffffffff\r\n`);
        endlessly(socket, 'x'.repeat(65_536));
      },
      { etag: 'changed' },
      /undecided: .*longer/,
    ],
    [
      'a slow body',
      (socket) => {
        socket.write(`${head}content-length: 1000\r\n\r\n`);
        endlessly(socket, 'x', 50);
      },
      { etag: 'changed' },
      /undecided: .*(?:incomplete|no answer)/,
    ],
    ['a slow head', (socket) => endlessly(socket, 'H', 50), {}, /undecided: /],
    ['no answer', () => {}, {}, /undecided: .*no answer within/],
    [
      'an endless head',
      (socket) => {
        socket.write(head);
        endlessly(socket, `x-a: ${'a'.repeat(1000)}\r\n`);
      },
      {},
      /undecided: .*did not answer/,
    ],
    [
      'an ETag of 1 MB',
      (socket) => socket.end(`${head}etag: "${'e'.repeat(1_000_000)}"\r\ncontent-length: 0\r\n\r\n`),
      { etag: 'changed' },
      /undecided: .*did not answer/,
    ],
    [
      'an ETag of 8 KB',
      (socket) => socket.end(`${head}etag: "${'e'.repeat(8000)}"\r\ncontent-length: 0\r\n\r\n`),
      { etag: 'changed' },
      /true: the ETag is known/,
    ],
    [
      'endless interim answers',
      (socket) => endlessly(socket, 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n', 1),
      {},
      /undecided: /,
    ],
    ['a protocol that is none', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), {}, /undecided: /],
    [
      'two lengths',
      (socket) => socket.end(`${head}content-length: 1\r\ncontent-length: 200\r\n\r\nx`),
      {},
      /undecided: |true/,
    ],
    [
      'an upgrade',
      (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
      {},
      /undecided: /,
    ],
    ['a gzip bomb', packed('gzip', gzipSync(bomb)), { etag: 'changed' }, /undecided: .*(?:decompressed within|longer)/],
    [
      'a deflate bomb',
      packed('deflate', deflateSync(bomb)),
      { etag: 'changed' },
      /undecided: .*(?:decompressed within|longer)/,
    ],
    ['a brotli bomb', packed('br', brotliCompressSync(bomb)), { etag: 'changed' }, /undecided: .*decompressed within/],
    [
      'gzip twice',
      packed('gzip, gzip', gzipSync(gzipSync(Buffer.alloc(100)))),
      { etag: 'changed' },
      /undecided: .*unsupported encoding/,
    ],
    ['gzip that is none', packed('gzip', Buffer.from('{"a":1}')), value, /undecided: .*cannot be decompressed/],
    ['an unknown coding', packed('zstd', Buffer.from('{"a":1}')), value, /undecided: .*unsupported encoding/],
    ['JSON, 100,000 deep', body(nested(100_000)), value, /undecided: .*(?:not JSON|longer)/],
    ['JSON, 10,000 deep', body(nested(10_000)), value, /undecided: .*not JSON/],
    ['lists, 30,000 deep', body(`${'['.repeat(30_000)}${']'.repeat(30_000)}`), value, /undecided: .*not JSON/],
    ['a number of 60,000 digits', body(`{"a":${'9'.repeat(60_000)}}`), value, /false: /],
    ['a number with a huge exponent', body('{"a":1e999999999999999999}'), value, /false: /],
    ['its changes', body('{"a":1e-999999999999999999}'), { pointer: '/a', changed: true }, /true: /],
    ['a text of 60,000 quotes', body(`{"a":"${'\\"'.repeat(30_000)}"}`), { pointer: '/a', changed: true }, /true: /],
    ['60,000 spaces', body(`{"a":${' '.repeat(60_000)}1}`), { pointer: '', changed: true }, /true: /],
    ['6000 members', body(`{${Array.from({ length: 6000 }, (_, n) => `"${n}":1`).join()},"a":1}`), value, /true: /],
    ['a prototype', body('{"b":1}'), { pointer: '/__proto__', changed: true }, /true: .*first time/],
    ['its constructor', body('{"b":1}'), { pointer: '/constructor/name', equals: 'Object' }, /false: /],
    ['the length of a list', body('[1]'), { pointer: '/length', equals: 1 }, /false: /],
    ['an index that is none', body('[1]'), { pointer: '/-1', changed: true }, /true: .*first time/],
    ['an index beyond numbers', body('[1]'), { pointer: '/99999999999999999999', equals: 1 }, /false: /],
    ['two members of one name', body('{"a":1,"a":2}'), value, /false: /],
    ['a text for a number', body('{"a":"1"}'), value, /false: /],
    ['not UTF-8', body(Buffer.from([0x7b, 0xff, 0xfe, 0x7d])), value, /undecided: .*not JSON/],
    ['a byte order mark', body('\ufeff{"a":1}'), value, /undecided: .*not JSON/],
    ['NaN', body('{"a":NaN}'), value, /undecided: .*not JSON/],
  ];
  const before = process.memoryUsage().rss;
  await Promise.all(
    rows.map(async ([what, answer, check, found]) => {
      const host = await rawSite(t, answer);
      const web = webFor(t, { allow: host });
      const http = { url: `http://${host}/`, ...check };
      assert.equal(setRefusal({ http }), false, what);
      const began = Date.now();
      assert.match(await look(web, http), found, what);
      assert.ok(Date.now() - began < 10_000, what);
    }),
  );
  const grown = (process.memoryUsage().rss - before) / 1e6;
  assert.ok(grown < 400, `${grown} MB`);
  t.diagnostic(`${rows.length} attacks, ${grown.toFixed(0)} MB more memory`);
});

test('headers go to the address of the check alone, and are what they say', async (t) => {
  const [one, other] = [await startSite(t), await startSite(t)];
  const web = webFor(t, { allow: `${new URL(one.url).host},${new URL(other.url).host}` });
  const headers = { authorization: 'Bearer x', cookie: 'a=b', 'x-api-key': 'k', Accept: 'text/plain' };
  const seen: NodeJS.Dict<string | string[]>[] = [];
  other.answer = (request, response) => {
    seen.push(request.headers);
    response.end('fine');
  };
  for (const status of [301, 302, 303, 307, 308]) {
    one.answer = (_, response) =>
      response.writeHead(status, { location: `${other.url}/x`, 'set-cookie': 'session=1; Path=/' }).end();
    assert.match(await look(web, { url: one.url, headers }), /^true/);
  }
  // By way of a third address back to the first one: what was dropped stays dropped.
  let back = 0;
  one.answer = (request, response) => {
    if (request.url !== '/back') return void response.writeHead(302, { location: `${other.url}/x` }).end();
    seen.push(request.headers);
    back++;
    response.end('fine');
  };
  other.answer = (_, response) => response.writeHead(302, { location: `${one.url}/back` }).end();
  assert.match(await look(web, { url: one.url, headers }), /^true/);
  assert.equal(back, 1);
  for (const { authorization, cookie, ...more } of seen) {
    assert.equal(authorization, undefined);
    assert.equal(cookie, undefined);
    assert.equal(more['x-api-key'], undefined);
  }
  const refused: Record<string, string>[] = [
    ...[
      'Host',
      'host',
      'HOST',
      'Connection',
      'Content-Length',
      'Transfer-Encoding',
      'Upgrade',
      'Expect',
      'TE',
      'Trailer',
      'Accept-Encoding',
      'Proxy-Authorization',
      'Keep-Alive',
      'proxy-connection',
    ].map((name) => ({ [name]: 'x' })),
    { 'x-a': 'b\r\nhost: evil.example' },
    { 'x-a': 'b\nx: y' },
    { 'x-a': 'b\rx: y' },
    { 'x-a': 'b\0' },
    { 'x-a': '\u6f22' },
    { 'x-a': '\u0001' },
    { 'x-a\r\nhost': 'evil.example' },
    { 'x a': 'b' },
    { 'x-a:': 'b' },
    { '': 'b' },
    { 'x-a': 'x'.repeat(5000) },
    { [`x${'a'.repeat(200)}`]: 'b' },
  ];
  for (const wrong of refused) assert.ok(setRefusal({ http: { url: one.url, headers: wrong } }), JSON.stringify(wrong));
  const more: object[] = [
    { method: 'POST' },
    { method: 'CONNECT' },
    { method: 'GET x HTTP/1.1\r\n' },
    { body: 'x' },
    { status: '200' },
    { status: 99 },
    { redirects: 99 },
    { pointer: 'a', equals: 1 },
    { pointer: '/~2', equals: 1 },
    { pointer: '/a' },
    { equals: 1 },
    { pointer: `/${'a'.repeat(600)}`, equals: 1 },
    { pointer: '/a', equals: {} },
    { pointer: '/a', equals: 1, changed: true },
    { etag: 'changed', changed: true },
    { method: 'HEAD', pointer: '/a', equals: 1 },
    { socket: '/run/x.sock' },
    { proxy: 'http://x' },
  ];
  for (const wrong of more) assert.ok(setRefusal({ http: { url: one.url, ...wrong } }), JSON.stringify(wrong));
  t.diagnostic(`${6 + refused.length + more.length} attacks`);
});

test('a proxy of the environment gets no request of a check', async (t) => {
  const site = await startSite(t);
  let asked = 0;
  const proxy = createHttpServer((_, response) => {
    asked++;
    response.end('proxied');
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  atEnd(t, () => proxy.close());
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const names = ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY'];
  for (const name of names) process.env[name] = url;
  atEnd(t, () => {
    for (const name of names) delete process.env[name];
  });
  assert.match(await look(webFor(t, { allow: new URL(site.url).host }), { url: site.url }), /^true/);
  assert.equal(asked, 0);
  t.diagnostic('1 attack');
});
