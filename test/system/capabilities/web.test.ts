import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openNeo, site } from './bench.ts';

test('a page comes as text with its links, in pieces where it is long, and says that it is nobody’s instruction', async (t) => {
  const deep = '<div>'.repeat(5000);
  const port = await site(t, (request, response) => {
    const html = (text: string) => response.setHeader('content-type', 'text/html; charset=utf-8').end(text);
    if (request.url === '/page')
      return void html(
        '<h1>Tea</h1><script>evil()</script><p>Green &amp; black, <a href="/more">more</a> <img src=x alt=pixel></p>',
      );
    if (request.url === '/long') return void response.setHeader('content-type', 'text/plain').end('ab'.repeat(30_000));
    if (request.url === '/latin')
      return void response
        .setHeader('content-type', 'text/html; charset=iso-8859-1')
        .end(Buffer.from('<p>caf\xe9</p>', 'latin1'));
    if (request.url === '/deep') return void html(`${deep}x`);
    if (request.url === '/picture') return void response.setHeader('content-type', 'image/png').end('x');
    return void response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":"none"}');
  });
  const host = `127.0.0.1:${port}`;
  const { call } = await openNeo(t, { NEO_FETCH_ALLOW: host });
  const get = (path: string, more: object = {}) => call('fetch/fetch', { url: `http://${host}${path}`, ...more });
  const page = await get('/page');
  assert.match(page.text, /^\[http:\S+\/page: status 200, text\/html, .*not an instruction\.\]/);
  assert.match(page.text, /TEA[\s\S]*Green & black, more \[http:\/\/127\.0\.0\.1:\d+\/more\]/);
  assert.doesNotMatch(page.text, /evil|pixel|<p>/);
  assert.match((await get('/page', { raw: true })).text, /<h1>Tea<\/h1>/);
  const piece = await get('/long', { start_index: 59_990, max_length: 50 });
  assert.match(piece.text, /characters 59990 to 60000 of 60000[\s\S]*\n\nababababab$/);
  assert.match((await get('/latin')).text, /café/);
  assert.equal((await get('/deep')).isError, false);
  assert.match((await get('/none')).text, /status 404[\s\S]*"none"/);
  const picture = await get('/picture');
  assert.deepEqual(
    [picture.isError, /has the type image\/png; only text can be read/.test(picture.text)],
    [true, true],
  );
  const inside = await call('fetch/fetch', { url: `http://127.0.0.1:${port + 1}/` });
  assert.ok(inside.isError);
  assert.match(inside.text, /127\.0\.0\.1 is an address of this computer: it is not reached; to reach it, allow 127/);
});

test('a search asks the engine that was set up, and no other address, also when it is sent on', async (t) => {
  const asked: string[] = [];
  const port = await site(t, (request, response) => {
    asked.push(request.url!);
    const { pathname, searchParams } = new URL(request.url!, 'http://x');
    if (searchParams.get('q') === 'away') return void response.writeHead(302, { location: '/elsewhere' }).end();
    if (searchParams.get('q') === 'odd') return void response.end('<html>');
    if (pathname !== '/search' || searchParams.get('format') !== 'json') return void response.writeHead(404).end();
    const results = [1, 2, 3].map((n) => ({
      title: `<b>T</b>${n}`,
      url: `https://e.example/${n}`,
      content: `About ${n}`,
    }));
    return void response.end(JSON.stringify({ results }));
  });
  const engine = { NEO_SEARCH_URL: `http://127.0.0.1:${port}` };
  const closed = await openNeo(t, engine);
  assert.match((await closed.call('web_search/search', { query: 'tea' })).text, /is an address of this computer/);
  assert.equal(asked.length, 0);
  const { call } = await openNeo(t, { ...engine, NEO_FETCH_ALLOW: `127.0.0.1:${port}` });
  const found = await call('web_search/search', { query: 'tea & milk', count: 2 });
  assert.equal(found.text, '1. T1\nhttps://e.example/1\nAbout 1\n\n2. T2\nhttps://e.example/2\nAbout 2');
  assert.deepEqual(asked, ['/search?q=tea+%26+milk&format=json']);
  assert.match((await call('web_search/search', { query: 'away' })).text, /redirects again after 0 redirects/);
  assert.match((await call('web_search/search', { query: 'odd' })).text, /a SearXNG must have "json"/);
  assert.ok(!asked.includes('/elsewhere'));
});
