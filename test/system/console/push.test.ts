/**
 * This browser as a channel, in a real one: asked for on a click, kept as the person's own channel, encrypted for that
 * browser, read by the worker. Not there are the push service between (the page is given a subscription whose keys the
 * test has, and the worker gets what the test has decrypted) and the system that would show it.
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
import { type House, startHouse } from './bench.ts';

type Listed = { id: string; name: string; kind: string; told: string[]; quiet?: object; place: string };

/** A person takes longer to answer their browser than a page that has just opened takes to look again. */
const LOOK_MS = 300;
const PERSON_MS = 700;

/** Takes the place of what asks a push service, and says what it was asked with. */
const STAND_IN = (subscription: object) => `
  window.asked = [];
  const ask = Notification.requestPermission.bind(Notification);
  Notification.requestPermission = () => {
    window.asked.push('permission');
    return new Promise((resolve) => setTimeout(() => resolve(ask()), ${PERSON_MS}));
  };
  PushManager.prototype.subscribe = async (wish) => {
    window.asked.push({ visible: wish.userVisibleOnly, key: Array.from(new Uint8Array(wish.applicationServerKey)) });
    return { toJSON: () => (${JSON.stringify({ ...subscription, expirationTime: null })}) };
  };`;

describe('a browser that is told', () => {
  const owner = sharedOwner();
  let house: House;
  let browser: TestBrowser;
  const mine = pushBrowser('https://push.example/send/abc');

  before(async () => {
    [house, browser] = await Promise.all([startHouse(owner, saying('Yes.')), startBrowser(owner)]);
  });
  after(() => owner.end());

  const channels = async (): Promise<Listed[]> =>
    (await house.reveille('notify', 'list', '--json'))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Listed)
      .filter(({ kind }) => kind === 'webpush');

  async function opened(subscription: object, isAllowed: boolean): Promise<Page> {
    const { page, context } = await browser.open();
    atEnd(owner, () => context.close());
    await page.addInitScript(STAND_IN(subscription));
    await page.route(/\/notices$/, async (route) => {
      if (route.request().headers()['x-reveille-part'] === 'main') await delay(LOOK_MS);
      await route.continue();
    });
    const address = await house.address();
    if (isAllowed) await context.grantPermissions(['notifications'], { origin: new URL(address).origin });
    await page.goto(address);
    await page.waitForURL(/\/upcoming$/);
    await page.goto(page.url().replace('upcoming', 'notices'));
    return page;
  }

  test('is added on a click, with what it is told of and quiet hours; its message is for it alone; its worker shows it', async (t) => {
    const refused: string[] = [];
    const page = await opened(mine.subscription, true);
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) refused.push(message.text());
    });
    assert.deepEqual(await page.evaluate('window.asked'), [], 'nothing is asked before the click');
    await page.getByLabel('every ring, and its reply').check();
    await page.getByLabel('a ring never came').uncheck();
    await page.getByLabel('Its name').fill('laptop');
    await page.getByLabel('Quiet from').fill('22:00');
    await page.getByLabel('to', { exact: true }).fill('07:00');
    await page.getByRole('button', { name: 'Tell me in this browser' }).click();
    await page.getByText('This browser is told now, as laptop.').waitFor();

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

    // What was kept is what a message is encrypted with; the receiver has the place of the push service.
    const posts: Buffer[] = [];
    const service = await listening(
      owner,
      createServer(async (incoming, response) => {
        posts.push(await buffer(incoming));
        response.writeHead(201).end();
      }),
    );
    const store = new NotifyStore({ dir: join(house.home, 'notify'), clock: systemClock, lock: 'shared' });
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
    const told = await CHANNELS.webpush.tell(
      { ...(kept!.spec as object), endpoint: `${service}/send/abc`, allow_private: true },
      message,
      { http, clock: systemClock, variables: {}, signal: t.signal, vapid: vapidOf(store, 'https://console.example') },
    );
    assert.deepEqual(told, { result: 'done' });
    assert.ok(!posts[0]!.includes('alice'));
    const data = mine.decrypt(posts[0]!);

    // In the worker that the page has registered; what the system would show is written down instead.
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
    // A page of somebody else's is not led to; what is no message has no words.
    await push(JSON.stringify({ id: 'x', title: 'y', links: [{ label: 'z', url: 'https://evil.example/' }, {}, 7] }));
    await push('not JSON');
    const [foreign, empty] = await shown();
    assert.deepEqual([foreign!.data, foreign!.actions], [[], []]);
    assert.equal(empty!.title, 'Reveille has something to tell you');
    await click([link], '0');
    await click([], '');
    assert.deepEqual(await shown(), [{ url: link }, { url: '/' }]);
    assert.deepEqual(refused, []);

    await page.getByRole('listitem').filter({ hasText: 'laptop' }).getByRole('button', { name: 'Remove' }).click();
    await page.getByText('laptop is told nothing any more.').waitFor();
    assert.deepEqual(await channels(), []);
  });

  test('one that says no is told why, and what is no push service is refused', async () => {
    const no = await opened(mine.subscription, false);
    await no.evaluate(`Notification.requestPermission = async () => 'denied'`);
    await no.getByRole('button', { name: 'Tell me in this browser' }).click();
    await no.getByText(/its settings for this site say no/).waitFor();
    await delay(LOOK_MS + 400);
    assert.ok(await no.getByText(/its settings for this site say no/).isVisible(), 'what was told stays');
    const { keys } = mine.subscription;
    for (const [subscription, why] of [
      [{ endpoint: 'http://127.0.0.1:9/x', keys, allow_private: true }, /an address of this computer/],
      [
        { endpoint: 'https://push.example/x', keys: { p256dh: 'x', auth: randomBytes(16).toString('base64url') } },
        /p256dh/,
      ],
    ] as const) {
      const page = await opened(subscription, true);
      await page.getByRole('button', { name: 'Tell me in this browser' }).click();
      await page.getByText('That did not work').first().waitFor();
      assert.match((await page.locator('main').textContent())!, why);
    }
    assert.deepEqual(await channels(), []);
  });
});
