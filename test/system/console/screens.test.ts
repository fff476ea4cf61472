/**
 * Every screen in a real browser, from 360 to 1,440 pixels, light and dark: axe finds nothing, nothing is wider than
 * the window, and each screen works without JavaScript.
 */

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import AxeBuilder from '@axe-core/playwright';
import type { Page } from 'playwright-core';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { reveille } from '../../support/command-line.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';
import { type Installation, startInstallation } from './bench.ts';
import { TRANSFER } from './transfer.ts';

const EVERYTHING = process.env.REVEILLE_ROUNDS === 'all';
const VARIANTS = [1440, 1024, 768, 390, 360].flatMap((width) =>
  (['light', 'dark'] as const).map((scheme) => ({ width, scheme })),
);

describe('the screens of the console', () => {
  const owner = sharedOwner();
  let installation: Installation;
  let browser: TestBrowser;
  let page: Page;
  let base: string;

  before(async () => {
    [installation, browser] = await Promise.all([
      startInstallation(owner, saying('Good morning.')),
      startBrowser(owner),
    ]);
    await installation.reveille(
      'alarm',
      'set',
      'I look at the builds of the night.',
      'every weekday at 9:00',
      '--label',
      'stand-up',
    );
    await installation.reveille(
      'alarm',
      'set',
      'Water the plants',
      'in 3 hours',
      '--payload',
      '{"n":12345678901234567890.10}',
    );
    await installation.reveille('alarm', 'set', 'Look at the queue.', 'every 15 minutes', '--label', 'queue');
    await installation.reveille('machine', 'budget', '--quiet', '22:00-09:30', '--zone', 'Europe/Berlin');
    const file = join(installation.home, 'transfer.json');
    writeFileSync(file, JSON.stringify(TRANSFER));
    await installation.reveille('intent', 'submit', '--json-file', file);
    ({ page } = await browser.open());
    await page.goto(await installation.address());
    await page.waitForURL(/\/upcoming$/);
    base = page.url().slice(0, -'upcoming'.length);
    await eventually('the question waits', async () =>
      (await installation.reveille('intent', 'list')).includes('awaiting approval'),
    );
  });
  after(() => owner.end());

  const firstAlarm = async () => {
    await page.goto(`${base}alarms?sort=newest`);
    return (await page.locator('a.name').first().getAttribute('href'))!.split('?')[0]!;
  };
  const screens: Record<string, () => string | Promise<string>> = {
    upcoming: () => 'upcoming',
    alarms: () => 'alarms',
    'an alarm': firstAlarm,
    'setting an alarm': () => 'alarms/new',
    'editing an alarm': async () => `${await firstAlarm()}/edit`,
    'backfilling an alarm': async () => `${await firstAlarm()}/backfill`,
    'the confirmation of a cancellation': async () => `${await firstAlarm()}/cancel`,
    chat: () => 'chat',
    'a conversation': async () => {
      await installation.reveille('chat', 'What broke?', '--conversation', 'night');
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
    'the confirmation of a suspension': () => 'machine/suspend',
    day: () => 'day',
    status: () => 'status',
    notifications: () => 'notifications',
    'a missing page': () => 'alarms/nothing',
  };

  for (const [name, pathOf] of Object.entries(screens))
    test(`${name}: axe finds nothing, at any width and in any colour scheme`, async () => {
      const path = await pathOf();
      const answer = await page.goto(base + path);
      assert.equal(answer?.status(), name === 'a missing page' ? 404 : 200, path);
      // The builder sends axe, which is a megabyte, with each analysis; once for each page is enough.
      let isSent = false;
      for (const { width, scheme } of VARIANTS) {
        await page.setViewportSize({ width, height: 800 });
        await page.emulateMedia({ colorScheme: scheme });
        // Only colours and width differ; `npm run test:rounds` runs axe for every combination.
        if (EVERYTHING || (scheme === 'dark') === width < 1000) {
          const axe = new AxeBuilder({ page, ...(isSent ? { axeSource: 'axe.version' } : {}) }).setLegacyMode(true);
          isSent = true;
          if (!EVERYTHING && scheme === 'dark')
            axe.withRules(['color-contrast', 'target-size', 'scrollable-region-focusable']);
          const { violations } = await axe.analyze();
          const found = violations.map(
            ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(' | ')}`,
          );
          assert.deepEqual(found, [], `${name} at ${width} px, ${scheme}`);
        }
        const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        assert.ok((over as number) <= 0, `${name} is ${over} px too wide at ${width} px`);
      }
    });

  test('upcoming: the chart has as many fires as the figures, and a dense series covers every day to its end', async () => {
    await page.goto(`${base}upcoming`);
    const figure = async (text: string) =>
      Number.parseInt((await page.textContent(`.figures li:has-text("${text}") strong`)) ?? '', 10);
    const total = await figure('in 7 days');
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
      // In minutes of the day.
      assert.ok(from < 20 && to > 1420, `day ${row} has marks from ${from} to ${to}`);
    }
    assert.ok((await page.locator('.timeline .against').count()) > 5, 'fires in quiet hours are marked');
    assert.ok((await page.locator('.agenda').count()) >= 7);
  });

  test('upcoming: what an alarm says of its turn and of its fires is shown before it happens', async () => {
    const policies = ['--overlap', 'skip', '--catch-up', 'none', '--catch-up-window', '2h', '--pause-on-failure'];
    const turn = ['--model', 'a-small-model', '--tools', 'chronos__alarm_set'];
    await installation.reveille(
      'alarm',
      'set',
      'Sum up.',
      'every day at 9:41',
      '--label',
      'rare',
      ...policies,
      ...turn,
    );
    await page.goto(`${base}upcoming`);
    const row = page.locator('.agenda > li', { hasText: 'rare' }).last();
    assert.equal(
      await row.locator('.aside').textContent(),
      'catch up none · catch up within 2 h · overlap skip · on failure pauses · model a-small-model · tools chronos__alarm_set',
    );
    await installation.reveille('alarm', 'cancel', 'rare');
  });

  test('upcoming: a command is no model turn, and with a check there are at most so many', async () => {
    const set = (label: string, ...condition: string[]) =>
      installation.reveille('alarm', 'set', 'Tidy', 'every day at 12:41', '--label', label, ...condition);
    /** The figures of a page that shows an alarm; for a moment it may show what was read before. */
    const figuresWith = (label: string) =>
      eventually(`the page shows ${label}`, async () => {
        await page.goto(`${base}upcoming`);
        if ((await page.locator('.agenda > li', { hasText: label }).count()) === 0) return false;
        const [wakes, , turns, deferred] = await page.locator('.figures li').allTextContents();
        const numbers = [wakes, turns, deferred].map((text) => Number.parseInt(text!, 10));
        return { others: numbers[0]! - numbers[1]! - numbers[2]!, turns: turns!.trim() };
      });
    await set('by-command', '--run', 'true');
    const { others, turns } = await figuresWith('by-command');
    assert.equal(others, 7);
    assert.match(turns, /^\d+model turns$/);
    await set('checked', '--check-path', 'inbox');
    const checked = await figuresWith('checked');
    assert.equal(checked.others, 7);
    assert.match(checked.turns, /^\d+model turns at most$/);
    for (const label of ['by-command', 'checked']) await installation.reveille('alarm', 'cancel', label);
  });

  test('without a session, a page shows only how to sign in', async () => {
    const visitor = await browser.open({ width: 360 });
    await visitor.page.goto(`${installation.run.public_url}/`);
    const { violations } = await new AxeBuilder({ page: visitor.page }).analyze();
    assert.deepEqual(violations, []);
    assert.match((await visitor.page.textContent('main')) ?? '', /reveille open/);
    const answer = await visitor.page.goto(`${base}alarms`);
    assert.equal(answer?.status(), 401);
    assert.doesNotMatch(await visitor.page.content(), /plants|stand-up/);
    await visitor.context.close();
  });

  test('every screen works without JavaScript, and an alarm can be created and paused', async () => {
    const plain = await browser.open({ width: 360, script: false });
    await plain.page.goto(await installation.address());
    await plain.page.waitForURL(/\/upcoming$/);
    for (const screen of ['Alarms', 'Chat', 'Approvals', 'Machine', 'Day', 'Status', 'Upcoming']) {
      await plain.page.click(`.top nav >> text=${screen}`);
      assert.notEqual(await plain.page.textContent('h1'), 'Error', screen);
    }
    await plain.page.click('.top nav >> text=Alarms');
    await plain.page.click('text=New alarm');
    await plain.page.fill('#message', 'Call the plumber');
    await plain.page.fill('#when', 'tomorrow 9am');
    await plain.page.click('text=Preview');
    assert.match((await plain.page.textContent('#reading')) ?? '', /09:00.*Europe\/Berlin/);
    await plain.page.click('text=Create alarm');
    assert.match(
      (await plain.page.textContent('[role=status]')) ?? '',
      /Alarm created\. It fires .* 09:00, Europe\/Berlin/,
    );
    await plain.page.click('.detail >> text="Pause"');
    assert.match((await plain.page.textContent('main .detail')) ?? '', /paused/);
    await plain.context.close();
  });

  test('a rule and a time without an hour are echoed, set, duplicated and edited', async () => {
    const plain = await browser.open({ width: 1024, script: false });
    const { page: form } = plain;
    const reading = async () => (await form.textContent('#reading')) ?? '';
    await form.goto(await installation.address());
    await form.waitForURL(/\/upcoming$/);
    await form.click('.top nav >> text=Alarms');
    await form.click('text=New alarm');
    await form.fill('#message', 'Pay the rent');
    await form.fill('#when', 'at sunset');
    await form.click('text=Preview');
    assert.match(await reading(), /differs each day and place.*at 18:00/s);
    await form.fill('#when', 'every other monday');
    await form.click('text=Preview');
    assert.match(
      await reading(),
      /Mon .* 09:00.*Europe\/Berlin.*every 2 weeks on Monday at 09:00.*because no time was given/s,
    );
    await form.click('text=More options');
    await form.fill('#holidays', 'none-such');
    await form.click('text=Create alarm');
    assert.match((await form.textContent('[role=alert]')) ?? '', /Holidays must name an installed calendar/);
    await form.fill('#holidays', '');
    await form.selectOption('#overlap', 'skip');
    await form.click('text=Create alarm');
    assert.match((await form.textContent('main .detail')) ?? '', /every 2 weeks on Monday at 09:00/);
    await form.click('#act-copy');
    assert.match(await form.inputValue('#when'), /^DTSTART:\d{8}T090000 RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO/);
    assert.deepEqual([await form.inputValue('#overlap'), await form.inputValue('#zone')], ['skip', 'Europe/Berlin']);
    await form.click('text=Create alarm');
    assert.match((await form.textContent('main .detail')) ?? '', /every 2 weeks on Monday at 09:00/);
    await form.click('#act-edit');
    await form.fill('#when', 'every monday at 10:00');
    await form.click('text=Save');
    assert.match((await form.textContent('[role=alert]')) ?? '', /repeats by rules.*create a new alarm/);
    await form.fill('#when', 'RRULE:FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17;BYMINUTE=0;BYSECOND=0');
    await form.selectOption('#overlap', 'allow');
    await form.click('text=Save');
    assert.match((await form.textContent('main .detail')) ?? '', /every month on the last Friday at 17:00/);
    await plain.context.close();
  });

  test('a backfill is counted before it is confirmed, and many fires need a tick', async () => {
    const text = async () => (await page.textContent('main')) ?? '';
    const { id } = JSON.parse(
      await installation.reveille('alarm', 'set', 'Count.', '--cron', '*/15 * * * *', '--json'),
    );
    const path = `alarms/${id}`;
    await page.setViewportSize({ width: 360, height: 800 });
    await page.goto(base + path);
    await page.click('#act-backfill');
    await page.waitForURL(/\/backfill$/);
    await page.click('text=Count fires');
    assert.match(await text(), /From must be a date or a time, such as 2026-11-20 09:00 \(got ""\)/);
    await page.fill('#from', '2026-01-01');
    await page.fill('#to', '2025-01-01');
    await page.click('text=Count fires');
    assert.match(await text(), /from must be before to/);
    await page.fill('#to', '2026-02-01 00:00');
    await page.click('text=Count fires');
    assert.match(await text(), /2976 fires.*Thu 1 Jan 00:00.*Sat 31 Jan 23:45/s);
    await page.click('text=Backfill 2976 fires');
    assert.equal(await page.evaluate('document.activeElement.id'), 'over', 'the box must be ticked first');
    const { violations } = await new AxeBuilder({ page }).analyze();
    assert.deepEqual(violations, []);
    assert.ok((await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')) <= 0);
    await page.fill('#to', '2026-01-01 00:30');
    await page.click('text=Count fires');
    assert.equal(await page.locator('#over').count(), 0);
    await page.click('text=Backfill 2 fires');
    await page.waitForURL(/\/alarms\/[0-9a-f-]{36}$/);
    assert.match((await page.textContent('body > .notice')) ?? '', /Backfilling: 2 fires, the oldest first/);
    await page.goto(`${base}${path}/backfill`);
    await page.fill('#from', '2026-01-01');
    await page.fill('#to', '2026-01-01 00:30');
    await page.click('text=Count fires');
    assert.match(await text(), /Nothing to backfill.*2 of that time have fired or wait already/s);
  });

  test('an alarm is set to wait for events after a check, is upcoming, and is edited, without JavaScript', async () => {
    const plain = await browser.open({ width: 1024, script: false });
    const { page: form } = plain;
    await form.goto(await installation.address());
    await form.waitForURL(/\/upcoming$/);
    await form.click('.top nav >> text=Alarms');
    await form.click('text=New alarm');
    const visible = (names: string) =>
      form.locator(names).evaluateAll((found) => found.map((one) => one.checkVisibility()));
    assert.deepEqual(await visible('#expect-every, #on, #after, #when'), [false, false, false, true]);
    await form.fill('#message', 'Review the <b>pull request</b>.');
    await form.fill('#when', 'a time that is not read');
    await form.selectOption('#fires', 'event');
    assert.deepEqual(await visible('#expect-every, #on, #after, #when'), [false, true, false, false]);
    await form.fill('#on', 'smoke');
    await form.click('text=Create alarm');
    assert.match(
      (await form.textContent('[role=alert]')) ?? '',
      /Events of must be webhook, github, .* \(got "smoke"\)/,
    );
    assert.equal(await form.inputValue('#fires'), 'event');
    await form.fill('#on', 'github');
    await form.fill('#filter', '/body/action=<i>');
    await form.click('text=Check before a wake');
    await form.selectOption('#checks', 'command');
    assert.deepEqual(await visible('#check-url, #check-command, #check-path'), [false, true, false]);
    await form.fill('#check-command', "echo '<script>' | wc");
    await form.click('text=Create alarm');
    assert.match(
      (await form.textContent('[role=alert]')) ?? '',
      /Command is run without a shell, so \| has no meaning/,
    );
    await form.fill('#check-command', "no-such-program '<script>'");
    await form.click('text=Create alarm');
    const refusal = needs('bubblewrap') === false ? /there is no program "no-such-program"/ : /no closed sandbox here/;
    assert.match((await form.textContent('[role=alert]')) ?? '', refusal);
    await form.selectOption('#checks', 'address');
    await form.fill('#check-url', 'https://example.com/?<script>');
    await form.click('text=Create alarm');
    const said = (await form.textContent('[role=status]')) ?? '';
    assert.match(
      said,
      /It waits for webhook \(github\), if \/body\/action is <i>\. The sender signs with whsec_\S+, which/,
    );
    const facts = (await form.textContent('.detail .facts')) ?? '';
    assert.match(facts, /Next fire\s*on an event/);
    assert.match(
      facts,
      /Checks\s*https:\/\/example\.com\/\?<script> \(status 200 to 299\)\s*Waits for\s*webhook \(github\), if \/body\/action is <i>/,
    );
    assert.match(facts, /Address\s*http:\/\/\S+\/hooks\/\S+ signed as by GitHub/);
    await form.click('#act-edit');
    assert.deepEqual(
      await Promise.all(['#on', '#filter', '#checks', '#check-url'].map((name) => form.inputValue(name))),
      ['webhook:github', '/body/action=<i>', 'address', 'https://example.com/?<script>'],
    );
    await form.fill('#filter', '');
    await form.selectOption('#checks', 'none');
    await form.click('text=Save');
    assert.match((await form.textContent('[role=status]')) ?? '', /Changed: check, event/);
    assert.doesNotMatch((await form.textContent('.detail .facts')) ?? '', /Checks|if \/body/);
    for (const [on, shown] of [
      ['webhook:path', /Changed: event\.(?! The sender)/],
      ['github', /Changed: event\. The sender signs with whsec_\S+, which is shown only now/],
    ] as const) {
      await form.click('#act-edit');
      await form.fill('#on', on);
      await form.click('text=Save');
      assert.match((await form.textContent('[role=status]')) ?? '', shown);
    }
    await form.click('.top nav >> text=Upcoming');
    assert.match(
      (await form.textContent('main')) ?? '',
      /Waiting for events\s*Review the <b>pull request<\/b>\.\s*waits for webhook \(github\)/,
    );
    await plain.context.close();
  });

  test('former addresses redirect to the new ones', async () => {
    for (const [former, path] of [
      ['ahead', 'upcoming'],
      ['talk/night?x=1', 'chat/night?x=1'],
      ['health', 'status'],
      ['notices', 'notifications'],
    ] as const) {
      const answer = await page.goto(base + former);
      assert.equal(answer?.status(), 200, former);
      assert.equal(page.url(), base + path);
      assert.equal((await answer!.request().redirectedFrom()!.response())?.status(), 308);
    }
  });
});

test('the list without filters has the alarms of every status, the active ones first, in the order of their fires', async (t) => {
  const owner = sharedOwner();
  t.after(() => owner.end());
  const [own, browser] = await Promise.all([startInstallation(owner, saying('Good morning.')), startBrowser(owner)]);
  const set = async (message: string, when: string) =>
    JSON.parse(await own.reveille('alarm', 'set', message, when, '--json')).id as string;
  await own.reveille('alarm', 'cancel', await set('Cancelled', 'in 1 hour'));
  await own.reveille('alarm', 'pause', await set('Paused', 'in 2 hours'));
  await set('Later', 'in 4 hours');
  await set('Sooner', 'in 3 hours');
  const { page } = await browser.open();
  await page.goto(await own.address());
  await page.waitForURL(/\/upcoming$/);
  await page.goto(page.url().replace(/upcoming$/, 'alarms'));
  const names = (await page.locator('li.row a.name').allInnerTexts()).map((name) => name.split('\n')[0]!);
  assert.deepEqual(
    names.filter((name) => /^(Cancelled|Paused|Later|Sooner)$/.test(name)),
    ['Sooner', 'Later', 'Paused', 'Cancelled'],
  );
});

test('an alarm names the author of a text that another one than that of the message wrote', async (t) => {
  const owner = sharedOwner();
  t.after(() => owner.end());
  const [own, browser] = await Promise.all([startInstallation(owner, saying('Good morning.')), startBrowser(owner)]);
  const set = ['alarm', 'set', 'Water the plants', 'in 3 hours', '--payload', '{"n":1}', '--json'];
  const { id } = JSON.parse(await own.reveille(...set)) as { id: string };
  // Below an agent, no person is proved.
  const edit = ['alarm', 'edit', id, '--payload', '{"n":2}'];
  const { status, stderr } = await reveille(own.home, edit, { env: { REVEILLE_SPAWN_ID: 'x' } });
  assert.equal(status, 0, stderr);
  const { page } = await browser.open();
  await page.goto(await own.address());
  await page.waitForURL(/\/upcoming$/);
  await page.goto(page.url().replace(/upcoming$/, `alarms/${id}`));
  const facts = await page.locator('dl.facts').innerText();
  assert.match(facts, /Payload by\s+the agent/i);
  assert.doesNotMatch(facts, /Message by\s+the agent|Label by/i);
});
