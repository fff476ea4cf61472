/** The page behind the link of a notification: opened, answered once, forged, replayed and expired. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { diceOf, rounds } from '../../support/random/random.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { type Installation, SEEN_MS, startInstallation } from './bench.ts';
import { TRANSFER } from './transfer.ts';

describe('a link of a notification', () => {
  const owner = sharedOwner();
  let installation: Installation;
  let browser: TestBrowser;
  let origin: string;
  /** A file with the notifications of the channel, one line of JSON each. */
  let notifications: string;

  before(async () => {
    // The port is not known before the start, so the tests use the path of a link alone.
    const more = { NOTIFY_CONSOLE_URL: 'https://console.example' };
    [installation, browser] = await Promise.all([startInstallation(owner, saying('Yes.'), more), startBrowser(owner)]);
    origin = installation.run.public_url!;
    notifications = join(installation.home, 'notifications');
    await installation.reveille('notify', 'add', 'command', '--name', 'bell', '--', 'tee', '-a', notifications);
  });
  after(() => owner.end());

  /** Submits the transfer, and waits until both links of its question have come. */
  async function submitted(): Promise<{ id: string; approve: string; deny: string }> {
    const file = join(installation.home, 'transfer.json');
    writeFileSync(file, JSON.stringify(TRANSFER));
    const before = sentLinks().length;
    const id = /Submitted (\S+)/.exec(await installation.reveille('intent', 'submit', '--json-file', file))![1]!;
    const [approve, deny] = await eventually('its links are sent', () => {
      const links = sentLinks().slice(before);
      return links.length >= 2 && links;
    });
    return { id, approve: approve!, deny: deny! };
  }
  const sentLinks = () =>
    existsSync(notifications)
      ? [...readFileSync(notifications, 'utf8').matchAll(/https:\/\/console\.example(\/answer\/[A-Za-z0-9._-]+)/g)].map(
          ([, path]) => path!,
        )
      : [];
  const stateOf = async (id: string) => JSON.parse(await installation.reveille('intent', 'show', id, '--json')).status;
  const post = (path: string, headers: Record<string, string> = { origin }, form: Record<string, string> = {}) =>
    fetch(origin + path, { method: 'POST', headers, body: new URLSearchParams(form) });

  test('shows the call and a confirmation; one press answers and consumes both links', async () => {
    const { id, approve, deny } = await submitted();
    const { page } = await browser.open();
    await page.goto(origin + approve);
    await page.goto(origin + approve);
    assert.match((await page.textContent('[data-question] .changes')) ?? '', /alice EUR balance 5000\.00 → 4975\.00/);
    assert.match((await page.textContent('[data-question] .payload')) ?? '', /"amount": "25\.00"/);
    assert.equal(await page.locator('form.answer button').count(), 1, 'a link is for one answer');
    assert.equal(await stateOf(id), 'awaiting_approval', 'opening the page changes nothing');
    await delay(SEEN_MS);
    await page.click('text=Approve this call');
    await page.waitForSelector('text=Approved, signed by');
    await eventually('it is done', async () => (await stateOf(id)) === 'completed');
    for (const link of [approve, deny]) {
      const again = await post(link);
      assert.equal(again.status, 409);
      assert.match(await again.text(), /A link has already answered this question/);
    }
  });

  test('denies, and the call does not run', async () => {
    const { id, deny } = await submitted();
    assert.equal((await post(deny)).status, 200);
    await eventually('it is denied', async () => (await stateOf(id)) === 'denied');
  });

  test('forged, shortened and replayed links and requests of other sites are refused', async (t) => {
    const { id, approve, deny } = await submitted();
    const dice = diceOf(t);
    const tokens = [approve, deny].map((path) => path.slice('/answer/'.length));
    const forged = Array.from({ length: rounds(300, 10_000) }, () => {
      const token = tokens[dice(2)]!;
      const at = dice(token.length);
      const other = 'abcdefghABCDEFGH01234567_-.'[dice(27)]!;
      const kind = dice(4);
      if (kind === 0) return token.slice(0, at);
      if (kind === 1) return `${token}${other}`;
      if (kind === 2) return token.replace(/\.([yn])\./, (_, answer) => `.${answer === 'y' ? 'n' : 'y'}.`);
      return token.slice(0, at) + (token[at] === other ? 'Z' : other) + token.slice(at + 1);
    });
    let accepted = 0;
    for (const token of forged) {
      const { status } = await post(`/answer/${token}`);
      if (status < 400) accepted++;
    }
    assert.equal(accepted, 0);
    assert.equal((await post(approve, { origin: 'https://evil.example' })).status, 403);
    assert.equal((await post(approve, {})).status, 403, 'a write without an origin');
    assert.equal(await stateOf(id), 'awaiting_approval');
    t.diagnostic(`${forged.length} forged links: ${accepted} accepted`);

    // Answered elsewhere: the link reports the first approver.
    await installation.reveille('intent', 'deny', id);
    await eventually('it is denied', async () => (await stateOf(id)) === 'denied');
    const late = await post(approve);
    assert.equal(late.status, 409);
    assert.match(await late.text(), /is no longer waiting: its step was already denied by \S+@\S+ /);
  });

  test('five wrong passphrases lock the link and the key for web pages; a terminal can still answer', async () => {
    const right = 'four quiet words here';
    await installation.given(`${right}\n`, 'approver', 'seal');
    const { id, approve, deny } = await submitted();
    const guess = (path: string, passphrase: string) => post(path, { origin }, { passphrase });
    for (let n = 0; n < 5; n++) assert.equal((await guess(approve, `wrong words ${n}`)).status, 403);
    for (const path of [approve, deny]) {
      const locked = await guess(path, right);
      assert.equal(locked.status, 429);
      assert.match(await locked.text(), /locked after five wrong passphrases/);
    }
    await installation.given(`${right}\n`, 'intent', 'deny', id);
    await eventually('it is denied', async () => (await stateOf(id)) === 'denied');
    const other = await submitted();
    const refused = await guess(other.approve, right);
    assert.equal(refused.status, 429);
    assert.match(await refused.text(), /the key is locked for pages for 15 min .* answer in a terminal/);
    assert.ok(Number(refused.headers.get('retry-after')) > 800);
  });
});
