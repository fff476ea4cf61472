/**
 * Every screen in a real browser, at 360 and 1,440 pixels, light and dark: nothing that axe finds, nothing that has to be
 * scrolled sideways, and each of them also without script.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import AxeBuilder from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { type House, startHouse } from './bench.ts';
import { TRANSFER } from './transfer.ts';

const EVERYTHING = process.env.REVEILLE_ROUNDS === 'all';
const LOOKS = [1440, 360].flatMap((width) => (['light', 'dark'] as const).map((scheme) => ({ width, scheme })));

describe('the screens of the console', () => {
  const owner = sharedOwner();
  let house: House;
  let browser: TestBrowser;
  let page: Page;
  let base: string;

  before(async () => {
    [house, browser] = await Promise.all([startHouse(owner, saying('Good morning.')), startBrowser(owner)]);
    await house.reveille(
      'alarm',
      'set',
      'I look at the builds of the night.',
      'every weekday at 9:00',
      '--label',
      'stand-up',
    );
    await house.reveille(
      'alarm',
      'set',
      'Water the plants',
      'in 3 hours',
      '--payload',
      '{"n":12345678901234567890.10}',
    );
    await house.reveille('alarm', 'set', 'Look at the queue.', 'every 15 minutes', '--label', 'queue');
    await house.reveille('machine', 'budget', '--quiet', '22:00-09:30', '--zone', 'Europe/Berlin');
    const file = join(house.home, 'transfer.json');
    writeFileSync(file, JSON.stringify(TRANSFER));
    await house.reveille('intent', 'submit', '--json-file', file);
    ({ page } = await browser.open());
    await page.goto(await house.address());
    await page.waitForURL(/\/upcoming$/);
    base = page.url().slice(0, -'upcoming'.length);
    await eventually('the question waits', async () =>
      (await house.reveille('intent', 'list')).includes('awaiting approval'),
    );
  });
  after(() => owner.end());

  const firstAlarm = async () => {
    await page.goto(`${base}alarms?sort=newest`);
    return (await page.locator('a.name').first().getAttribute('href'))!.split('?')[0]!;
  };
  const screens: Record<string, () => string | Promise<string>> = {
    ahead: () => 'upcoming',
    alarms: () => 'alarms',
    'an alarm': firstAlarm,
    'setting an alarm': () => 'alarms/new',
    'editing an alarm': async () => `${await firstAlarm()}/edit`,
    'a question before cancelling': async () => `${await firstAlarm()}/cancel`,
    talk: () => 'chat',
    'a conversation': async () => {
      await house.reveille('chat', 'What broke?', '--conversation', 'night');
      return 'chat/night';
    },
    approvals: () => 'approvals',
    'an approval': async () => {
      await page.goto(`${base}approvals`);
      const id = (await page.locator('[data-question] [name=intent_id]').first().inputValue())!;
      return `approvals/${id}`;
    },
    passkeys: () => 'approvals/passkeys',
    machine: () => 'machine',
    'a question before suspending': () => 'machine/suspend',
    day: () => 'day',
    health: () => 'health',
    notices: () => 'notices',
    'what is not there': () => 'alarms/nothing',
  };

  for (const [name, pathOf] of Object.entries(screens))
    test(`${name}: nothing that axe finds, in any look`, async () => {
      const path = await pathOf();
      const answer = await page.goto(base + path);
      assert.equal(answer?.status(), name === 'what is not there' ? 404 : 200, path);
      for (const { width, scheme } of LOOKS) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme: scheme });
        // The page is the same in each but for its colours and its width: `npm run test:rounds` looks at all in full.
        if (EVERYTHING || (scheme === 'dark') === (width === 360)) {
          const axe = new AxeBuilder({ page }).setLegacyMode(true);
          if (!EVERYTHING && scheme === 'dark')
            axe.withRules(['color-contrast', 'target-size', 'scrollable-region-focusable']);
          const { violations } = await axe.analyze();
          const told = violations.map(
            ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
          );
          assert.deepEqual(told, [], `${name} at ${width} px, ${scheme}`);
        }
        const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        assert.ok((over as number) <= 0, `${name} is ${over} px too wide at ${width} px`);
      }
    });

  test('ahead: the chart has as many fires as the figures, and a dense series on every day to its end', async () => {
    await page.goto(`${base}upcoming`);
    const figure = async (words: string) =>
      Number.parseInt((await page.textContent(`.figures li:has-text("${words}") strong`)) ?? '', 10);
    const total = await figure('in seven days');
    assert.ok(total > 670, `${total} wakes`);
    type Mark = { fires: number; from: number; to: number; row: number };
    const marks = await page.evaluate<Mark[]>(`all('.timeline [data-fires]').map((mark) => {
      const { x, y, width, height } = mark.getBBox();
      return { fires: Number(mark.dataset.fires), from: x, to: x + width, row: Math.floor((y + height / 2) / 28) };
    })`);
    assert.equal(
      marks.reduce((sum, { fires }) => sum + fires, 0),
      total,
    );
    const days = Map.groupBy(marks, ({ row }) => row);
    // Today and the last day are parts of days.
    for (const row of [1, 2, 3, 4, 5, 6]) {
      const ofDay = days.get(row) ?? [];
      const [from, to] = [Math.min(...ofDay.map((one) => one.from)), Math.max(...ofDay.map((one) => one.to))];
      assert.ok(from < 75 && to > 940, `day ${row} has marks from ${from} to ${to}`);
    }
    assert.ok((await page.locator('.timeline .against').count()) > 5, 'what quiet hours defer is marked');
    assert.ok((await page.locator('.ahead-list').count()) >= 7);
  });

  test('whoever is not in is told how to come in, and sees nothing else', async () => {
    const stranger = await browser.open({ width: 360 });
    await stranger.page.goto(`${house.run.public_url}/`);
    const { violations } = await new AxeBuilder({ page: stranger.page }).analyze();
    assert.deepEqual(violations, []);
    assert.match((await stranger.page.textContent('main')) ?? '', /reveille open/);
    const answer = await stranger.page.goto(`${base}alarms`);
    assert.equal(answer?.status(), 401);
    assert.doesNotMatch(await stranger.page.content(), /plants|stand-up/);
    await stranger.context.close();
  });

  test('every screen is there without script, and an alarm can be set and paused', async () => {
    const plain = await browser.open({ width: 360, script: false });
    await plain.page.goto(await house.address());
    await plain.page.waitForURL(/\/upcoming$/);
    for (const screen of ['Alarms', 'Talk', 'Approvals', 'Machine', 'Day', 'Health', 'Ahead']) {
      await plain.page.click(`nav >> text=${screen}`);
      assert.notEqual(await plain.page.textContent('h1'), 'That did not work', screen);
    }
    await plain.page.click('nav >> text=Alarms');
    await plain.page.click('text=Set an alarm');
    await plain.page.fill('#message', 'Call the plumber');
    await plain.page.fill('#when', 'tomorrow 9am');
    await plain.page.click('text=Read the time back');
    assert.match((await plain.page.textContent('#reading')) ?? '', /09:00.*Europe\/Berlin/);
    await plain.page.click('text=Set it');
    assert.match((await plain.page.textContent('[role=status]')) ?? '', /Set\. It rings .* 09:00, Europe\/Berlin/);
    await plain.page.click('.detail >> text="Pause"');
    assert.match((await plain.page.textContent('main .detail')) ?? '', /paused/);
    await plain.context.close();
  });
});
