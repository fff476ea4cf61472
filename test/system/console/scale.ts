/**
 * `node test/system/console/scale.ts [ALARMS] [rules]`: first paint, answer time and size of console pages with 100,000
 * alarms, compared with a page without backend requests in the same run. With `rules`, the alarms are series by random
 * recurrence rules in several zones. It prints figures and has no limits.
 */
import { join } from 'node:path';
import { createChronosClient, holdPrincipal } from '../../../src/chronos/client.ts';
import { homeAt, readLabel, readSecrets } from '../../../src/cli/home/home.ts';
import { agentIdentity } from '../../../src/kit/identity/agent.ts';
import { readKeyFile } from '../../../src/kit/identity/keys.ts';
import { saying } from '../../../src/kit/model/testing/model-endpoint.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { pick, randomOf } from '../../contract/cron-oracle/generator.ts';
import { drawRule } from '../../contract/rrule-oracle/generator.ts';
import { startBrowser } from '../../support/browser.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { startInstallation } from './bench.ts';

const PAINTED = `new Promise((done) => {
  const read = () => {
    const [paint] = performance.getEntriesByName('first-contentful-paint');
    if (paint) done(paint.startTime);
    else setTimeout(read, 20);
  };
  read();
})`;

const ALARMS = Number(process.argv[2] ?? 100_000);
const ARE_RULES = process.argv[3] === 'rules';
const ZONES = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'];
const owner = sharedOwner();
const open = {
  CHRONOS_MAX_ACTIVE_ALARMS: String(2 * ALARMS),
  CHRONOS_CREATES_PER_MINUTE: '10000000',
  CHRONOS_CREATES_PER_MINUTE_IN_ALL: '10000000',
  CHRONOS_MAX_STORED_ALARMS: String(3 * ALARMS),
  CHRONOS_MAX_STORED_MIB: '10000',
};
const installation = await startInstallation(owner, saying('Yes.'), open);
const home = homeAt(installation.home);
const identity = agentIdentity(readLabel(home)!, readKeyFile(join(home.path, 'keys', 'agent.key')));
const client = createChronosClient({
  url: installation.run.chronos_url,
  token: readSecrets(home)!.CHRONOS_TOKEN,
  identity,
  principal: holdPrincipal(),
});
await client.listAlarms({ limit: 1 });
const random = randomOf(20_261_127);
for (let made = 0; ARE_RULES && made < ALARMS; ) {
  // Some random rules never fire, so they are refused.
  const rrule = drawRule(random, Date.now()).text;
  const wake_message = `check number ${made}`;
  const timezone = pick(random, ZONES);
  const set = client.createAlarm({ kind: 'rrule', wake_message, rrule, timezone });
  made += await set.then(
    () => 1,
    (error) => {
      if (error instanceof ReveilleError && error.code === 'invalid_request') return 0;
      throw error;
    },
  );
}
for (let made = 0; !ARE_RULES && made < ALARMS; made += 200)
  await Promise.all(
    Array.from({ length: 200 }, (_, n) =>
      client.createAlarm({
        kind: 'once',
        wake_message: `check number ${made + n}`,
        label: n === 7 ? 'needle' : 'hay',
        delay_seconds: 3600 + ((made + n) % 500_000),
      }),
    ),
  );
const browser = await startBrowser(owner);
const { page } = await browser.open();
await page.goto(await installation.address());
await page.waitForURL(/\/upcoming$/);
const base = page.url().slice(0, -'upcoming'.length);
for (const path of [
  // The baseline: a form without backend requests.
  'alarms/new',
  'alarms',
  'alarms?sort=newest',
  'alarms?status=failed',
  'alarms?text=needle',
  'alarms?text=nowhere',
  'upcoming',
]) {
  const paints: number[] = [];
  const answers: number[] = [];
  let bytes = 0;
  for (let n = 0; n < 5; n++) {
    await page.goto(`${base}alarms/new`);
    await page.goto(base + path);
    paints.push((await page.evaluate(PAINTED)) as number);
    const began = performance.now();
    bytes = (await (await page.request.get(base + path)).body()).length;
    answers.push(performance.now() - began);
  }
  const sorted = (times: number[]) => times.sort((one, other) => one - other).map(Math.round);
  console.log(
    `${path}: first paint ${sorted(paints).join(', ')} ms; answered in ${sorted(answers).join(', ')} ms, ${bytes} bytes`,
  );
}
await owner.end();
