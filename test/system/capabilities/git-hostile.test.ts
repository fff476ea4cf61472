/** Hostile repositories, links and arguments obtain nothing from the git tools. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { diceOf, rounds } from '../../support/random/random.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import {
  type Attempt,
  answersOf,
  attemptByChance,
  attemptsByHand,
  freshRepository,
  holdsCanary,
  makeSite,
  makeTemplate,
  pictureOf,
  type Site,
  usualJobs,
} from './hostile-git.ts';

const BY_CHANCE = rounds(40, 1000);
/** Of the hand-written attempts: each, or every second. */
const STEP = rounds(2, 1);

/** @returns a description of each attempt that succeeded */
async function tryOut(site: Site, template: string, { prepare, jobs = () => usualJobs() }: Attempt) {
  const at = freshRepository(site, template);
  prepare?.(at, site);
  const before = pictureOf(site.outside);
  const answers = await answersOf(site, jobs(site));
  const through: string[] = [];
  if (pictureOf(site.outside) !== before) through.push('a file outside was written');
  if (readdirSync(site.marks).length > 0) through.push('a program ran');
  const leak = answers.find(({ text }) => text.includes(site.canary) || text.includes('a request was made'));
  if (leak) through.push(`an answer has the canary: ${leak.text.slice(0, 300)}`);
  if (holdsCanary(at, site.canary)) through.push('the canary was staged');
  return { through, calls: answers.length, done: answers.filter(({ ok }) => ok).length };
}

async function campaign(t: TestContext, attemptsOf: (site: Site) => Attempt[]) {
  const site = makeSite(temporaryFolder(t));
  const template = await makeTemplate(site);
  const plain = await tryOut(site, template, { name: 'nothing is spoilt' });
  assert.equal(plain.done, plain.calls, 'the tools work in an intact repository');
  const attempts = attemptsOf(site);
  let [calls, done] = [0, 0];
  const through: string[] = [];
  for (const attempt of attempts) {
    const result = await tryOut(site, template, attempt);
    calls += result.calls;
    done += result.done;
    through.push(...result.through.map((what) => `${attempt.name}: ${what}`));
  }
  assert.deepEqual(through, []);
  t.diagnostic(`${attempts.length} attempts in ${calls} calls (${done} did something), ${through.length} through`);
  return attempts.length;
}

test('hand-written hostile repositories, links and arguments reach nothing outside the workspace', async (t) => {
  const first = diceOf(t)(STEP);
  const tried = await campaign(t, (site) => attemptsByHand(site).filter((_, number) => number % STEP === first));
  assert.ok(tried >= 200);
});

test('random hostile repositories, links and arguments reach nothing outside the workspace', async (t) => {
  const dice = diceOf(t);
  await campaign(t, (site) => Array.from({ length: BY_CHANCE }, (_, number) => attemptByChance(dice, site, number)));
});
