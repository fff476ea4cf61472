/** Attacks on the authorization server, over real HTTP: none gets a code or a token, and a replay ends the connection. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import {
  allow,
  Browser,
  type Document,
  type OauthBench,
  post,
  REDIRECT,
  redeem,
  refresh,
  requestOf,
  startDevice,
  startOauthBench,
  verifierOf,
} from './bench.ts';

/** A request that must end on a page of the server, without a form. */
async function refusedAt(bench: OauthBench, address: string): Promise<string> {
  const page = await bench.browser().open(address);
  assert.ok(page.url.startsWith(bench.at), `it stays here: ${page.url}`);
  assert.ok(page.status >= 400, `${page.status} at ${page.url}`);
  assert.ok(!page.text.includes('<form'), page.text);
  return page.text;
}

/** The error of a request, on a page of this server: an error takes no browser to an address that a client registered. */
async function errorAt(bench: OauthBench, address: string): Promise<string | undefined> {
  const text = await refusedAt(bench, address);
  return /\((\w+)\)\. Start again/.exec(text)?.[1];
}

describe('redirect addresses', () => {
  test('only the exact address of a web client gets an answer', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const tricks = [
      'https://app.example.com/callback/',
      'https://app.example.com/callback/../evil',
      'https://app.example.com/callback?next=https://evil.example',
      'https://app.example.com/callback#fragment',
      'https://app.example.com:8443/callback',
      'http://app.example.com/callback',
      'https://APP.example.com/callback',
      'https://app.example.com.evil.example/callback',
      'https://app.example.com@evil.example/callback',
      'https://evil.example/callback',
      'https://app.example.com/%63allback',
      'https://app.example.com\\@evil.example/callback',
      'javascript:alert(1)',
      'data:text/html,x',
      '//evil.example/callback',
      '',
    ];
    for (const redirect of tricks)
      await refusedAt(bench, requestOf(bench, verifierOf(), { client, more: { redirect_uri: redirect } }));
    await refusedAt(bench, requestOf(bench, verifierOf(), { client, more: { redirect_uri: undefined } }));
    const twice = `${requestOf(bench, verifierOf(), { client })}&redirect_uri=https%3A%2F%2Fevil.example%2F`;
    await refusedAt(bench, twice);
  });

  test('the free port of a loopback address frees nothing else', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/native.json', { redirect_uris: ['http://127.0.0.1/callback'] });
    const tricks = [
      'http://127.0.0.1:80/other',
      'http://127.0.0.1.evil.example/callback',
      'http://127.0.0.1:80@evil.example/callback',
      'http://localhost:80/callback',
      'http://[::1]:80/callback',
      'http://127.0.0.2/callback',
      'https://127.0.0.1/callback',
      'http://127.0.0.1:1/callback?x=1',
    ];
    for (const redirect of tricks) await refusedAt(bench, requestOf(bench, verifierOf(), { client, redirect }));
  });

  test('a document with an address that none may have makes no client', async (t) => {
    const bench = await startOauthBench(t);
    const lists: readonly (readonly unknown[])[] = [
      ['http://app.example.com/callback'],
      ['https://app.example.com/callback', 'http://evil.example/callback'],
      ['javascript:alert(1)'],
      ['data:text/html,x'],
      ['https://user:secret@app.example.com/callback'],
      ['https://app.example.com/callback#x'],
      ['file:///etc/passwd'],
      ['blob:https://app.example.com/x'],
      ['web+reveille://callback'],
      ['ms-msdt:/id'],
      ['search-ms:query=x'],
      [7],
      Array.from({ length: 21 }, (_, at) => `https://app.example.com/${at}`),
      [],
    ];
    for (const [at, redirect_uris] of lists.entries()) {
      const client = bench.documents.client(`/bad-${at}.json`, { redirect_uris });
      await refusedAt(bench, requestOf(bench, verifierOf(), { client, redirect: String(redirect_uris[0]) }));
    }
  });
});

describe('codes and tokens', () => {
  test('a replayed code ends the connection and its tokens', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const asked = { client };
    const allowed = await allow(bench, asked, { token: await bench.tokenOf('ada') });
    const first = await redeem(bench, asked, allowed);
    assert.equal(first.status, 200);
    const again = await redeem(bench, asked, allowed);
    assert.equal(again.json.error, 'invalid_grant');
    assert.equal((await refresh(bench, client, first.json.refresh_token!)).json.error, 'invalid_grant');
    assert.deepEqual(bench.oauth.connections.list('ada'), []);
  });

  test('of two redemptions at the same time at most one gets tokens, and they do not last', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const asked = { client };
    const token = await bench.tokenOf('ada');
    for (let round = 0; round < 5; round++) {
      const allowed = await allow(bench, asked, { token });
      const answers = await Promise.all(Array.from({ length: 4 }, () => redeem(bench, asked, allowed)));
      const got = answers.filter(({ status }) => status === 200);
      assert.ok(got.length <= 1, `${got.length} of 4`);
      for (const { json } of got)
        assert.equal((await refresh(bench, client, json.refresh_token!)).json.error, 'invalid_grant');
    }
    assert.deepEqual(bench.oauth.connections.list('ada'), []);
  });

  test('a refresh token works again until its successor is used; then it ends the connection', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const asked = { client };
    const token = await bench.tokenOf('ada');
    const { json } = await redeem(bench, asked, await allow(bench, asked, { token }));
    const next = await refresh(bench, client, json.refresh_token!);
    assert.equal((await refresh(bench, client, json.refresh_token!)).status, 200, 'the first answer was lost');
    const last = await refresh(bench, client, next.json.refresh_token!);
    assert.equal(last.status, 200);
    assert.equal((await refresh(bench, client, json.refresh_token!)).json.error, 'invalid_grant');
    assert.equal((await refresh(bench, client, last.json.refresh_token!)).json.error, 'invalid_grant');
    assert.deepEqual(bench.oauth.connections.list('ada'), []);
  });

  test('no request goes without PKCE, and no code without its verifier', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const without = (more: Record<string, string | undefined>) =>
      errorAt(bench, requestOf(bench, verifierOf(), { client, more }));
    assert.equal(await without({ code_challenge: undefined, code_challenge_method: undefined }), 'invalid_request');
    assert.equal(await without({ code_challenge_method: 'plain' }), 'invalid_request');
    assert.equal(await without({ code_challenge_method: undefined }), 'invalid_request');
    assert.equal(await without({ code_challenge: undefined }), 'invalid_request');
    const asked = { client };
    const allowed = await allow(bench, asked, { token: await bench.tokenOf('ada') });
    for (const code_verifier of [undefined, '', verifierOf(), 'short'])
      assert.match((await redeem(bench, asked, allowed, { code_verifier })).json.error!, /invalid_(?:grant|request)/);
    const other = bench.documents.client('/other.json');
    assert.equal((await redeem(bench, { client: other }, allowed)).json.error, 'invalid_grant');
    const elsewhere = await redeem(bench, asked, allowed, { redirect_uri: 'https://evil.example/' });
    assert.equal(elsewhere.json.error, 'invalid_grant');
    assert.equal((await redeem(bench, asked, allowed)).status, 200, 'no wrong attempt has used it');
  });

  test('tokens of a client serve no other client, and no other resource', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const other = bench.documents.client('/other.json');
    const asked = { client };
    const allowed = await allow(bench, asked, { token: await bench.tokenOf('ada') });
    const wrong = await redeem(bench, asked, allowed, { resource: `${bench.at}/mcp/intents` });
    assert.equal(wrong.json.error, 'invalid_target');
    const again = await allow(bench, asked, { token: await bench.tokenOf('ada') });
    const { json } = await redeem(bench, asked, again);
    assert.equal((await refresh(bench, other, json.refresh_token!)).json.error, 'invalid_grant');
    await post(bench, '/revoke', { client_id: other, token: json.refresh_token! });
    const more = await refresh(bench, client, json.refresh_token!, { scope: 'alarms:read intents:read' });
    assert.equal(more.json.error, 'invalid_scope');
    const next = await refresh(bench, client, json.refresh_token!);
    assert.equal(next.status, 200, 'another client has not revoked it');
    const resource = 'https://evil.example/mcp';
    assert.equal((await refresh(bench, client, next.json.refresh_token!, { resource })).json.error, 'invalid_target');
  });

  test('requests for other resources, response types and modes are refused', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const at = (more: Record<string, string | undefined>) => requestOf(bench, verifierOf(), { client, more });
    for (const resource of [
      undefined,
      'https://evil.example/mcp',
      `${bench.at}/mcp/other`,
      `${bench.at}/mcp/chronos/x`,
    ])
      assert.equal(await errorAt(bench, at({ resource })), 'invalid_target');
    for (const response_type of ['token', 'id_token', 'code id_token', 'none'])
      assert.equal(await errorAt(bench, at({ response_type })), 'unsupported_response_type');
    for (const response_mode of ['form_post', 'fragment', 'web_message', 'jwt'])
      await refusedAt(bench, at({ response_mode }));
    assert.equal(await errorAt(bench, at({ request: 'eyJ' })), 'request_not_supported');
    assert.equal(await errorAt(bench, at({ request_uri: 'https://evil.example/' })), 'request_uri_not_supported');
    assert.equal(await errorAt(bench, at({ prompt: 'none' })), 'login_required');
  });

  test('nothing on the disk is a usable token, and its files are private', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const asked = { client };
    const allowed = await allow(bench, asked, { token: await bench.tokenOf('ada') });
    const { json } = await redeem(bench, asked, allowed);
    const files = readdirSync(bench.oauthDir).map((name) => join(bench.oauthDir, name));
    assert.ok(files.length >= 2);
    for (const file of files) {
      assert.equal(statSync(file).mode & 0o077, 0, file);
      const bytes = readFileSync(file);
      for (const secret of [json.refresh_token!, json.access_token!, allowed.code])
        assert.ok(!bytes.includes(secret), `${file} has a token`);
    }
  });
});

describe('consent', () => {
  /** A browser that shows the consent page. */
  async function atConsent(bench: OauthBench, user = 'ada') {
    const client = bench.documents.client('/client.json');
    const browser = bench.browser();
    const signIn = await browser.open(requestOf(bench, verifierOf(), { client }));
    const page = await browser.submit(signIn, { do: 'sign-in', credential: await bench.tokenOf(user) });
    assert.match(page.text, /Allow access/);
    return { browser, page, signIn };
  }
  const ALLOW = { do: 'allow', scope: ['alarms:read'] } as const;

  test('a form of another site, of no site or without its secret changes nothing', async (t) => {
    const bench = await startOauthBench(t);
    const { browser, page } = await atConsent(bench);
    for (const origin of [
      'https://evil.example',
      'null',
      `${bench.at}.evil.example`,
      bench.at.replace('http', 'https'),
    ])
      assert.equal((await browser.submit(page, ALLOW, { origin })).status, 403, origin);
    const sneaky = await browser.submit(page, ALLOW, { 'sec-fetch-site': 'cross-site' });
    assert.equal(sneaky.status, 403);
    const path = /action="([^"]+)"/.exec(page.text)![1]!;
    const bare = await browser.open(path, { method: 'POST', body: new URLSearchParams({ do: 'allow' }) });
    assert.equal(bare.status, 403, 'without an origin');
    for (const csrf of ['', 'x'.repeat(43)]) {
      const body = new URLSearchParams({ csrf, do: 'allow', scope: 'alarms:read' });
      assert.equal((await browser.open(path, { method: 'POST', body, headers: { origin: bench.at } })).status, 403);
    }
    const { status, text } = await browser.open(`${path}?do=allow&scope=alarms:read`);
    assert.ok(status === 200 && text.includes('Allow access'), 'a GET shows the question again');
    const json = { method: 'POST', body: '{}', headers: { origin: bench.at, 'content-type': 'application/json' } };
    assert.equal((await browser.open(path, json)).status, 400);
    assert.deepEqual(bench.oauth.connections.list(), []);
    assert.equal((await browser.submit(page, ALLOW)).status, 0, 'the own form works');
    assert.equal((await browser.submit(page, ALLOW)).status, 404, 'once');
  });

  test('the form of one request answers no other, and no other browser', async (t) => {
    const bench = await startOauthBench(t);
    const { browser, page, signIn } = await atConsent(bench);
    const stranger = new Browser(bench.at);
    assert.equal((await stranger.submit(page, ALLOW)).status, 404, 'without the cookie');
    const { browser: bobs, page: bobsPage } = await atConsent(bench, 'bob');
    assert.equal((await bobs.submit(page, ALLOW)).status, 404, 'with the cookie of another request');
    const mixed = page.text.replace(/name="csrf" value="[^"]*"/, /name="csrf" value="[^"]*"/.exec(bobsPage.text)![0]);
    assert.equal((await browser.submit({ ...page, text: mixed }, ALLOW)).status, 403, 'with the secret of another');
    const reused = page.text.replace(/name="csrf" value="[^"]*"/, /name="csrf" value="[^"]*"/.exec(signIn.text)![0]);
    assert.equal((await browser.submit({ ...page, text: reused }, ALLOW)).status, 403, 'with that of the sign-in');
    assert.deepEqual(bench.oauth.connections.list(), []);
  });

  test('consent before the sign-in, or to more than was requested, is refused', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const browser = bench.browser();
    const signIn = await browser.open(requestOf(bench, verifierOf(), { client, scope: 'alarms:read' }));
    assert.equal((await browser.submit(signIn, ALLOW)).status, 401);
    const page = await browser.submit(signIn, { do: 'sign-in', credential: await bench.tokenOf('ada') });
    const none = await browser.submit(page, { do: 'allow', scope: ['alarms:write', 'intents:read', 'admin'] });
    assert.equal(none.status, 400, 'of these, none was asked for');
    assert.deepEqual(bench.oauth.connections.list(), []);
  });

  test('the session cookie alone, which another server of the computer may get, is no sign-in', async (t) => {
    const bench = await startOauthBench(t);
    const { browser, page } = await atConsent(bench);
    const stolen = browser.cookies().filter(({ path }) => path === '/oauth');
    assert.ok(stolen.length >= 1);
    const thief = new Browser(bench.at, stolen);
    const client = bench.documents.client('/evil.json');
    const begun = await thief.open(requestOf(bench, verifierOf(), { client }));
    assert.match(begun.text, /name="credential"/, 'a request of its own needs a sign-in');
    assert.equal((await thief.open(page.url)).status, 404, 'and that of the user is out of reach');
    assert.equal((await thief.submit(page, ALLOW)).status, 404);
    assert.deepEqual(bench.oauth.connections.list(), []);
  });

  test('the name of a client adds no sentence, no markup and no hidden text to the page', async (t) => {
    const bench = await startOauthBench(t);
    const token = await bench.tokenOf('ada');
    const names = [
      'A” of Anthropic, verified by Reveille, “B',
      'A" verified by Reveille, "B',
      'A» verified «B',
      'A\uff02 verified \u301eB',
      'A</strong><h1>Verified</h1>',
      'A\u202e.evil\u202c',
      'A\u200bB\u2066C',
      'A\n\nYou trust this client.',
      'A\ud800',
      'x'.repeat(5000).slice(0, 3000),
      'javascript:alert(1)',
    ];
    for (const [at, client_name] of names.entries()) {
      const logo = 'https://evil.example/logo.png';
      const client = bench.documents.client(`/name-${at}.json`, { client_name, logo_uri: logo, tos_uri: logo });
      const browser = bench.browser();
      const signIn = await browser.open(requestOf(bench, verifierOf(), { client }));
      const page = await browser.submit(signIn, { do: 'sign-in', credential: token });
      for (const { text } of [signIn, page]) {
        const quoted = /which calls itself “([^”]*)”, asks for/.exec(text);
        assert.ok(quoted, text);
        assert.ok(quoted[1]!.length <= 200, `${quoted[1]!.length}`);
        assert.doesNotMatch(quoted[1]!, /[\u200b-\u200f\u202a-\u202e\u2066-\u2069\n<>"“”«»\uff02\u301e]/);
        assert.doesNotMatch(text, /evil\.example/, 'no picture and no link of the client');
        assert.ok(text.includes(`<strong>${bench.documents.host}</strong>`), 'the host is first');
      }
      assert.equal((await browser.submit(page, { do: 'deny' })).status, 0);
    }
  });

  test('no page may frame the consent, and it sends no address elsewhere', async (t) => {
    const bench = await startOauthBench(t);
    const { page, signIn } = await atConsent(bench);
    const device = await bench.browser().open(`${bench.issuer}/device`);
    for (const { headers, url } of [page, signIn, device]) {
      assert.match(headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/, url);
      assert.equal(headers.get('x-frame-options'), 'DENY');
      assert.match(headers.get('referrer-policy') ?? '', /^(?:no-referrer|same-origin)$/);
      assert.match(headers.get('cache-control') ?? '', /no-store/);
    }
  });

  test('guessing tokens and codes is limited', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const browser = bench.browser();
    const signIn = await browser.open(requestOf(bench, verifierOf(), { client }));
    const statuses: number[] = [];
    for (let at = 0; at < 65; at++)
      statuses.push((await browser.submit(signIn, { do: 'sign-in', credential: 'x'.repeat(40) })).status);
    assert.equal(statuses[0], 401);
    assert.equal(statuses.at(-1), 429);
  });
});

describe('documents of clients', () => {
  const redirecting: Document = (_, response) => {
    response.writeHead(302, { location: '/client.json' }).end();
  };
  const sending =
    (text: string, type = 'application/json', status = 200): Document =>
    (_, response) => {
      response.writeHead(status, { 'content-type': type }).end(text);
    };

  test('a document that redirects, is huge, of another client or no document makes no client', async (t) => {
    const bench = await startOauthBench(t);
    bench.documents.client('/client.json');
    const of = (path: string, more: object = {}) => ({
      client_id: `https://${bench.documents.host}${path}`,
      redirect_uris: [REDIRECT],
      ...more,
    });
    const bad: Record<string, Document> = {
      '/redirect.json': redirecting,
      '/huge.json': of('/huge.json', { client_name: 'x'.repeat(6000) }),
      '/endless.json': sending(`{"client_id":"${'x'.repeat(200_000)}"}`),
      '/other.json': of('/client.json'),
      '/slash.json': of('/slash.json/'),
      '/case.json': of('/CASE.json'),
      '/none.json': { redirect_uris: [REDIRECT] },
      '/list.json': [1],
      '/text.json': sending('not json'),
      '/html.json': sending(JSON.stringify(of('/html.json')), 'text/html'),
      '/missing.json': sending(JSON.stringify(of('/missing.json')), 'application/json', 404),
      '/created.json': sending(JSON.stringify(of('/created.json')), 'application/json', 201),
      '/secret.json': of('/secret.json', { client_secret: 'a-secret-of-a-client' }),
      '/basic.json': of('/basic.json', { token_endpoint_auth_method: 'client_secret_basic' }),
      '/post.json': of('/post.json', { token_endpoint_auth_method: 'client_secret_post' }),
      '/implicit.json': of('/implicit.json', { response_types: ['token'], grant_types: ['implicit'] }),
    };
    for (const [path, document] of Object.entries(bad)) {
      const client = bench.documents.put(path, document);
      await refusedAt(bench, requestOf(bench, verifierOf(), { client }));
      const { status, json } = await post(bench, '/token', {
        ...{ grant_type: 'authorization_code', client_id: client, code: 'x', code_verifier: verifierOf() },
        redirect_uri: REDIRECT,
      });
      assert.ok(status === 400 || status === 401, `${path}: ${status} ${JSON.stringify(json)}`);
    }
  });

  test('a client id of another form is no address, and none is fetched', async (t) => {
    const bench = await startOauthBench(t);
    bench.documents.client('/client.json');
    const before = bench.documents.requests();
    const { host } = bench.documents;
    const ids = [
      `http://${host}/client.json`,
      `https://${host}`,
      `https://${host}/`,
      `https://user@${host}/client.json`,
      `https://${host}/client.json#x`,
      `https://${host}/a/../client.json`,
      `https://${host}/%2e%2e/client.json`,
      `https://${host}\\client.json`,
      `https://${host}/${'x'.repeat(500)}`,
      'file:///etc/passwd',
      'client',
      '',
    ];
    for (const client of ids) await refusedAt(bench, requestOf(bench, verifierOf(), { client }));
    assert.equal(bench.documents.requests(), before);
  });

  test('private addresses are not reached, by number or by name', async (t) => {
    const bench = await startOauthBench(t, { allow: undefined });
    const { host } = bench.documents;
    const port = host.split(':')[1];
    const ids = [
      `https://${host}/client.json`,
      `https://127.0.0.1:${port}/client.json`,
      `https://[::1]:${port}/client.json`,
      `https://[::ffff:127.0.0.1]:${port}/client.json`,
      `https://2130706433:${port}/client.json`,
      'https://169.254.169.254/latest/meta-data',
      'https://10.0.0.1/client.json',
      'https://metadata.google.internal/client.json',
    ];
    for (const client of ids) await refusedAt(bench, requestOf(bench, verifierOf(), { client }));
    assert.equal(bench.documents.requests(), 0);
  });

  test('a name that resolves to a private address is not reached', async (t) => {
    const bench = await startOauthBench(t, { allow: undefined }, (_, done) =>
      done(null, [
        { address: '93.184.216.34', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ]),
    );
    const client = `https://rebinding.example:${bench.documents.host.split(':')[1]}/client.json`;
    await refusedAt(bench, requestOf(bench, verifierOf(), { client }));
    assert.equal(bench.documents.requests(), 0);
  });

  test('a document is fetched once for many requests, and fetches are limited', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    for (let at = 0; at < 5; at++) await bench.browser().open(requestOf(bench, verifierOf(), { client }));
    assert.equal(bench.documents.requests(), 1);
    for (let at = 0; at < 70; at++) {
      const other = `https://${bench.documents.host}/unknown-${at}.json`;
      await bench.browser().open(requestOf(bench, verifierOf(), { client: other }));
    }
    assert.equal(bench.documents.requests(), 60);
    const known = await bench.browser().open(requestOf(bench, verifierOf(), { client }));
    assert.match(known.text, /Sign in/, 'a known client still works');
  });

  test('a document that comes slowly is waited for', async (t) => {
    const bench = await startOauthBench(t);
    const client_id = `https://${bench.documents.host}/slow.json`;
    const slow = JSON.stringify({ client_id, client_name: 'Slow', redirect_uris: [REDIRECT] });
    const client = bench.documents.put('/slow.json', (_, response) => {
      setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end(slow), 3500);
    });
    const page = await bench.browser().open(requestOf(bench, verifierOf(), { client }));
    assert.match(page.text, /Sign in/);
  });

  test('requests that use up the fetches keep no connected client from its tokens', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const asked = { client };
    const { json } = await redeem(bench, asked, await allow(bench, asked, { token: await bench.tokenOf('ada') }));
    // Its document is fetched again.
    await bench.restart();
    for (let at = 0; at < 70; at++) {
      const other = `https://${bench.documents.host}/unknown-${at}.json`;
      await post(bench, '/token', { grant_type: 'refresh_token', client_id: other, refresh_token: 'x' });
    }
    const stranger = bench.documents.client('/stranger.json');
    await refusedAt(bench, requestOf(bench, verifierOf(), { client: stranger }));
    assert.equal((await refresh(bench, client, json.refresh_token!)).status, 200);
  });
});

describe('the server', () => {
  test('its addresses do not follow the headers of a request', async (t) => {
    const bench = await startOauthBench(t);
    const headers = {
      ...{ 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https', forwarded: 'host=evil.example' },
    };
    const port = new URL(bench.at).port;
    for (const base of [bench.at, `http://localhost:${port}`]) {
      const response = await fetch(`${base}/.well-known/oauth-authorization-server/oauth`, { headers }).catch(
        () => undefined,
      );
      if (!response) continue;
      const text = await response.text();
      assert.ok(!text.includes('evil.example') && !text.includes('localhost'), text);
      assert.equal(JSON.parse(text).token_endpoint, `${bench.issuer}/token`);
    }
  });

  test('what is off has no address, and a large body is refused', async (t) => {
    const bench = await startOauthBench(t);
    for (const path of [
      '/register',
      '/request',
      '/me',
      '/session/end',
      '/session/end/confirm',
      '/token/introspection',
      '/x',
      '',
    ]) {
      const { status } = await post(bench, path, { client_id: 'x' });
      assert.equal(status, 404, path);
    }
    const body = `client_id=${'x'.repeat(40_000)}`;
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const { status } = await fetch(`${bench.issuer}/token`, { method: 'POST', body, headers });
    assert.equal(status, 413);
  });

  test('guessing the codes of devices is limited, and a form of another site is refused', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/device.json', {
      grant_types: ['urn:ietf:params:oauth:grant-type:device_code'],
      ...{ redirect_uris: [], response_types: [] },
    });
    const device = await startDevice(bench, client);
    const browser = bench.browser();
    const page = await browser.open(device.address);
    const foreign = await browser.submit(page, { user_code: device.code }, { origin: 'https://evil.example' });
    assert.equal(foreign.status, 403);
    const body = new URLSearchParams({ user_code: device.code, confirm: 'yes', xsrf: 'x' });
    const forged = await browser.open('/oauth/device', { method: 'POST', body, headers: { origin: bench.at } });
    assert.ok(!forged.text.includes('name="credential"'), forged.text);
    let typed = await browser.open(device.address);
    let limited = 0;
    for (let at = 0; at < 40; at++) {
      const answer = await browser.submit(typed, { user_code: 'BCDF-GHJK' });
      if (answer.status === 429) limited++;
      else typed = answer;
    }
    assert.ok(limited >= 8, `${limited} of 40`);
    assert.equal((await device.poll()).json.error, 'authorization_pending');
  });

  test('a flood of new requests is limited, and open connections go on', async (t) => {
    const bench = await startOauthBench(t);
    const client = bench.documents.client('/client.json');
    const asked = { client };
    const { json } = await redeem(bench, asked, await allow(bench, asked, { token: await bench.tokenOf('ada') }));
    const address = requestOf(bench, verifierOf(), asked);
    const answers: number[] = [];
    // A busy computer does not open 400 connections within the ten seconds of `fetch`.
    for (let round = 0; round < 8; round++) {
      const sent = Array.from({ length: 50 }, () => fetch(address, { redirect: 'manual' }));
      answers.push(...(await Promise.all(sent)).map(({ status }) => status));
    }
    assert.ok(answers.includes(429));
    assert.equal(bench.oauth.figures().limited, answers.filter((status) => status === 429).length);
    assert.equal((await refresh(bench, client, json.refresh_token!)).status, 200);
  });

  test('clients register themselves only where that is on, and are shown as unknown', async (t) => {
    const bench = await startOauthBench(t, { registration: true });
    const register = async (metadata: object) => {
      const headers = { 'content-type': 'application/json' };
      const init = { method: 'POST', headers, body: JSON.stringify(metadata) };
      const response = await fetch(`${bench.issuer}/register`, init);
      return { status: response.status, json: (await response.json()) as Record<string, string> };
    };
    for (const redirect of ['http://evil.example/', 'javascript:alert(1)', 'https://a.example/#x'])
      assert.equal((await register({ redirect_uris: [redirect] })).status, 400, redirect);
    const { status, json } = await register({
      ...{ client_name: 'claude.ai', redirect_uris: ['http://127.0.0.1/callback'] },
    });
    assert.equal(status, 201, JSON.stringify(json));
    const asked = { client: json.client_id!, redirect: 'http://127.0.0.1:1234/callback' };
    const browser = bench.browser();
    const page = await browser.open(requestOf(bench, verifierOf(), asked));
    assert.ok(page.text.includes('An unknown client'), page.text);
    const allowed = await allow(bench, asked, { token: await bench.tokenOf('ada') });
    assert.equal((await redeem(bench, asked, allowed)).status, 200);
  });
});
