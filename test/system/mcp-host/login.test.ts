/** `reveille neo server login`: by a browser on this computer, by a pasted address, and before a server is added. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { reveille, startReveille } from '../../support/command-line.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { startIssuer, startResource } from './oauth-servers.ts';

async function bench(t: TestContext) {
  const issuer = await startIssuer(t);
  const resource = await startResource(t, issuer);
  const home = temporaryFolder(t);
  mkdirSync(join(home, 'agents'));
  const tools = [{ name: 'look', side_effect_class: 'read' }];
  const servers = [{ alias: 'wiki', transport: 'http', url: resource.url, tools }];
  writeFileSync(join(home, 'agents', 'neo.json'), JSON.stringify({ servers }));
  const neo = (...words: string[]) => reveille(home, ['neo', ...words]);
  return { issuer, resource, home, neo };
}

const addressIn = (text: string) => /^http:\/\/127\.0\.0\.1:\d+\/authorize\?\S+$/m.exec(text)?.[0];

/** What the browser shows at the end. */
async function consent(address: string): Promise<string> {
  return (await fetch(address, { redirect: 'manual' })).headers.get('location')!;
}

test('a browser on this computer signs in, and other pages cannot', async (t) => {
  const { home, neo, resource, issuer } = await bench(t);
  const before = JSON.parse((await neo('tools', '--json')).stdout);
  assert.match(before.sign_in[0].why, /needs sign-in: the user has not signed in; run: reveille neo server login wiki/);
  assert.match((await neo('tools')).stdout, /Needs sign-in:\n\n {2}wiki {2}needs sign-in/);
  const lacks = async () => (await reveille(home, ['doctor', '--json'])).stdout.includes('login wiki');
  assert.ok(await lacks(), 'the doctor says so, too');
  const login = startReveille(t, home, ['neo', 'server', 'login', 'wiki', '--no-browser']);
  await login.until(({ stdout }) => addressIn(stdout) !== undefined);
  const host = new URL(issuer.url).host;
  assert.match(
    login.outcome.stdout,
    new RegExp(`The server "wiki" \\(${new URL(resource.url).host}\\) sends you to ${host}`),
  );
  const answer = new URL(await consent(addressIn(login.outcome.stdout)!));
  const forged = new URL(answer);
  forged.searchParams.set('state', 'guessed');
  assert.equal((await fetch(forged)).status, 400);
  assert.equal((await fetch(`${answer.origin}/elsewhere?code=1`)).status, 404);
  const page = await fetch(answer);
  assert.deepEqual([page.status, page.headers.get('cache-control')], [200, 'no-store']);
  await login.ended;
  assert.equal(login.outcome.status, 0, login.outcome.stderr);
  assert.match(login.outcome.stdout, /Signed in at "wiki"/);
  assert.ok(!(await lacks()));
  const after = JSON.parse((await neo('tools', '--json')).stdout);
  assert.deepEqual([after.sign_in, after.tools.some((one: { name: string }) => one.name === 'wiki__look')], [[], true]);
  const gone = await neo('server', 'logout', 'wiki');
  assert.match(gone.stdout, /Removed the sign-in at "wiki"/);
  assert.equal(JSON.parse((await neo('tools', '--json')).stdout).sign_in.length, 1);
});

test('without a browser here the address is pasted, and only one of this sign-in', async (t) => {
  const { neo, home } = await bench(t);
  const unknown = await neo('server', 'login', 'notes');
  assert.match(unknown.stderr, /has no server "notes"; it has wiki/);
  const nothing = await neo('server', 'login', 'wiki', '--paste');
  assert.equal(nothing.status, 1);
  const wrong = await reveille(home, ['neo', 'server', 'login', 'wiki', '--paste'], {
    input: 'http://127.0.0.1:33418/callback?code=1&state=guessed\n',
  });
  assert.match(wrong.stderr, /the answer belongs to another sign-in/);
});

test('a pasted address signs in', async (t) => {
  const { neo, home } = await bench(t);
  const login = startReveille(t, home, ['neo', 'server', 'login', 'wiki', '--paste']);
  await login.until(({ stdout }) => addressIn(stdout) !== undefined);
  login.type(await consent(addressIn(login.outcome.stdout)!));
  await login.ended;
  assert.equal(login.outcome.status, 0, login.outcome.stderr);
  assert.match(login.outcome.stdout, /Signed in at "wiki"/);
  assert.deepEqual(JSON.parse((await neo('tools', '--json')).stdout).sign_in, []);
});

test('a server that needs sign-in is added after the sign-in at its address', async (t) => {
  const { home, neo, resource } = await bench(t);
  const add = ['server', 'add', 'docs', '--url', resource.url, '--read', 'look'];
  const refused = await neo(...add);
  assert.match(refused.stderr, new RegExp(`run: reveille neo server login docs --url ${resource.url}`));
  const login = startReveille(t, home, ['neo', 'server', 'login', 'docs', '--url', resource.url, '--no-browser']);
  await login.until(({ stdout }) => addressIn(stdout) !== undefined);
  await fetch(await consent(addressIn(login.outcome.stdout)!));
  await login.ended;
  const added = await neo(...add);
  assert.equal(added.status, 0, added.stderr);
  assert.match(added.stdout, /docs\/look/);
});
