/**
 * Passkeys at the console, with the virtual authenticator of a real browser: enrolment, answers from every page with
 * questions, receipts that other programs verify, and refused signatures.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import AxeBuilder from '@axe-core/playwright';
import type { CDPSession, Page } from 'playwright-core';
import { homeAt, readSubmitter } from '../../../src/cli/home/home.ts';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';
import { AUTHENTICATOR, type Installation, SEEN_MS, startInstallation } from './bench.ts';
import { TRANSFER } from './transfer.ts';

const SECOND_VERIFIER = join(import.meta.dirname, '../../contract/second-verifier/verifier.mjs');

const PASSPHRASE = 'a horse without a staple';

describe('passkeys', () => {
  const owner = sharedOwner();
  let installation: Installation;
  let browser: TestBrowser;
  let page: Page;
  let cdp: CDPSession;
  let authenticatorId: string;
  let base: string;
  let notifications: string;

  before(async () => {
    // The port is not known before the start, so the tests use the path of a link alone.
    const passphrase = join(temporaryFolder(owner), 'passphrase');
    writeFileSync(passphrase, PASSPHRASE, { mode: 0o600 });
    const more = {
      NOTIFY_CONSOLE_URL: 'https://console.example',
      REVEILLE_APPROVER_PASSPHRASE_FILE: passphrase,
    };
    [installation, browser] = await Promise.all([startInstallation(owner, saying('Yes.'), more), startBrowser(owner)]);
    notifications = join(installation.home, 'notifications');
    writeFileSync(notifications, '');
    await installation.reveille('notify', 'add', 'command', '--name', 'bell', '--', 'tee', '-a', notifications);
    const window = await browser.open();
    ({ page } = window);
    cdp = await window.context.newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    ({ authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', { options: AUTHENTICATOR }));
    await page.goto(await installation.address());
    await page.waitForURL(/\/upcoming$/);
    base = page.url().slice(0, -'upcoming'.length);
  });
  after(() => owner.end());

  const pageShows = async (text: RegExp) => {
    const line = page.locator('body > .notice').filter({ hasText: text });
    await line.waitFor();
    return line.textContent();
  };
  /** Submits the transfer, and resolves when it waits. */
  async function submitted(amount = '25.00'): Promise<string> {
    const file = join(installation.home, 'transfer.json');
    const plan = { ...TRANSFER.plan, args: { ...TRANSFER.plan.args, amount } };
    writeFileSync(file, JSON.stringify({ ...TRANSFER, plan }));
    const id = /Submitted (\S+)/.exec(await installation.reveille('intent', 'submit', '--json-file', file))![1]!;
    await eventually('it waits', async () => (await stateOf(id)) === 'awaiting_approval');
    return id;
  }
  const stateOf = async (id: string) => JSON.parse(await installation.reveille('intent', 'show', id, '--json')).status;
  const until = (id: string, status: string) =>
    eventually(`${id} is ${status}`, async () => (await stateOf(id)) === status);
  const verified = (isUserVerified: boolean) =>
    cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
  const roster = async () =>
    (await installation.reveille('approver', 'list', '--json'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { approver: string; passkey?: { origin: string; sign_count: number } });
  const passkeys = async () => (await roster()).filter(({ passkey }) => passkey !== undefined);
  /** Axe finds nothing, and the page is not wider than a phone. */
  async function isFit(): Promise<void> {
    const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
    const found = violations.map(({ id }) => id);
    await page.setViewportSize({ width: 360, height: 780 });
    const over = (await page.evaluate('document.documentElement.scrollWidth - innerWidth')) as number;
    await page.setViewportSize({ width: 1440, height: 900 });
    assert.deepEqual([found, over <= 0], [[], true]);
  }
  /** A write of the page's own, with the session's token. */
  const send = (path: string, fields: Record<string, string>) =>
    page.evaluate(
      `fetch(document.baseURI + ${JSON.stringify(path)}, { method: 'POST', body: new URLSearchParams({ csrf: document.body.dataset.csrf, ...${JSON.stringify(fields)} }) }).then(async (answer) => ({ status: answer.status, text: await answer.text() }))`,
    ) as Promise<{ status: number; text: string }>;

  test('the console opens with a host name; at an address it names the remedy', async () => {
    const { console_url, public_url } = installation.run;
    assert.match(console_url!, /^http:\/\/localhost:\d+$/);
    assert.equal(new URL(page.url()).origin, console_url);
    const byNumber = await browser.open();
    const address = (await installation.address()).replace(console_url!, public_url!);
    await byNumber.page.goto(address);
    await byNumber.page.waitForURL(/\/upcoming$/);
    await byNumber.page.goto(byNumber.page.url().replace('upcoming', 'approvals/passkeys'));
    assert.match((await byNumber.page.textContent('main')) ?? '', /127\.0\.0\.1 is an address\. Open the console with/);
    assert.equal(await byNumber.page.locator('form[data-passkey]').count(), 0);
    await byNumber.context.close();
  });

  test('without a passkey, the key of this computer signs; a cancelled enrolment changes nothing', async () => {
    await page.goto(`${base}approvals`);
    await page.click('main a:has-text("Passkeys")');
    assert.match((await page.textContent('main')) ?? '', /No passkeys/);
    await verified(false);
    await page.click('button:has-text("Add a passkey")');
    await page.locator('[data-error]').filter({ hasText: 'Nothing changed' }).waitFor();
    assert.deepEqual(await passkeys(), []);
    await verified(true);
    await page.fill('#name', 'my laptop');
    await page.keyboard.press('Enter');
    await pageShows(/Added: “my laptop” may answer from http:\/\/localhost:/);
    const [passkey] = await passkeys();
    assert.equal(passkey?.passkey?.origin, installation.run.console_url);
    await page.click('button:has-text("Add a passkey")');
    await page.locator('[data-error]').filter({ hasText: 'already has a passkey for this address' }).waitFor();
    await isFit();
  });

  test('one key approves with the passkey; the receipt records it, and both verifiers accept it offline', async () => {
    const id = await submitted();
    await page.goto(`${base}approvals`);
    await page.waitForSelector('[data-question]');
    assert.match((await page.textContent('[data-question] form')) ?? '', /Signed with your passkey: my laptop/);
    await isFit();
    await verified(false);
    await delay(SEEN_MS);
    await page.keyboard.press('y');
    await page.locator('[data-error]').filter({ hasText: 'Nothing changed' }).waitFor();
    assert.equal(await stateOf(id), 'awaiting_approval');
    await verified(true);
    await page.keyboard.press('y');
    await pageShows(/Approved, signed with the passkey “my laptop”/);
    await until(id, 'completed');

    const file = join(installation.home, 'receipt.json');
    await installation.reveille('intent', 'receipt', id, '--output', file);
    const [passkey] = await passkeys();
    const args = ['--approver', passkey!.approver];
    const output = (await installation.reveille('receipt', 'verify', file, '--trust-embedded', ...args)).replace(
      /\s+/g,
      ' ',
    );
    assert.match(
      output,
      new RegExp(`signed with the passkey ${passkey!.approver} \\(my laptop\\) at http://localhost:`),
    );
    const second = await promisify(execFile)(process.execPath, [SECOND_VERIFIER, file, ...args]);
    assert.match(second.stdout, /"ok":true,.*"ends_with":"intent.completed"/);
    assert.ok((passkey?.passkey?.sign_count ?? 0) > 0);
    await page.goto(`${base}approvals/${id}`);
    await page.waitForSelector('text=every envelope, signature and digest is valid');
    assert.match((await page.textContent('pre.whole')) ?? '', /signed\s+with\s+the\s+passkey/);
  });

  test('in a conversation, the passkey denies a question, and the call does not run', async () => {
    const { token } = readSubmitter(homeAt(installation.home))!;
    const answer = await fetch(`${installation.run.executor_url}/messages/async`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ intent: TRANSFER, conversation_id: 'night' }),
    });
    const { data } = (await answer.json()) as { data: { intent_id: string } };
    await until(data.intent_id, 'awaiting_approval');
    await page.goto(`${base}chat/night`);
    await page.waitForSelector('[data-question]');
    await delay(SEEN_MS);
    await page.keyboard.press('d');
    await pageShows(/Denied, signed with the passkey “my laptop”/);
    assert.match(page.url(), /chat\/night$/);
    await until(data.intent_id, 'denied');
  });

  test('the key of this computer signs if the user selects it, and without JavaScript', async () => {
    const id = await submitted();
    await page.goto(`${base}approvals`);
    await page.click('text=Sign with the key of this computer');
    await page.check('input[name=by]');
    await delay(SEEN_MS);
    await page.click('[data-answer=d]');
    await pageShows(/Denied, signed by [0-9a-f]{16}…/);
    await until(id, 'denied');
    const other = await submitted();
    const plain = await browser.open({ script: false });
    await plain.page.goto(await installation.address());
    await plain.page.waitForURL(/\/upcoming$/);
    // Pages of the same second share their reads.
    await eventually('it is shown', async () => {
      await plain.page.click('.top nav >> text=Approvals');
      return (await plain.page.locator('[data-question]').count()) > 0;
    });
    await plain.page.click('[data-answer=d]');
    assert.match((await plain.page.textContent('body > .notice')) ?? '', /Denied, signed by/);
    await until(other, 'denied');
    await plain.context.close();
  });

  test('the passkey answers the link of a notification', async () => {
    const before = readFileSync(notifications, 'utf8').length;
    const id = await submitted();
    const path = /https:\/\/console\.example(\/answer\/[A-Za-z0-9._-]+)/;
    const approve = await eventually(
      'its link is sent',
      () => path.exec(readFileSync(notifications, 'utf8').slice(before))?.[1],
    );
    await page.goto(installation.run.console_url! + approve);
    assert.match((await page.textContent('form.answer')) ?? '', /Signed with your passkey: my laptop/);
    await delay(SEEN_MS);
    await page.click('form.answer button');
    await page.waitForSelector('text=signed with the passkey “my laptop”');
    await until(id, (await page.textContent('h1'))?.startsWith('Approved') ? 'completed' : 'denied');
    await page.goto(`${base}approvals`);
  });

  /** Presses a button and intercepts the form with the fields that the script has added. */
  async function caughtAt(button: string): Promise<Record<string, string>> {
    await page.evaluate(
      'HTMLFormElement.prototype.submit = function () { window.caught = Object.fromEntries(new FormData(this)); }',
    );
    await delay(SEEN_MS);
    await page.click(button);
    return eventually(
      'it is sent',
      () => page.evaluate('window.caught') as Promise<Record<string, string> | undefined>,
    );
  }

  test('a signature is accepted for one answer only, and only once', async () => {
    const id = await submitted();
    await page.goto(`${base}approvals`);
    await page.waitForSelector('[data-question]');
    const caught = await caughtAt('[data-answer=d]');
    assert.equal(caught.do, 'deny');
    const forged: Record<string, string>[] = [
      { ...caught, do: 'approve' },
      { ...caught, expires_at: new Date(Date.now() + 60_000).toISOString() },
      { ...caught, client_data: caught.client_data!.replace('localhost', 'evil.example') },
      { ...caught, signature: caught.signature!.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')) },
      { ...caught, credential_id: 'ab'.repeat(32) },
      { ...caught, authenticator_data: '' },
    ];
    for (const fields of forged) assert.match((await send('approvals/answer', fields)).text, /Nothing was answered/);
    assert.equal(await stateOf(id), 'awaiting_approval');
    assert.match((await send('approvals/answer', caught)).text, /Denied, signed with the passkey/);
    assert.match((await send('approvals/answer', caught)).text, /is no longer waiting/);
    await until(id, 'denied');
    const next = await submitted();
    await page.goto(`${base}approvals`);
    const shown = Object.fromEntries(
      await Promise.all(
        ['intent_id', 'node_id', 'call_sha256', 'displayed_sha256'].map(async (name) => [
          name,
          await page.locator(`[data-question] input[name=${name}]`).inputValue(),
        ]),
      ),
    ) as Record<string, string>;
    assert.match((await send('approvals/answer', { ...caught, ...shown })).text, /Nothing was answered/);
    assert.equal(await stateOf(next), 'awaiting_approval');
    await installation.reveille('intent', 'cancel', next);
  });

  test('a passkey is enrolled once, and only for a challenge of the session', async () => {
    const before = await passkeys();
    await page.goto(`${base}approvals/passkeys`);
    await cdp.send('WebAuthn.clearCredentials', { authenticatorId });
    const caught = await caughtAt('button:has-text("Add a passkey")');
    const add = async (fields: Record<string, string>) => (await send('approvals/passkeys', fields)).text;
    const made = caught.client_data!;
    assert.match(
      await add({ ...caught, client_data: made.replace('localhost', 'evil.example') }),
      /The passkey was not added/,
    );
    assert.match(await add(caught), /the request for this passkey has expired/, 'the challenge is used once');
    await send('approvals/passkeys/make', { name: 'another' });
    assert.match(await add(caught), /client_data has another challenge/);
    assert.match(await add({ name: 'without any' }), /needs JavaScript/);
    const withoutCsrf = await send('approvals/passkeys', { ...caught, csrf: 'x' });
    assert.equal(withoutCsrf.status, 403);
    assert.deepEqual(await passkeys(), before);
  });

  test('a revoked passkey cannot answer any more', async () => {
    await page.goto(`${base}approvals/passkeys`);
    await page.click('text="Revoke"');
    await isFit();
    await page.click('button:has-text("Revoke")');
    await pageShows(/Revoked: “my laptop” cannot answer any more/);
    assert.match((await page.textContent('main ul')) ?? '', /revoked/);
    await submitted();
    await page.goto(`${base}approvals`);
    await page.waitForSelector('[data-question]');
    assert.equal(await page.locator('form[data-passkey]').count(), 0);
    await delay(SEEN_MS);
    await page.keyboard.press('d');
    await pageShows(/Denied, signed by/);
  });

  test('a sealed key enrols a passkey only with its passphrase; answers with the passkey need none', async () => {
    await installation.reveille('approver', 'seal');
    await page.goto(`${base}approvals/passkeys`);
    await page.fill('#name', 'my phone');
    await page.fill('#pass-new', 'a horse with a staple');
    await page.click('button:has-text("Add a passkey")');
    await page.locator('[data-error]').filter({ hasText: 'the passphrase is wrong' }).waitFor();
    assert.equal((await passkeys()).length, 1, 'the revoked one');
    await page.fill('#pass-new', PASSPHRASE);
    await page.click('button:has-text("Add a passkey")');
    await pageShows(/Added: “my phone”/);
    const id = await submitted();
    await page.goto(`${base}approvals`);
    await page.waitForSelector('[data-question]');
    await delay(SEEN_MS);
    await page.keyboard.press('d');
    await pageShows(/Denied, signed with the passkey “my phone”/);
    await until(id, 'denied');
  });
});
