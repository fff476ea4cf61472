/** A user at the console with the keyboard alone: create and edit an alarm, approve, deny, chat, and see changes at once. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import {
  beginStream,
  calling,
  endStream,
  type Script,
  saying,
  sendPiece,
} from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { type Installation, SEEN_MS, startInstallation } from './bench.ts';
import { TRANSFER } from './transfer.ts';

const PAY = 'Transfer 25.00 EUR from alice to bob.';
const PASSPHRASE = 'a horse without a staple';
/** Whether the test fails on slow updates. */
const EVERYTHING = process.env.REVEILLE_ROUNDS === 'all';

/** Compiles the plan of the requested payment. */
const compiler: Script = (response, request) => {
  const isAsked = request.body.messages.at(-1)!.role !== 'tool';
  const plan = { verb: 'pay', plan: TRANSFER.plan };
  const call = isAsked ? { name: 'ledger__accounts', args: {} } : { name: 'submit_intent', args: plan };
  return calling(call)(response, request);
};

/** Slow enough to observe a reply while it streams. */
const slowly: Script = async (response, request) => {
  const { model, messages } = request.body;
  if (model === 'compiler') return compiler(response, request);
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  if (messages[asked]!.content.includes('Ring')) return saying('The alarm arrived.')(response, request);
  if (messages[asked]!.content.includes(PAY))
    return messages.length === asked + 1
      ? calling({ name: 'core_execute', args: { intent: PAY } })(response, request)
      : saying('The payment has ended.')(response, request);
  beginStream(response);
  for (const piece of ['I looked. ', 'Two builds failed, ', 'and <b>one</b> is **fixed**.']) {
    sendPiece(response, piece);
    await delay(300);
  }
  endStream(response);
};

describe('a user with a keyboard', () => {
  const owner = sharedOwner();
  let installation: Installation;
  let page: Page;

  before(async () => {
    const [started, browser] = await Promise.all([startInstallation(owner, slowly), startBrowser(owner)]);
    installation = started;
    ({ page } = await browser.open());
    await page.goto(await installation.address());
    await page.waitForURL(/\/upcoming$/);
    await page.waitForSelector('.live[data-state=on]');
  });
  after(() => owner.end());

  const go = async (key: string, to: RegExp) => {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.waitForURL(to);
    await page.waitForSelector('.live[data-state=on]');
  };
  const message = async () => (await page.textContent('body > .notice')) ?? '';
  /** Waits for a message of the page; the error contains the page. */
  const shows = (text: string) =>
    page.waitForSelector(`body > .notice >> text=${text}`).catch(async (error: Error) => {
      throw new Error(`${page.url()} shows:\n${await page.innerText('body')}`, { cause: error });
    });

  test('creates an alarm with a time in plain language, previews it, edits it, and undoes the edit', async () => {
    await go('a', /\/alarms$/);
    await page.keyboard.press('n');
    await page.waitForURL(/\/alarms\/new$/);
    await page.focus('#message');
    await page.keyboard.type('Look at the builds');
    await page.keyboard.press('Tab');
    await page.keyboard.type('every weekday at 9');
    await page.waitForSelector('#reading >> text=09:00');
    await page.fill('#when', '05/06 at 9:00');
    await page.waitForSelector('#reading .choice');
    await page.fill('#when', 'every weekday at 9:00');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/alarms\/[0-9a-f-]{36}$/);
    assert.match(await message(), /It fires \w{3} \d+ \w{3} 09:00, then .*, Europe\/Berlin/);
    // The list without --json cuts a message to the width of the terminal.
    assert.match(await installation.reveille('alarm', 'list', '--json'), /Look at the builds/);

    await installation.reveille('alarm', 'edit', page.url().slice(-36), '--wake-computer');
    await page.keyboard.press('e');
    await page.waitForURL(/\/edit$/);
    assert.ok(await page.isChecked('#wakes'));
    await page.fill('#when', 'every day at 7:30');
    await page.keyboard.press('Enter');
    await page.waitForURL(/[0-9a-f-]{36}$/);
    assert.match((await page.textContent('.detail .facts')) ?? '', /every day at 07:30[\s\S]*wakes from sleep/);
    await page.keyboard.press('z');
    await shows('The change is undone');
    await page.focus('a.name:has-text("Look at the builds")');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/alarms\/[0-9a-f-]{36}/);
    assert.match((await page.textContent('.detail .facts')) ?? '', /every weekday at 09:00/);
  });

  test('shows the keyboard shortcuts, and selects and pauses in the list', async () => {
    await page.keyboard.press('?');
    assert.equal(await page.isVisible('dialog#keys'), true);
    await page.keyboard.press('Escape');
    await installation.reveille('alarm', 'set', 'Fires meanwhile.', 'in 3s');
    await go('a', /\/alarms$/);
    while ((await page.locator('[data-selected]:has-text("Look at the builds")').count()) === 0)
      await page.keyboard.press('j');
    // It follows the active ones then.
    await page.waitForSelector('.row:has-text("Fires meanwhile."):has-text("fired")');
    await page.keyboard.press('x');
    await page.locator('#several button[value=pause]').press('Enter');
    await shows('Paused: 1 alarm.');
    assert.match(await installation.reveille('alarm', 'list'), /paused .*Look at the builds/);
    await page.keyboard.press('z');
    await shows('Resumed: 1 alarm.');
  });

  /**
   * Waits until the page shows a change by itself, and reports the time. Only `npm run test:rounds` has a limit for it,
   * because a busy computer delays the page.
   *
   * @param change makes the n-th change; resolves to the milliseconds until it was visible
   */
  async function isSeen(t: TestContext, what: string, change: (n: number) => Promise<number>) {
    const took: number[] = [];
    do took.push(await change(took.length));
    while (EVERYTHING && took.length < 3);
    t.diagnostic(`${what}: on the screen ${took.join(', ')} ms after it happened`);
    if (EVERYTHING) assert.ok(Math.min(...took) <= 1000, `${what}: ${took} ms`);
  }
  type Fire = { accepted_at: string; finished_at: string; outcome: string; turn?: { finished_at: string } };
  /** Sets an alarm, and opens its page. */
  async function atAlarm(...args: string[]) {
    const { id } = JSON.parse(await installation.reveille('alarm', 'set', ...args, '--json'));
    await page.goto(new URL(`./alarms/${id}`, await page.evaluate<string>('document.baseURI')).href);
    await page.waitForSelector('.live[data-state=on]');
    const fires = async (): Promise<Fire[]> =>
      JSON.parse(await installation.reveille('alarm', 'show', id, '--json')).fires;
    return { id, fires };
  }

  test('sees new alarms, fires, replies and missed occurrences within a second, without a reload', async (t) => {
    await go('a', /\/alarms$/);
    await isSeen(t, 'an alarm set elsewhere', async (n) => {
      await installation.reveille('alarm', 'set', `from a terminal ${n}`, 'in 3 hours');
      const at = Date.now();
      await page.waitForSelector(`.row >> text=from a terminal ${n}`);
      return Date.now() - at;
    });
    await isSeen(t, 'a fire and its reply', async () => {
      const { fires } = await atAlarm('Ring.', 'in 2s');
      await page.waitForSelector('.fires .fire');
      const fireSeen = Date.now();
      await page.waitForSelector('.reply >> text=The alarm arrived.');
      const replySeen = Date.now();
      const [fire] = await fires();
      return Math.max(fireSeen - Date.parse(fire!.accepted_at), replySeen - Date.parse(fire!.turn!.finished_at));
    });
    await isSeen(t, 'a missed occurrence', async () => {
      const { id, fires } = await atAlarm('This is missed.', 'in 2s', '--max-lateness', '1s');
      await installation.reveille('alarm', 'pause', id);
      await delay(3500);
      await installation.reveille('alarm', 'resume', id);
      await page.waitForSelector('.fires .line >> text=missed');
      const seen = Date.now();
      return seen - Date.parse((await fires()).find(({ outcome }) => outcome === 'missed')!.finished_at);
    });
    await go('m', /\/machine$/);
    await isSeen(t, 'a machine that was suspended elsewhere', async () => {
      const { user_id } = JSON.parse((await installation.reveille('machine', 'list', '--json')).split('\n')[0]!);
      await installation.reveille('machine', 'suspend', user_id);
      const at = Date.now();
      await page.waitForSelector('.state >> text=suspended');
      const seen = Date.now() - at;
      await installation.reveille('machine', 'restore', user_id);
      await page.waitForSelector('.state >> text=suspended', { state: 'detached' });
      return seen;
    });
  });

  test('approves one question with a key and denies another; the page verifies the receipt', async (t) => {
    const file = join(installation.home, 'transfer.json');
    writeFileSync(file, JSON.stringify(TRANSFER));
    await go('p', /\/approvals$/);
    await isSeen(t, 'a question that waits', async () => {
      for (const open of await page.locator('[data-question]').all()) await open.locator('[data-answer=d]').click();
      await page.waitForSelector('[data-question]', { state: 'detached' });
      await installation.reveille('intent', 'submit', '--json-file', file);
      const at = Date.now();
      await page.waitForSelector('[data-question]');
      await page.waitForSelector('nav [data-waiting] >> text=1');
      return Date.now() - at;
    });
    assert.equal(await page.textContent('[data-question] h2'), 'Pay 25.00 EUR: alice → bob');
    assert.match(
      (await page.textContent('[data-question] .forecast')) ?? '',
      /expected change.*Nothing has been executed/s,
    );
    assert.match((await page.textContent('[data-question] .changes')) ?? '', /alice EUR balance 5000\.00 → 4975\.00/);
    assert.match((await page.textContent('[data-question] .payload')) ?? '', /"amount": "25\.00"/);
    await page.keyboard.press('y');
    await delay(SEEN_MS);
    if ((await page.locator('[data-question]').count()) > 0) await page.keyboard.press('y');
    await shows('Approved, signed by');
    await eventually('it is done', async () => (await installation.reveille('intent', 'list')).includes('completed'));
    await page.click('a.name');
    await page.waitForSelector('text=every envelope, signature and digest is valid');

    writeFileSync(
      file,
      JSON.stringify({ ...TRANSFER, plan: { ...TRANSFER.plan, args: { ...TRANSFER.plan.args, amount: '30.00' } } }),
    );
    await go('p', /\/approvals$/);
    await installation.reveille('intent', 'submit', '--json-file', file);
    await page.waitForSelector('[data-question]');
    await delay(SEEN_MS);
    await page.keyboard.press('d');
    await shows('Denied');
    await eventually('it is denied', async () => (await installation.reveille('intent', 'list')).includes('denied'));
  });

  test('a key that was meant for one question does not answer the question that replaces it', async () => {
    const file = join(installation.home, 'transfer.json');
    await go('p', /\/approvals$/);
    const node = (id: string, amount: string) => ({ ...TRANSFER.plan, id, args: { ...TRANSFER.plan.args, amount } });
    const plan = { id: 'both', kind: 'parallel', nodes: [node('little', '10.00'), node('much', '2000.00')] };
    writeFileSync(file, JSON.stringify({ ...TRANSFER, plan }));
    const id = /Submitted (\S+)/.exec(await installation.reveille('intent', 'submit', '--json-file', file))![1]!;
    await page.waitForSelector('[data-question] >> nth=1');
    const focused = () => page.evaluate("document.activeElement.closest('[data-question]').dataset.question");
    await page.focus('[data-question] >> nth=1 >> [data-answer=y]');
    const second = await focused();
    await page.evaluate("main().append('text that the next refresh removes'); refresh()");
    assert.equal(await focused(), second, 'the button that has the focus is that of the same question');
    await page.evaluate('document.activeElement.blur()');
    await delay(SEEN_MS);
    await page.keyboard.press('j');
    const field = (name: string) => page.locator(`[data-selected] [name=${name}]`).inputValue();
    const digests = ['displayed', 'call'].map(async (of) => [`--${of}-sha256`, await field(`${of}_sha256`)]);
    // Stops the clock of the page, so that a busy computer is not too late with the keys.
    await page.evaluate('{ const now = performance.now(); performance.now = () => now; }');
    await installation.reveille(
      'intent',
      'approve',
      id,
      await field('node_id'),
      ...(await Promise.all(digests)).flat(),
    );
    await page.waitForSelector('[data-question] >> nth=1', { state: 'detached' });
    for (const key of ['y', 'Enter']) {
      await page.keyboard.press(key);
      await page.locator('[data-error]').filter({ hasText: 'has just appeared' }).waitFor();
      await page.focus('[data-answer=y]');
    }
    assert.match(await installation.reveille('intent', 'show', id), /call: awaiting approval/);
    await page.evaluate('delete performance.now');
    await delay(SEEN_MS);
    await page.keyboard.press('d');
    await shows('Denied');
    await eventually('it is denied', async () =>
      (await installation.reveille('intent', 'show', id)).includes('denied'),
    );
  });

  test('an answer to an answered question names the first approver and changes nothing', async () => {
    const file = join(installation.home, 'transfer.json');
    writeFileSync(file, JSON.stringify(TRANSFER));
    await go('p', /\/approvals$/);
    const id = /Submitted (\S+)/.exec(await installation.reveille('intent', 'submit', '--json-file', file))![1]!;
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
    assert.match(await answer(), /is no longer waiting: its step was already denied by \S+@\S+ \([0-9a-f]{16}…\) at /);
    assert.match(await installation.reveille('intent', 'show', id), /denied/);
  });

  test('sends a message and sees the reply as it streams, with markup as text and Markdown rendered', async () => {
    await go('c', /\/chat$/);
    await page.keyboard.press('/');
    await page.keyboard.type('What broke?');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/chat\/.+/);
    await page.locator('[data-reply]').filter({ hasText: 'I looked.' }).waitFor();
    await page.locator('[data-reply]').filter({ hasText: 'is fixed.' }).waitFor();
    assert.equal(await page.locator('[data-reply] b').count(), 0);
    assert.equal(await page.locator('[data-reply] strong').textContent(), 'fixed');
    assert.match((await page.textContent('[data-reply]')) ?? '', /<b>one<\/b>/);
  });

  test('in Chat: a running tool, its question answered with a passphrase, and a stopped turn', async () => {
    await installation.given(`${PASSPHRASE}\n`, 'approver', 'seal');
    await go('c', /\/chat$/);
    const say = async () => {
      await page.keyboard.press('/');
      await page.keyboard.type(PAY);
      await page.keyboard.press('Enter');
      await page.waitForURL(/\/chat\/.+/);
      await page.locator('.tools summary').filter({ hasText: 'core_execute is running' }).last().waitFor();
      await page.locator('[data-tools] li:has-text("core_execute") .state.begun').waitFor({ state: 'attached' });
      await page.waitForSelector('[data-question] [name=passphrase]');
    };
    await say();
    await delay(SEEN_MS);
    await page.fill('[name=passphrase]', 'another horse altogether');
    await page.click('[data-question] [data-answer=y]');
    await page.waitForSelector('body > .notice.bad >> text=passphrase');
    await delay(SEEN_MS);
    await page.fill('[name=passphrase]', PASSPHRASE);
    await page.click('[data-question] [data-answer=y]');
    await shows('Approved, signed by');
    await page.locator('[data-reply]').filter({ hasText: 'The payment has ended.' }).waitFor();
    assert.equal(await page.locator('[data-question]').count(), 0);
    assert.match(await installation.reveille('intent', 'list'), /^\S+ +completed.*\n/m);

    await go('c', /\/chat$/);
    await say();
    await page.keyboard.press('Escape');
    await page.keyboard.press('s');
    await shows('Stopped.');
    await page.waitForSelector('[data-turn] [data-state] >> text=failed');
    await page.waitForSelector('[data-question]', { state: 'detached' });
    assert.match(await installation.reveille('intent', 'list'), /cancelled/);
  });
});
