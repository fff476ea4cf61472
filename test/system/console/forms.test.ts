/** Live updates and forms in a real browser: an update never changes a form in use, and is applied when the form loses the focus. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Page, Request } from 'playwright-core';
import { beginStream, endStream, type Script, sendPiece } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser } from '../../support/browser.ts';
import { reveille } from '../../support/command-line.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { type Installation, startInstallation } from './bench.ts';
import { TRANSFER } from './transfer.ts';

const PASSPHRASE = 'a horse without a staple';

/** Continues the started replies: that of a test, and that of the welcome alarm, which fires in the middle of one. */
const finishes: (() => void)[] = [];
/** Streams the first half of a reply, and the second one after its `finishes`. */
const halting: Script = async (response) => {
  beginStream(response);
  sendPiece(response, 'The first half. ');
  await new Promise<void>((resolve) => void finishes.push(resolve));
  sendPiece(response, 'The second half.');
  endStream(response);
};

describe('a form and live updates', () => {
  const owner = sharedOwner();
  let installation: Installation;
  let page: Page;
  let base: string;

  before(async () => {
    const [started, browser] = await Promise.all([startInstallation(owner, halting), startBrowser(owner)]);
    installation = started;
    ({ page } = await browser.open());
    await page.goto(await installation.address());
    await page.waitForURL(/\/upcoming$/);
    base = page.url().slice(0, -'upcoming'.length);
  });
  after(() => owner.end());

  const isLive = () => page.waitForSelector('.live[data-state=on]');
  /** Runs a whole live update, as a hint does. */
  const update = () =>
    page.evaluate(`(async () => {
      while (refreshing) await new Promise((resolve) => setTimeout(resolve, 10));
      await refresh();
    })()`);
  const value = (field: string) => page.inputValue(field);
  const setAlarm = async (...args: string[]): Promise<string> =>
    JSON.parse(await installation.reveille('alarm', 'set', ...args, '--json')).id;

  test('set: text that was typed before the page is live stays', async () => {
    await page.goto(`${base}alarms/new`, { waitUntil: 'commit' });
    await page.fill('#when', 'tomorrow 9am');
    await page.fill('#message', 'Look at the builds.');
    await page.focus('a[data-go=c]');
    await isLive();
    await update();
    assert.deepEqual([await value('#when'), await value('#message')], ['tomorrow 9am', 'Look at the builds.']);
    await page.waitForSelector('#reading >> text=09:00');
  });

  for (const [what, form] of [
    ['set', async () => 'alarms/new'],
    ['edit', async () => `alarms/${await setAlarm('Water the plants.', 'in 5 hours')}/edit`],
  ] as const)
    test(`${what}: "Preview" and an error keep every value, and stay on the page`, async () => {
      await page.goto(base + (await form()));
      await isLive();
      await page.fill('#message', 'Look at the mail.');
      await page.fill('#label', 'mail');
      await page.fill('#when', 'tomorrow 7:30');
      const kept = async () => {
        await isLive();
        await update();
        const values = await Promise.all(['#message', '#label', '#when'].map(value));
        assert.deepEqual(values.slice(0, 2), ['Look at the mail.', 'mail']);
        return values[2];
      };
      await Promise.all([page.waitForNavigation(), page.click('text=Preview')]);
      assert.equal(await kept(), 'tomorrow 7:30');
      assert.match((await page.textContent('#reading')) ?? '', /07:30/);

      await page.fill('#when', 'at the end of days');
      await Promise.all([page.waitForNavigation(), page.click('#alarm-form .primary')]);
      assert.equal(await kept(), 'at the end of days');
      assert.match((await page.textContent('main > [role=alert]')) ?? '', /\w/);

      await page.fill('#when', 'tomorrow 7:30');
      await page.click('#alarm-form .primary');
      await page.waitForURL(/\/alarms\/[0-9a-f-]{36}$/);
      assert.match((await page.textContent('.detail')) ?? '', /Look at the mail\.[\s\S]*07:30/);
    });

  test('set: unknown tools and channels are refused with the known ones, and nothing is set', async () => {
    await installation.reveille('notify', 'add', 'command', '--name', 'phone', '--', 'true');
    const wrong = [
      ['tools', /^Tools must be tools of the agent \(got "nosuch"; it has .*\bchronos__alarm_set\b.*; omit tools/],
      ['deliver', /^Deliver to must name channels of yours \(got "nosuch"; you have phone\)/],
    ] as const;
    for (const [name, said] of wrong) {
      await page.goto(`${base}alarms/new`);
      await page.fill('#message', 'Never set.');
      await page.fill('#when', 'tomorrow 7:30');
      await page.click('summary:visible');
      await page.fill(`#${name}`, 'nosuch');
      await Promise.all([page.waitForNavigation(), page.click('#alarm-form .primary')]);
      assert.match((await page.textContent('main > [role=alert]')) ?? '', said);
      assert.equal(await value(`#${name}`), 'nosuch');
      const words = ['alarm', 'set', 'Never set.', 'in 1 hour', `--${name}`, 'nosuch'];
      const { status, stderr } = await reveille(installation.home, words);
      assert.equal(status, 2);
      assert.match(
        stderr,
        name === 'tools' ? /--tools must be tools of the agent \(got "nosuch"; it has / : /--deliver/,
      );
    }
    assert.doesNotMatch(await installation.reveille('alarm', 'list'), /Never set/);
  });

  test('edit: an update skips the focused form and is applied when the form loses the focus', async () => {
    const id = await setAlarm('Call the plumber.', 'in 5 hours', '--label', 'before');
    await page.goto(`${base}alarms/${id}/edit`);
    await isLive();
    await page.focus('#message');
    await installation.reveille('alarm', 'edit', id, '--label', 'after');
    await update();
    assert.equal(await value('#label'), 'before');
    assert.equal(await page.evaluate('document.activeElement.id'), 'message');
    await page.focus('a[data-go=c]');
    await page.waitForSelector('#label[value=after]');

    await page.fill('#when', 'tomorrow 7:30');
    await page.focus('a[data-go=c]');
    await installation.reveille('alarm', 'edit', id, '--label', 'later');
    await update();
    assert.deepEqual([await value('#when'), await value('#label')], ['tomorrow 7:30', 'after']);
    await page.fill('#when', '');
    await page.focus('a[data-go=c]');
    await page.waitForSelector('#label[value=later]');
  });

  test('edit: text that is typed during the first update stays', async () => {
    const id = await setAlarm('Call the dentist.', 'in 5 hours');
    const isUpdate = (request: Request) => request.headers()['x-reveille-part'] === 'main';
    const release = Promise.withResolvers<void>();
    await page.route(/\/edit$/, async (route) => {
      if (isUpdate(route.request())) await release.promise;
      await route.continue();
    });
    const [request] = await Promise.all([
      page.waitForRequest((one) => /\/edit$/.test(one.url()) && isUpdate(one)),
      page.goto(`${base}alarms/${id}/edit`),
    ]);
    await page.fill('#when', 'tomorrow 9am');
    await page.focus('a[data-go=c]');
    release.resolve();
    await (await request.response())?.finished();
    await update();
    assert.equal(await value('#when'), 'tomorrow 9am');
    await page.unroute(/\/edit$/);
  });

  test('alarms: updates continue in a list with a typed search and a selected row', async () => {
    const id = await setAlarm('Marked.', 'in 6 hours');
    await page.goto(`${base}alarms`);
    await isLive();
    await page.fill('#filters [name=text]', 'half a wo');
    await page.check(`#mark-${id}`);
    await setAlarm('Set meanwhile.', 'in 4 hours');
    await page.waitForSelector('.row >> text=Set meanwhile.');
    assert.equal(await value('#filters [name=text]'), 'half a wo');
    assert.ok(await page.isChecked(`#mark-${id}`));
    assert.equal(await page.evaluate('document.activeElement.id'), `mark-${id}`);
  });

  test('chat: text, selection and focus stay while a reply streams and ends', async () => {
    await page.goto(`${base}chat`);
    await page.fill('#message', 'What broke?');
    await page.press('#message', 'Enter');
    await page.waitForURL(/\/chat\/.+/);
    await page.fill('#message', 'And the mail?');
    await page.evaluate('message.setSelectionRange(4, 7)');
    await page.locator('[data-reply]').filter({ hasText: 'The first half.' }).waitFor();
    await update();
    for (const finish of finishes) finish();
    await page.locator('[data-reply]').filter({ hasText: 'The second half.' }).waitFor();
    await page.waitForSelector('[data-turn] [data-state].done', { state: 'attached' });
    assert.equal(await value('#message'), 'And the mail?');
    const place = '[document.activeElement.id, message.selectionStart, message.selectionEnd]';
    assert.deepEqual(await page.evaluate(place), ['message', 4, 7]);
  });

  test('chat: a message that was not sent stays with its error', async () => {
    await page.goto(`${base}chat`);
    await isLive();
    const { user_id: user } = JSON.parse(await installation.reveille('machine', 'show', '--json'));
    await installation.reveille('machine', 'suspend', user);
    await page.fill('#message', 'Are you there?');
    await Promise.all([page.waitForNavigation(), page.press('#message', 'Enter')]);
    await isLive();
    await update();
    assert.equal(await value('#message'), 'Are you there?');
    assert.match((await page.textContent('main [role=alert]')) ?? '', /suspended/);
    await installation.reveille('machine', 'restore', user);
  });

  test('approvals: a half-typed passphrase stays while another question is answered', async () => {
    const node = (id: string, amount: string) => ({ ...TRANSFER.plan, id, args: { ...TRANSFER.plan.args, amount } });
    const plan = { id: 'both', kind: 'parallel', nodes: [node('little', '10.00'), node('much', '2000.00')] };
    const file = join(installation.home, 'transfer.json');
    writeFileSync(file, JSON.stringify({ ...TRANSFER, plan }));
    await installation.given(`${PASSPHRASE}\n`, 'approver', 'seal');
    await page.goto(`${base}approvals`);
    await isLive();
    const id = /Submitted (\S+)/.exec(await installation.reveille('intent', 'submit', '--json-file', file))![1]!;
    await page.waitForSelector('[data-question] >> nth=1');
    const much = page.locator('[data-question]:has([name=node_id][value=much]) [name=passphrase]');
    await much.fill('a horse th');
    await installation.given(`${PASSPHRASE}\n`, 'intent', 'deny', id, 'little');
    await page.waitForSelector('[data-question] >> nth=1', { state: 'detached' });
    assert.equal(await much.inputValue(), 'a horse th');
    assert.ok(await much.evaluate((field) => field.matches(':focus')));
    // The denial of one step ended the other. Its form stays while it is in use.
    await much.fill('');
    await page.focus('a[data-go=c]');
    await page.waitForSelector('[data-question]', { state: 'detached' });
  });

  for (const [path, field] of [
    ['approvals/passkeys', '#name'],
    ['notifications', '#notice-name'],
  ] as const)
    test(`${path}: typed text stays`, async () => {
      await page.goto(base + path, { waitUntil: 'commit' });
      await page.fill(field, 'my phone', { force: true });
      await isLive();
      await update();
      assert.equal(await value(field), 'my phone');
    });
});
