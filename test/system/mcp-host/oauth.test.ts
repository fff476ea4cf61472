/** Sign-ins at MCP servers: consent, renewal, more scopes, and attacks of hostile servers. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { silentLogger } from '../../../src/kit/log/log.ts';
import { authorizationFetch } from '../../../src/mcp-host/oauth/authorization-fetch.ts';
import { beginSignIn, finishSignIn } from '../../../src/mcp-host/oauth/sign-in.ts';
import { signInFolder, TokenStore } from '../../../src/mcp-host/oauth/token-store.ts';
import { ServerPool } from '../../../src/mcp-host/server-pool.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { type Resource, scripted, specOf, startIssuer, startResource } from './oauth-servers.ts';

const CALLBACK = 'http://127.0.0.1:33418/callback';

/** @param entry more members of the server in its manifest */
async function workbench(t: TestContext, entry: (resource: Resource) => object = () => ({})) {
  const issuer = await startIssuer(t);
  const resource = await startResource(t, issuer);
  const { manifest, spec } = specOf(
    t,
    { url: resource.url, ...entry(resource) },
    { WIKI_SECRET: 'the-secret-of-wiki' },
  );
  const link = spec.link.kind === 'http' ? { ...spec.link, oauth: spec.link.oauth! } : assert.fail();
  const dataDir = temporaryFolder(t);
  const store = new TokenStore(dataDir, systemClock);
  const options = { spec, link, store, clock: systemClock };
  const place = { alias: 'wiki', url: resource.url };
  /** Consents in a browser. @returns the address that it shows at the end */
  async function consent(): Promise<string> {
    const request = await beginSignIn(options, CALLBACK);
    const answer = await fetch(request.url, { redirect: 'manual' });
    return answer.headers.get('location')!;
  }
  const signIn = async () => finishSignIn(options, await consent());
  async function start(): Promise<ServerPool> {
    const pool = await ServerPool.start(manifest, { clock: systemClock, log: silentLogger, dataDir });
    t.after(() => pool.close());
    return pool;
  }
  const ready = (pool: ServerPool) => eventually('it is ready', () => pool.servers()[0]!.state === 'ready');
  const call = async (pool: ServerPool) => JSON.stringify(await pool.call('wiki', 'look', {}));
  const tokenRequests = () => issuer.seen.filter(({ path }) => path === '/token').length;
  return { issuer, resource, dataDir, store, options, place, consent, signIn, start, ready, call, tokenRequests };
}

test('a server needs sign-in, says how, and starts within seconds of the consent', async (t) => {
  const { start, signIn, ready, call, resource } = await workbench(t);
  const pool = await start();
  assert.equal(pool.servers()[0]!.state, 'signed_out');
  const [out] = pool.signedOut();
  assert.match(out!.why, /needs sign-in: the user has not signed in; run: reveille neo server login wiki$/);
  assert.deepEqual(pool.warnings(), [`server "wiki" ${out!.why}`]);
  const asked = resource.seen.length;
  await signIn();
  await ready(pool);
  assert.match(await call(pool), /seen/);
  assert.deepEqual(pool.signedOut(), []);
  assert.ok(resource.seen.length > asked);
});

test('the tokens are sealed, private, bound to alias and address, and in no log', async (t) => {
  const { start, signIn, ready, call, store, place, dataDir } = await workbench(t);
  await signIn();
  const pool = await start();
  await ready(pool);
  await call(pool);
  const { tokens } = store.read(place);
  const folder = signInFolder(dataDir);
  for (const name of readdirSync(folder)) assert.equal(statSync(join(folder, name)).mode & 0o077, 0, name);
  const files = [dataDir, folder, join(dataDir, 'mcp-logs')].flatMap((at) =>
    readdirSync(at, { withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [join(at, entry.name)] : [])),
  );
  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    for (const secret of [tokens!.access_token, tokens!.refresh_token!]) assert.ok(!text.includes(secret), file);
  }
  assert.deepEqual(store.read({ ...place, url: 'https://elsewhere.example/mcp' }), {});
  assert.deepEqual(store.read({ ...place, alias: 'other' }), {});
});

test('an expired token is renewed once by many calls, and each refresh token is used once', async (t) => {
  const { start, signIn, ready, call, issuer, store, place, tokenRequests } = await workbench(t);
  await signIn();
  const pools = [await start(), await start()];
  await Promise.all(pools.map(ready));
  const before = store.read(place).tokens!;
  issuer.valid.clear();
  const results = await Promise.all([...pools, ...pools, ...pools].map(call));
  assert.ok(
    results.every((text) => text.includes('seen')),
    results.join('\n'),
  );
  assert.equal(tokenRequests(), 2, 'the consent, and one renewal');
  assert.notEqual(store.read(place).tokens!.refresh_token, before.refresh_token);
  issuer.valid.clear();
  assert.match(await call(pools[0]!), /seen/);
  assert.equal(issuer.wasReused(), false);
});

test('a refused renewal asks for a sign-in, a temporary failure does not', async (t) => {
  const { start, signIn, ready, call, issuer, store, place } = await workbench(t);
  await signIn();
  const pool = await start();
  await ready(pool);
  issuer.valid.clear();
  const { refresh_token } = store.read(place).tokens!;
  issuer.token = () => ({ status: 503, body: `busy with ${refresh_token}` });
  await assert.rejects(call(pool), (thrown: Error) => !String(thrown).includes(refresh_token!));
  assert.ok(!readFileSync(pool.servers()[0]!.log, 'utf8').includes(refresh_token!), 'an echo of it is not logged');
  assert.ok(store.read(place).tokens?.refresh_token, 'the sign-in is kept');
  issuer.token = () => ({ status: 400, body: { error: 'invalid_grant' } });
  await eventually('it is signed out', () => pool.servers()[0]!.state === 'signed_out');
  assert.equal(store.read(place).tokens, undefined);
  issuer.token = undefined;
  await signIn();
  await ready(pool);
});

test('a call that lacks a scope names it, and the next sign-in requests the granted scopes too', async (t) => {
  const { start, signIn, ready, call, resource, issuer, consent } = await workbench(t);
  await signIn();
  const pool = await start();
  await ready(pool);
  const header = 'Bearer error="insufficient_scope", scope="write"';
  resource.call = () => ({
    status: 403,
    headers: { 'www-authenticate': header },
    body: { error: 'insufficient_scope' },
  });
  assert.match(await call(pool), /was not called: .*requires the scope write.*reveille neo server login wiki/);
  assert.equal(pool.servers()[0]!.state, 'ready', 'other calls go on');
  await consent();
  const asked = issuer.seen.findLast(({ path }) => path.startsWith('/authorize'))!;
  assert.equal(new URL(asked.path, 'http://issuer').searchParams.get('scope'), 'read write');
  // A renewal meanwhile does not forget what is lacking.
  issuer.valid.clear();
  resource.call = undefined;
  assert.match(await call(pool), /seen/);
  await consent();
  const again = issuer.seen.findLast(({ path }) => path.startsWith('/authorize'))!;
  assert.equal(new URL(again.path, 'http://issuer').searchParams.get('scope'), 'read write');
});

test('the tokens reach no other authorization server that the server names later', async (t) => {
  const { start, signIn, ready, call, resource, issuer } = await workbench(t);
  const foreign = await startIssuer(t);
  await signIn();
  const pool = await start();
  await ready(pool);
  resource.issuer = foreign.url;
  issuer.valid.clear();
  await call(pool);
  await eventually('it is signed out', () => pool.servers()[0]!.state === 'signed_out');
  assert.match(pool.signedOut()[0]!.why, new RegExp(`now names the authorization server ${foreign.url}`));
  assert.deepEqual(
    foreign.seen.filter(({ method }) => method === 'POST'),
    [],
    'nothing was sent to it',
  );
});

test('the client secret of the manifest goes to its own authorization server only', async (t) => {
  const client = { client_id: 'wiki-client', client_secret: `\${WIKI_SECRET}` };
  const bench = await workbench(t, () => ({ oauth: { ...client, issuer: 'https://login.example' } }));
  await assert.rejects(bench.signIn(), /for which the manifest has no client|different|issuer/i);
  // Without an issuer it belongs to the one of the first sign-in.
  const free = await workbench(t, () => ({ oauth: client }));
  await free.signIn();
  const foreign = await startIssuer(t);
  free.resource.issuer = foreign.url;
  await assert.rejects(free.signIn());
  // The same without a person.
  const alone = await workbench(t, () => ({ oauth: { ...client, grant: 'client_credentials' } }));
  alone.issuer.token = () => {
    alone.issuer.valid.add('own');
    return { body: { access_token: 'own', token_type: 'Bearer' } };
  };
  const pool = await alone.start();
  await alone.ready(pool);
  alone.resource.issuer = foreign.url;
  alone.issuer.valid.clear();
  await assert.rejects(alone.call(pool));
  for (const { seen } of [bench.issuer, foreign])
    assert.ok(seen.every(({ headers, body }) => !`${headers.authorization} ${body}`.includes('secret')));
});

test('metadata of another issuer, and addresses that are not for a sign-in, are refused', async (t) => {
  const { issuer, consent } = await workbench(t);
  issuer.metadata = { issuer: 'https://login.example' };
  await assert.rejects(consent(), /issuer/i);
  for (const authorization_endpoint of ['http://login.example/authorize', 'https://me:pw@login.example/authorize']) {
    issuer.metadata = { authorization_endpoint };
    await assert.rejects(consent(), /is refused|must be/);
  }
  issuer.metadata = { authorization_endpoint: 'javascript:alert(1)' };
  await assert.rejects(consent());
});

test('an answer counts once, with its own state, issuer and address', async (t) => {
  const { options, consent, tokenRequests } = await workbench(t);
  const answer = new URL(await consent());
  const changed = (change: (url: URL) => void) => {
    const url = new URL(answer);
    change(url);
    return finishSignIn(options, url.href);
  };
  await assert.rejects(
    changed((url) => url.searchParams.set('state', 'guessed')),
    { code: 'invalid_request' },
  );
  await assert.rejects(
    changed((url) => {
      url.port = '1';
    }),
    { code: 'invalid_request' },
  );
  assert.equal(tokenRequests(), 0, 'no code was redeemed');
  await finishSignIn(options, answer.href);
  await assert.rejects(finishSignIn(options, answer.href), { code: 'invalid_request' });
  const second = new URL(await consent());
  second.searchParams.set('iss', 'https://evil.example');
  second.searchParams.set('error_description', 'Reveille asks you to type your password');
  await assert.rejects(finishSignIn(options, second.href), (thrown: Error) => {
    assert.doesNotMatch(thrown.message, /password/);
    return true;
  });
  assert.equal(tokenRequests(), 1);
  const third = new URL(await consent());
  third.searchParams.delete('code');
  third.searchParams.set('error', 'access_denied');
  await assert.rejects(finishSignIn(options, third.href), { code: 'forbidden', message: /was refused: access_denied/ });
});

test('a redirect takes neither a token nor a code to another origin', async (t) => {
  const { start, signIn, ready, call, resource, issuer, options, consent } = await workbench(t);
  const thief = await scripted(t, () => ({ body: {} }));
  await signIn();
  const pool = await start();
  await ready(pool);
  resource.call = () => ({ status: 307, headers: { location: `${thief.url}/mcp` } });
  await call(pool).catch(() => {});
  issuer.token = () => ({ status: 307, headers: { location: `${thief.url}/token` } });
  await assert.rejects(finishSignIn(options, await consent()), /redirects a request that carries secrets/);
  assert.deepEqual(thief.seen, []);
});

test('a public server cannot send a sign-in to private addresses, nor any server to a metadata service', async (t) => {
  const inside = await scripted(t, () => ({ body: {} }));
  const resolve = (host: string, done: (error: Error | null, found: { address: string; family: number }[]) => void) =>
    done(null, [{ address: host === 'meta.example' ? '169.254.169.254' : '10.0.0.7', family: 4 }]);
  const reach = async (server: string, address: string) => {
    const access = authorizationFetch(server, systemClock, resolve);
    t.after(() => access.close());
    return access.fetch(address);
  };
  const refused = /is refused: .*(private network|this computer|link-local|https:)/;
  for (const address of [
    inside.url,
    inside.url.replace('http:', 'https:'),
    'https://10.0.0.1/x',
    'https://[::1]/x',
    'https://[::ffff:127.0.0.1]/x',
    'https://inside.example/x',
    'https://meta.example/x',
    'http://public.example/x',
  ])
    await assert.rejects(reach('https://wiki.example/mcp', address), refused, address);
  await assert.rejects(reach('http://127.0.0.1:9/mcp', 'https://169.254.169.254/x'), refused);
  assert.deepEqual(inside.seen, []);
});

test('a name that begins like the address of this computer is a public one', async (t) => {
  const inside = await scripted(t, () => ({ body: {} }));
  const resolve = (_: string, done: (error: Error | null, found: { address: string; family: number }[]) => void) =>
    done(null, [{ address: '127.0.0.1', family: 4 }]);
  for (const [server, address] of [
    ['https://127.evil.example/mcp', inside.url],
    ['https://127.0.0.1.evil.example/mcp', inside.url],
    ['http://127.0.0.1:9/mcp', `http://127.evil.example:${new URL(inside.url).port}/token`],
  ] as const) {
    const access = authorizationFetch(server, systemClock, resolve);
    t.after(() => access.close());
    await assert.rejects(access.fetch(address), /is refused/, `${server} ${address}`);
  }
  assert.deepEqual(inside.seen, []);
});

test('the person learns which host gets the access, if it is not that of the sign-in', async (t) => {
  const { issuer, options } = await workbench(t);
  const begin = () => beginSignIn(options, 'http://127.0.0.1:1/callback');
  const honest = await begin();
  assert.equal(honest.accessHost, honest.host);
  issuer.metadata = { authorization_endpoint: 'https://login.honest.example/authorize' };
  const mixed = await begin();
  assert.deepEqual([mixed.host, mixed.accessHost], ['login.honest.example', new URL(issuer.url).host]);
});

test('an endless or huge answer of an authorization server is cut off', async (t) => {
  const huge = await scripted(t, () => ({ body: 'x'.repeat(300_000) }));
  const access = authorizationFetch('http://127.0.0.1:1/mcp', systemClock);
  t.after(() => access.close());
  await assert.rejects(access.fetch(huge.url), /more than 262144 bytes/);
});
