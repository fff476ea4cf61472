/**
 * A real browser as a notification channel: turned on with a click, stored for the user, encrypted for this browser and
 * read by its worker. Two parts are replaced: the push service (the test owns the keys of the subscription and hands the
 * decrypted message to the worker) and the notifications of the operating system.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { GuardedClient } from '../../../src/kit/http/guarded-client.ts';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { CHANNELS } from '../../../src/notify/channels/channels.ts';
import { GUARD_WORDS, vapidOf } from '../../../src/notify/daemon.ts';
import { NotifyStore } from '../../../src/notify/store.ts';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { pushBrowser } from '../../support/stand-ins/push-browser.ts';
import { atEnd, listening, sharedOwner } from '../../support/temporary.ts';
import { type Installation, startInstallation } from './bench.ts';

type Listed = { id: string; name: string; kind: string; told: string[]; quiet?: object; place: string };

/** A user answers the browser's prompt later than the first refresh of the page. */
const REFRESH_MS = 300;
const USER_MS = 700;

/** Replaces the request to a push service, and records its arguments. */
const FAKE_PUSH = (subscription: object) => `
  window.asked = [];
  const ask = Notification.requestPermission.bind(Notification);
  Notification.requestPermission = () => {
    window.asked.push('permission');
    return new Promise((resolve) => setTimeout(() => resolve(ask()), ${USER_MS}));
  };
  PushManager.prototype.subscribe = async (wish) => {
    window.asked.push({ visible: wish.userVisibleOnly, key: Array.from(new Uint8Array(wish.applicationServerKey)) });
    return { toJSON: () => (${JSON.stringify({ ...subscription, expirationTime: null })}) };
  };`;

describe('a browser as a notification channel', () => {
  const owner = sharedOwner();
  let installation: Installation;
  let browser: TestBrowser;
  const mine = pushBrowser('https://push.example/send/abc');

  before(async () => {
    [installation, browser] = await Promise.all([startInstallation(owner, saying('Yes.')), startBrowser(owner)]);
  });
  after(() => owner.end());

  const channels = async (): Promise<Listed[]> =>
    (await installation.reveille('notify', 'list', '--json'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Listed)
      .filter(({ kind }) => kind === 'webpush');

  async function opened(subscription: object, isAllowed: boolean): Promise<Page> {
    const { page, context } = await browser.open();
    atEnd(owner, () => context.close());
    await page.addInitScript(FAKE_PUSH(subscription));
    await page.route(/\/notifications$/, async (route) => {
      if (route.request().headers()['x-reveille-part'] === 'main') await delay(REFRESH_MS);
      await route.continue();
    });
    const address = await installation.address();
    if (isAllowed) await context.grantPermissions(['notifications'], { origin: new URL(address).origin });
    await page.goto(address);
    await page.waitForURL(/\/upcoming$/);
    await page.goto(page.url().replace('upcoming', 'notifications'));
    return page;
  }

  test('a click adds it with kinds and quiet hours; its worker shows the encrypted message', async (t) => {
    const refused: string[] = [];
    const page = await opened(mine.subscription, true);
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) refused.push(message.text());
    });
    assert.deepEqual(await page.evaluate('window.asked'), [], 'no permission is requested before the click');
    await page.getByLabel('an alarm fired, with the reply').check();
    await page.getByLabel('an alarm was missed').uncheck();
    await page.getByLabel('Name').fill('laptop');
    await page.getByLabel('Quiet from').fill('22:00');
    await page.getByLabel('Quiet until').fill('07:00');
    await page.getByRole('button', { name: 'Turn on in this browser' }).click();
    await page.getByText('Notifications are on in this browser, as laptop.').waitFor();

    const [added, ...others] = await channels();
    assert.deepEqual(others, []);
    assert.deepEqual(
      [added!.name, added!.told, added!.place, added!.quiet],
      [
        'laptop',
        ['approvals', 'failures', 'rings'],
        'https://push.example',
        { from: '22:00', to: '07:00', timezone: 'Europe/Berlin' },
      ],
    );

    // The message is encrypted with the stored keys; the test server replaces the push service.
    const posts: Buffer[] = [];
    const service = await listening(
      owner,
      createServer(async (incoming, response) => {
        posts.push(await buffer(incoming));
        response.writeHead(201).end();
      }),
    );
    const store = new NotifyStore({ dir: join(installation.home, 'notify'), clock: systemClock, lock: 'shared' });
    const http = new GuardedClient(GUARD_WORDS);
    atEnd(owner, async () => {
      await http.close();
      store.close();
    });
    const [kept] = store.channels().filter(({ kind }) => kind === 'webpush');
    const link = `${new URL(page.url()).origin}/answer/one-of-a-question`;
    const message = {
      ...{ id: 'ntf_01', kinds: ['approvals'] as const, at: Date.now(), about: {}, title: 'Approve? ledger/transfer' },
      ...{ text: 'alice 5,000.00 → 4,975.00 EUR <b>', links: [{ label: 'Approve …', url: link }] },
    };
    const result = await CHANNELS.webpush.tell(
      { ...(kept!.spec as object), endpoint: `${service}/send/abc`, allow_private: true },
      message,
      { http, clock: systemClock, variables: {}, signal: t.signal, vapid: vapidOf(store, 'https://console.example') },
    );
    assert.deepEqual(result, { result: 'done' });
    assert.ok(!posts[0]!.includes('alice'));
    const data = mine.decrypt(posts[0]!);

    // The registered worker records the notifications instead of showing them.
    const worker = page.context().serviceWorkers()[0] ?? (await page.context().waitForEvent('serviceworker'));
    await worker.evaluate(`(() => {
      self.shown = [];
      self.registration.showNotification = async (title, options) => void self.shown.push({ title, ...options });
      self.clients.openWindow = async (url) => void self.shown.push({ url });
    })()`);
    const push = (text: string) =>
      worker.evaluate(
        `self.dispatchEvent(Object.assign(new Event('push'), { data: { json: () => JSON.parse(${JSON.stringify(text)}) }, waitUntil() {} }))`,
      );
    const click = (pages: unknown, action: string) =>
      worker.evaluate(
        `self.dispatchEvent(Object.assign(new Event('notificationclick'), { notification: { data: ${JSON.stringify(pages)}, close() {} }, action: '${action}', waitUntil() {} }))`,
      );
    const shown = async () => (await worker.evaluate('self.shown.splice(0)')) as Record<string, unknown>[];
    await push(data);
    const [first] = await shown();
    assert.deepEqual(
      [first!.title, first!.body, first!.tag, first!.data, first!.actions],
      [message.title, message.text, message.id, [link], [{ action: '0', title: 'Approve …' }]],
    );
    // Links to other sites are removed; an unreadable message has no text.
    await push(JSON.stringify({ id: 'x', title: 'y', links: [{ label: 'z', url: 'https://evil.example/' }, {}, 7] }));
    await push('not JSON');
    const [foreign, empty] = await shown();
    assert.deepEqual([foreign!.data, foreign!.actions], [[], []]);
    assert.equal(empty!.title, 'New notification from Reveille');
    await click([link], '0');
    await click([], '');
    assert.deepEqual(await shown(), [{ url: link }, { url: '/' }]);
    assert.deepEqual(refused, []);

    await page.getByRole('listitem').filter({ hasText: 'laptop' }).getByRole('button', { name: 'Remove' }).click();
    await page.getByText('Removed: laptop.').waitFor();
    assert.deepEqual(await channels(), []);
  });

  test('a refused permission is explained, and an invalid push service is refused', async () => {
    const no = await opened(mine.subscription, false);
    await no.evaluate(`Notification.requestPermission = async () => 'denied'`);
    await no.getByRole('button', { name: 'Turn on in this browser' }).click();
    await no.getByText(/settings of this browser refuse/).waitFor();
    await delay(REFRESH_MS + 400);
    assert.ok(await no.getByText(/settings of this browser refuse/).isVisible(), 'the error stays');
    const { keys } = mine.subscription;
    for (const [subscription, why] of [
      [{ endpoint: 'http://127.0.0.1:9/x', keys, allow_private: true }, /an address of this computer/],
      [
        { endpoint: 'https://push.example/x', keys: { p256dh: 'x', auth: randomBytes(16).toString('base64url') } },
        /p256dh/,
      ],
    ] as const) {
      const page = await opened(subscription, true);
      await page.getByRole('button', { name: 'Turn on in this browser' }).click();
      await page.getByText('Error').first().waitFor();
      assert.match((await page.locator('main').textContent())!, why);
    }
    assert.deepEqual(await channels(), []);
  });
});
