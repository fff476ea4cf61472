/**
 * `npm run console-screenshots`: the pictures of docs/console.md, of a real `reveille up` with a scripted model. With
 * `REVEILLE_SHOTS=folder` it writes every screen at both widths and in both colour schemes to that folder instead.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openState } from '../../../src/chronometric/state/open-state.ts';
import { BEAT_MS } from '../../../src/chronometric/state/state.ts';
import { ManualClock } from '../../../src/kit/clock/testing/manual-clock.ts';
import { calling, type Script, saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { startBrowser } from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';
import { AUTHENTICATOR, startInstallation } from './bench.ts';
import { TRANSFER } from './transfer.ts';

const ALL = process.env.REVEILLE_SHOTS;
const FOLDER = ALL ?? join(import.meta.dirname, '../../../docs/console');
/** The fonts that come with the browser, so that pictures do not depend on the machine. */
const FONTS = join(import.meta.dirname, '../../../node_modules/.cache/chromium/fonts');

type Shot = {
  readonly name: string;
  readonly path: string;
  readonly width?: number;
  readonly scheme?: 'light' | 'dark';
};
const SHOTS: readonly Shot[] = [
  { name: 'upcoming', path: 'upcoming' },
  { name: 'upcoming-phone', path: 'upcoming', width: 390 },
  { name: 'alarms', path: 'alarms' },
  { name: 'alarm', path: 'alarm', scheme: 'dark' },
  { name: 'new-alarm', path: 'alarms/new' },
  { name: 'chat', path: 'chat/night' },
  { name: 'chat-phone', path: 'chat/night', width: 390 },
  { name: 'approvals', path: 'approvals' },
  { name: 'approvals-phone', path: 'approvals', width: 390, scheme: 'dark' },
  { name: 'passkeys', path: 'approvals/passkeys' },
  { name: 'machine', path: 'machine' },
  { name: 'day', path: 'day', scheme: 'dark' },
  { name: 'status', path: 'status' },
];
const PATHS = [
  ...['upcoming', 'alarms', 'alarm', 'alarms/new', 'chat', 'chat/night', 'approvals', 'approvals/passkeys'],
  ...['intent', 'machine', 'day', 'status', 'notifications', 'alarms/nothing', 'sign-in'],
];
const EVERY: readonly Shot[] = PATHS.flatMap((path) =>
  [1440, 390].flatMap((width) =>
    (['light', 'dark'] as const).map((scheme) => ({
      ...{ name: `${path.replaceAll('/', '-')}-${width}-${scheme}`, path, width, scheme },
    })),
  ),
);

const REPLY = `Two builds failed in the night: **orders** and **mail**.

| Build | Reason | Next step |
|---|---|---|
| orders | a migration is missing | I opened \`#482\` |
| mail | one timeout | passed on retry |

Run this to see the log:

\`\`\`
npm run logs -- orders --since 03:00
\`\`\`
`;
const script: Script = (response, request) => {
  const { messages } = request.body;
  const asked = messages.findLastIndex(({ role }) => role === 'user');
  const isFirst = messages.length === asked + 1;
  const isAboutBuilds = messages[asked]!.content.includes('builds');
  if (messages[asked]!.content.includes('right now'))
    return saying('Two builds failed in the night: `orders` and `mail`. Ask me for the reasons.')(response, request);
  if (isFirst && isAboutBuilds) return calling({ name: 'recall', args: { query: 'builds' } })(response, request);
  if (isAboutBuilds) return saying(REPLY)(response, request);
  return saying('Done. I set a reminder for tomorrow at 18:00.')(response, request);
};

const owner = sharedOwner();
/** Writes two sessions of the last hours for the Day screen. */
function recordDay(dataDir: string): void {
  const clock = new ManualClock(Date.now() - 6 * 3_600_000);
  const state = openState({ dataDir, clock, dayEnd: (instant) => instant + 24 * 3_600_000 });
  const active = (minutes: number) => {
    for (let beat = 0; beat < (minutes * 60_000) / BEAT_MS; beat++) {
      clock.jump(BEAT_MS);
      state.beat(clock.now());
    }
  };
  state.start('Fix the migration of orders', clock.now(), 'auto_close');
  active(50);
  clock.jump(20 * 60_000);
  active(70);
  state.end('Migration fixed and deployed', clock.now());
  clock.jump(45 * 60_000);
  active(25);
  state.start('Write the release notes', clock.now(), 'auto_close');
  active(110);
  state.close();
}

const days = temporaryFolder(owner);
recordDay(days);
const installation = await startInstallation(owner, script, { CHRONOMETRIC_DATA_DIR: days });
if (existsSync(FONTS)) {
  const config = join(installation.home, 'fonts.conf');
  const prefer = ['system-ui', 'sans-serif'].map(
    (family) => `<alias binding="strong"><family>${family}</family><prefer><family>Open Sans</family></prefer></alias>`,
  );
  const folders = [FONTS, '/usr/share/fonts'].map((folder) => `<dir>${folder}</dir>`);
  writeFileSync(config, `<?xml version="1.0"?><fontconfig>${[...folders, ...prefer].join('')}</fontconfig>`);
  process.env.FONTCONFIG_FILE = config;
}
const browser = await startBrowser(owner);
const set = (...args: string[]) => installation.reveille('alarm', 'set', ...args);
await set('Check the builds of the night and report what failed.', 'every weekday at 9:00', '--label', 'Stand-up');
await set('Check whether the backup finished. If not, notify me at once.', 'every day at 3:30', '--label', 'Backup');
await set('Check the queue of incoming orders.', 'every 15 minutes', '--label', 'Queue');
await set('Remind me to water the plants.', 'tomorrow 18:00', '--label', 'Plants');
await set('Ask whether the invoice was paid.', 'in 3 days', '--payload', '{"invoice":"2026-118","total":1249.50}');
await set('Look at the builds right now.', 'in 2 hours', '--label', 'Builds', '--conversation', 'night');
await installation.reveille('alarm', 'trigger', 'Builds');
await installation.reveille(
  'machine',
  'budget',
  '--quiet',
  '22:00-07:00',
  '--zone',
  'Europe/Berlin',
  '--max-per-day',
  '120',
);
const file = join(installation.home, 'transfer.json');
writeFileSync(file, JSON.stringify(TRANSFER));
const first = await installation.reveille('intent', 'submit', '--json-file', file);
const intent = /Submitted (\S+)/.exec(first)?.[1] ?? '';
await eventually('the question waits', async () =>
  (await installation.reveille('intent', 'list')).includes('awaiting approval'),
);
await eventually('it has fired', async () => (await installation.reveille('alarm', 'show', 'Builds')).includes('done'));
await installation.reveille('chat', 'Remind me to water the plants tomorrow at 18:00.', '--conversation', 'plants');
await installation.reveille('chat', 'Which builds failed, and why?', '--conversation', 'night');

mkdirSync(FOLDER, { recursive: true });
for (const { name, path, width = 1200, scheme = 'light' } of ALL === undefined ? SHOTS : EVERY) {
  const { page, context } = await browser.open({ width, scheme });
  await page.setViewportSize({ width, height: width < 600 ? 844 : 780 });
  if (path === 'sign-in') await page.goto(`${installation.run.public_url}/`);
  else {
    await page.goto(await installation.address());
    await page.waitForURL(/\/upcoming$/);
    const base = page.url().slice(0, -'upcoming'.length);
    if (path === 'alarm') {
      await page.goto(`${base}alarms`);
      await page.click('a.name:has-text("Builds")');
    } else await page.goto(base + (path === 'intent' ? `approvals/${intent}` : path));
  }
  if (path === 'alarms/new') {
    await page.fill('#message', 'Check the builds of the night and report what failed.');
    await page.fill('#when', 'every weekday at 9:00');
    await page.waitForSelector('#reading strong');
  }
  if (path === 'approvals/passkeys' && ALL === undefined) {
    const authenticator = await context.newCDPSession(page);
    await authenticator.send('WebAuthn.enable');
    await authenticator.send('WebAuthn.addVirtualAuthenticator', { options: AUTHENTICATOR });
    await page.fill('#name', 'my phone');
    await page.click('button:has-text("Add a passkey")');
    await page.waitForSelector('body > .notice');
  }
  await delay(500);
  const bytes = await page.screenshot({ path: join(FOLDER, `${name}.png`) });
  console.log(name, bytes.length);
  await context.close();
}
await owner.end();
