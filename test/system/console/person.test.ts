/** A person at the console, with keys alone: setting and editing an alarm, approving, denying, talking, and being told at once. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Page, Request } from 'playwright-core';
import { beginStream, endStream, type Script, sendPiece } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { type House, startHouse } from './bench.ts';
import { TRANSFER } from './transfer.ts';

/** Long enough to be seen on its way. */
const slowly: Script = async (response) => {
  beginStream(response);
  for (const piece of ['I looked. ', 'Two builds failed, ', 'and <b>one</b> is mended.']) {
    sendPiece(response, piece);
    await delay(300);
  }
  endStream(response);
};

describe('a person with a keyboard', () => {
  const owner = sharedOwner();
  let house: House;
  let page: Page;

  before(async () => {
    const [started, browser] = await Promise.all([startHouse(owner, slowly), startBrowser(owner)]);
    house = started;
    ({ page } = await browser.open());
    await page.goto(await house.address());
    await page.waitForURL(/\/ahead$/);
    await page.waitForSelector('.live[data-state=on]');
  });
  after(() => owner.end());

  const go = async (key: string, to: RegExp) => {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.waitForURL(to);
    await page.waitForSelector('.live[data-state=on]');
  };
  const told = async () => (await page.textContent('body > .told')) ?? '';

  test('sets an alarm with a time as it is said, reads it back, edits it, and takes both back', async () => {
    await go('a', /\/alarms$/);
    await page.keyboard.press('n');
    await page.waitForURL(/\/alarms\/new$/);
    await page.focus('#words');
    await page.keyboard.type('Look at the builds');
    await page.keyboard.press('Tab');
    await page.keyboard.type('every weekday at 9');
    await page.waitForSelector('#reading >> text=09:00');
    await page.fill('#when', '05/06 at 9:00');
    await page.waitForSelector('#reading .choice');
    await page.fill('#when', 'every weekday at 9:00');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/alarms\/[0-9a-f-]{36}$/);
    assert.match(await told(), /It rings \w{3} \d+ \w{3} 09:00, then .*, Europe\/Berlin/);
    assert.match(await house.reveille('alarm', 'list'), /Look at the builds/);

    await page.keyboard.press('e');
    await page.waitForURL(/\/edit$/);
    await page.fill('#when', 'every day at 7:30');
    await page.keyboard.press('Enter');
    await page.waitForURL(/[0-9a-f-]{36}$/);
    assert.match((await page.textContent('.detail .facts')) ?? '', /every day at 07:30/);
    await page.keyboard.press('z');
    await page.waitForSelector('body > .told >> text=as it was before');
    await page.focus('a.name:has-text("Look at the builds")');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/alarms\/[0-9a-f-]{36}/);
    assert.match((await page.textContent('.detail .facts')) ?? '', /every weekday at 09:00/);
  });

  test('what is typed while the page looks again stays', async () => {
    const isLook = (request: Request) => request.headers()['x-reveille-part'] === 'main';
    await page.route(/\/alarms\/new$/, async (route) => {
      if (isLook(route.request())) await delay(500);
      await route.continue();
    });
    await go('a', /\/alarms$/);
    const looks = page.waitForRequest((request) => /\/alarms\/new$/.test(request.url()) && isLook(request));
    await page.keyboard.press('n');
    const look = await looks;
    await page.fill('#when', 'tomorrow 9am');
    await page.focus('a[data-go=t]');
    await look.response();
    await delay(200);
    assert.equal(await page.inputValue('#when'), 'tomorrow 9am');
    await page.unroute(/\/alarms\/new$/);
  });

  test('shows the keys, and marks and pauses in the list', async () => {
    await page.keyboard.press('?');
    assert.equal(await page.isVisible('dialog#keys'), true);
    await page.keyboard.press('Escape');
    await go('a', /\/alarms$/);
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.locator('#several button[value=pause]').press('Enter');
    await page.waitForSelector('body > .told >> text=Paused');
    await page.keyboard.press('z');
    await page.waitForSelector('body > .told >> text=Resumed');
  });

  test('sees what is set elsewhere within a second, without a hand', async (t) => {
    await go('a', /\/alarms$/);
    await house.reveille('alarm', 'set', 'from a terminal', 'in 3 hours');
    const began = performance.now();
    await page.waitForSelector('.row >> text=from a terminal');
    const took = performance.now() - began;
    t.diagnostic(`on the screen ${Math.round(took)} ms after it was set`);
    assert.ok(took < 5000, `${took} ms`);
  });

  test('approves one question with a key and denies another; the receipt is checked on the page', async () => {
    const file = join(house.home, 'transfer.json');
    writeFileSync(file, JSON.stringify(TRANSFER));
    await go('p', /\/approvals$/);
    await house.reveille('intent', 'submit', '--json-file', file);
    await page.waitForSelector('[data-question]');
    assert.match((await page.textContent('[data-question] .changes')) ?? '', /alice EUR balance 5000\.00 → 4975\.00/);
    assert.match((await page.textContent('[data-question] .payload')) ?? '', /"amount": "25\.00"/);
    await page.keyboard.press('y');
    await delay(900);
    if ((await page.locator('[data-question]').count()) > 0) await page.keyboard.press('y');
    await page.waitForSelector('body > .told >> text=Approved, signed by');
    await eventually('it is done', async () => (await house.reveille('intent', 'list')).includes('completed'));
    await page.click('a.name');
    await page.waitForSelector('text=every envelope, signature and digest holds');

    writeFileSync(
      file,
      JSON.stringify({ ...TRANSFER, plan: { ...TRANSFER.plan, args: { ...TRANSFER.plan.args, amount: '30.00' } } }),
    );
    await go('p', /\/approvals$/);
    await house.reveille('intent', 'submit', '--json-file', file);
    await page.waitForSelector('[data-question]');
    await delay(900);
    await page.keyboard.press('d');
    await page.waitForSelector('body > .told >> text=Denied');
    await eventually('it is denied', async () => (await house.reveille('intent', 'list')).includes('denied'));
  });

  test('an answer to what has been answered meanwhile is told so, and changes nothing', async () => {
    const file = join(house.home, 'transfer.json');
    await go('p', /\/approvals$/);
    const id = /Submitted (\S+)/.exec(await house.reveille('intent', 'submit', '--json-file', file))![1]!;
    await page.waitForSelector('[data-question]');
    const inputs = await page.locator('[data-question] form input').all();
    const pairs = inputs.map(
      async (one): Promise<[string, string]> => [(await one.getAttribute('name'))!, await one.inputValue()],
    );
    const fields = new URLSearchParams(await Promise.all(pairs)).toString();
    const answer = () =>
      page.evaluate(
        `fetch(document.querySelector('base').href + 'approvals/answer', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: ${JSON.stringify(`${fields}&do=deny`)} }).then((r) => r.text())`,
      ) as Promise<string>;
    assert.match(await answer(), /Denied, signed by/);
    assert.match(
      await answer(),
      /does not wait any more: its step was denied already by \S+@\S+ \([0-9a-f]{16}…\) at /,
    );
    assert.match(await house.reveille('intent', 'show', id), /denied/);
  });

  test('says something, and sees the reply as it comes, as text', async () => {
    await go('t', /\/talk$/);
    await page.keyboard.press('/');
    await page.keyboard.type('What broke?');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/talk\/.+/);
    await page.locator('[data-reply]').filter({ hasText: 'I looked.' }).waitFor();
    await page.locator('[data-reply]').filter({ hasText: 'is mended.' }).waitFor();
    assert.equal(await page.locator('[data-reply] b').count(), 0);
    assert.match((await page.textContent('[data-reply]')) ?? '', /<b>one<\/b>/);
  });
});
