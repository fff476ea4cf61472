/**
 * `npm run console-screenshots`: the pictures of docs/console.md, of a real `reveille up` with a model that follows a
 * script. Small: few colours, one look each.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { AUTHENTICATOR, startHouse } from './bench.ts';
import { TRANSFER } from './transfer.ts';

const FOLDER = join(import.meta.dirname, '../../../docs/console');

const SHOTS = [
  { name: 'upcoming', path: 'upcoming', width: 1000, scheme: 'light' },
  { name: 'alarms', path: 'alarm', width: 1000, scheme: 'dark' },
  { name: 'alarms-phone', path: 'alarms', width: 360, scheme: 'light' },
  { name: 'set', path: 'alarms/new', width: 360, scheme: 'light' },
  { name: 'chat', path: 'chat/night', width: 1000, scheme: 'light' },
  { name: 'approvals', path: 'approvals', width: 1000, scheme: 'light' },
  { name: 'approvals-phone', path: 'approvals', width: 360, scheme: 'dark' },
  { name: 'passkeys', path: 'approvals/passkeys', width: 1000, scheme: 'light' },
  { name: 'machine', path: 'machine', width: 1000, scheme: 'light' },
  { name: 'day', path: 'day', width: 1000, scheme: 'dark' },
  { name: 'health', path: 'health', width: 1000, scheme: 'light' },
] as const;

const owner = sharedOwner();
const reply = saying(
  'Two builds failed in the night: orders and mail.\n',
  'Orders lacks a migration; mail timed out once and passed since.',
);
const house = await startHouse(owner, reply);
const browser = await startBrowser(owner);
const set = (...words: string[]) => house.reveille('alarm', 'set', ...words);
await set('I look at the builds of the night and tell what broke.', 'every weekday at 9:00', '--label', 'stand-up');
await set(
  'I check whether the backup went through; if not, I say so at once.',
  'every day at 3:30',
  '--label',
  'backup',
);
await set('I remind of the plants.', 'tomorrow 18:00', '--label', 'plants');
await set('I ask whether the invoice was paid.', 'in 3 days', '--payload', '{"invoice":"2026-118","total":1249.50}');
await set('I look at the builds right now.', 'in 2 hours', '--label', 'builds', '--conversation', 'night');
await house.reveille('alarm', 'trigger', 'builds');
await house.reveille('machine', 'budget', '--quiet', '22:00-07:00', '--zone', 'Europe/Berlin', '--max-per-day', '20');
const file = join(house.home, 'transfer.json');
writeFileSync(file, JSON.stringify(TRANSFER));
await house.reveille('intent', 'submit', '--json-file', file);
await eventually('the question waits', async () =>
  (await house.reveille('intent', 'list')).includes('awaiting approval'),
);
await eventually('it has rung', async () => (await house.reveille('alarm', 'show', 'builds')).includes('done'));

mkdirSync(FOLDER, { recursive: true });
for (const { name, path, width, scheme } of SHOTS) {
  const { page, context } = await browser.open({ width, scheme });
  await page.setViewportSize({ width, height: width < 600 ? 580 : 590 });
  await page.goto(await house.address());
  await page.waitForURL(/\/upcoming$/);
  const base = page.url().slice(0, -'upcoming'.length);
  if (path === 'alarm') {
    await page.goto(`${base}alarms`);
    await page.click('a.name:has-text("builds")');
  } else await page.goto(base + path);
  if (path === 'alarms/new') {
    await page.fill('#message', 'I look at the builds of the night and tell what broke.');
    await page.fill('#when', 'every weekday at 9:00');
    await page.waitForSelector('#reading strong');
  }
  if (path === 'approvals/passkeys') {
    const authenticator = await context.newCDPSession(page);
    await authenticator.send('WebAuthn.enable');
    await authenticator.send('WebAuthn.addVirtualAuthenticator', { options: AUTHENTICATOR });
    await page.fill('#name', 'my phone');
    await page.click('text=Add a passkey');
    await page.waitForSelector('body > .notice');
  }
  await delay(500);
  const bytes = await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  console.log(name, bytes.length);
  await context.close();
}
await owner.end();
