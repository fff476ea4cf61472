/**
 * A user with a real browser connects an unmodified MCP client to `reveille up`. The client finds the server by itself.
 * The user signs in with the address of `reveille open` and allows access. The client sets an alarm. The console then
 * ends its access.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import AxeBuilder from '@axe-core/playwright';
import { Client, type OAuthClientProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Page } from 'playwright-core';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser } from '../../support/browser.ts';
import { atEnd, type Owner, sharedOwner } from '../../support/temporary.ts';
import { type Installation, startInstallation } from '../console/bench.ts';
import { startDocuments } from './bench.ts';

/** Where a client on this computer gets its answer. */
async function startCallback(owner: Owner) {
  const { promise, resolve } = Promise.withResolvers<URLSearchParams>();
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '/', 'http://localhost');
    if (searchParams.has('state')) resolve(searchParams);
    response.end('<title>Back at the client</title>');
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  atEnd(owner, () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`, answer: promise };
}

type Tokens = Parameters<OAuthClientProvider['saveTokens']>[0];
type Registered = Parameters<NonNullable<OAuthClientProvider['saveClientInformation']>>[0];

/** What a client keeps. */
class Kept implements OAuthClientProvider {
  readonly redirectUrl: string;
  readonly clientMetadataUrl: string;
  readonly clientMetadata;
  #verifier = '';
  #tokens: Tokens | undefined;
  #client: Registered | undefined;
  address: URL | undefined;

  constructor(redirectUrl: string, clientMetadataUrl: string) {
    this.redirectUrl = redirectUrl;
    this.clientMetadataUrl = clientMetadataUrl;
    this.clientMetadata = { client_name: 'Kept', redirect_uris: [redirectUrl] };
  }

  state = () => 'a-state-of-the-client';
  clientInformation = () => this.#client;
  saveClientInformation = (given: Registered) => {
    this.#client = given;
  };
  tokens = () => this.#tokens;
  saveTokens = (given: Tokens) => {
    this.#tokens = given;
  };
  redirectToAuthorization = (address: URL) => {
    this.address = address;
  };
  saveCodeVerifier = (text: string) => {
    this.#verifier = text;
  };
  codeVerifier = () => this.#verifier;
}

describe('a person, a browser and an unmodified client', () => {
  const owner = sharedOwner();
  let installation: Installation;
  let page: Page;
  let documents: Awaited<ReturnType<typeof startDocuments>>;

  before(async () => {
    documents = await startDocuments(owner);
    const settings = { ROUTER_OAUTH: '1', ROUTER_OAUTH_ALLOW: documents.host, REVEILLE_TLS_CA: documents.authority };
    const [started, browser] = await Promise.all([
      startInstallation(owner, saying('Done.'), settings),
      startBrowser(owner),
    ]);
    installation = started;
    ({ page } = await browser.open({ width: 900 }));
  });
  after(() => owner.end());

  test('the client connects, sets an alarm, and is disconnected in the console', async () => {
    const problems: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error') problems.push(message.text());
    });
    const accessible = async (where: string) => {
      for (const width of [360, 900]) {
        await page.setViewportSize({ width, height: 900 });
        const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
        assert.deepEqual(
          violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`),
          [],
          where,
        );
        const widest = await page.evaluate<number>('document.documentElement.scrollWidth');
        assert.ok(widest <= width, `${where} is ${widest} wide at ${width}`);
      }
    };
    const callback = await startCallback(owner);
    const id = documents.client('/client.json', {
      client_name: 'Test Desktop',
      redirect_uris: ['http://127.0.0.1/callback'],
    });
    const kept = new Kept(callback.url, id);
    const address = new URL(`${installation.run.public_url}/mcp/chronos`);
    const connect = () => new StreamableHTTPClientTransport(address, { authProvider: kept });
    const first = connect();
    await assert.rejects(new Client({ name: 'test', version: '1' }).connect(first), /[Uu]nauthorized/);
    const request = kept.address?.href ?? '';
    assert.ok(request.startsWith(`${installation.run.public_url}/oauth/auth?`), request);

    await page.goto(request);
    assert.ok((await page.innerText('main')).includes(documents.host));
    await accessible('the sign-in');
    await page.fill('#credential', await installation.address());
    await page.click('button:text-is("Sign in")');
    await page.waitForSelector('h1:text("Allow access?")');
    const text = await page.innerText('main');
    assert.ok(text.includes('a program on this computer') && text.includes('“Test Desktop”'), text);
    await accessible('the consent page');
    await page.click('button:text-is("Allow")');
    const answer = await callback.answer;
    await page.waitForFunction(`document.title === 'Back at the client'`);
    assert.equal(answer.get('iss'), `${installation.run.public_url}/oauth`);
    assert.deepEqual(problems, [], 'the policy of the pages blocks nothing');

    await first.finishAuth(answer);
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(connect());
    const alarm = { kind: 'once', wake_message: 'water the violets', delay_seconds: 9000, label: 'violets' };
    const set = await client.callTool({ name: 'alarm_set', arguments: alarm });
    assert.ok(!set.isError, JSON.stringify(set));

    const listed = (await installation.reveille('client', 'list', '--json')).trim().split('\n');
    const [connection] = listed.map((line) => JSON.parse(line) as Record<string, unknown>);
    assert.equal(connection!.client_id, id);
    assert.deepEqual(connection!.scopes, ['alarms:read', 'alarms:write']);

    await page.goto(await installation.address());
    await page.waitForURL(/\/upcoming$/);
    const { id: alarmId } = set.structuredContent as { id: string };
    await page.goto(page.url().replace(/upcoming$/, `alarms/${alarmId}`));
    const shownAlarm = await page.innerText('main');
    assert.ok(shownAlarm.includes('water the violets') && shownAlarm.includes(documents.host), shownAlarm);
    await page.click('footer >> text=Clients');
    await page.waitForSelector('h1:text("Clients")');
    assert.ok((await page.innerText('main')).includes(documents.host));
    await accessible('the clients of the console');
    await page.click('text=Disconnect');
    await page.waitForSelector('body > .notice >> text=Disconnected');
    assert.ok((await page.innerText('main')).includes('No clients'));
    const { access_token: token } = kept.tokens()!;
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json',
    };
    const { status } = await fetch(address, { method: 'POST', headers, body: '{}' });
    assert.equal(status, 401, 'its token counts no more');
    await client.close().catch(() => {});
  });

  test('the command ends the access of a client', async () => {
    const said = await installation.reveille('client', 'list');
    assert.match(said, /No connected clients/);
    await assert.rejects(installation.reveille('client', 'revoke', 'abcdef'), /no connected client/);
  });
});
