import assert from 'node:assert/strict';
import { test } from 'node:test';
import { add, noFigures, summarize } from './figures.ts';
import { drawScenario } from './scenario.ts';
import { simulate } from './simulate.ts';

const SEEDS = 200;
/** Where a campaign has found something that was mended since. */
const ONCE_BROKEN: readonly number[] = [];

/** What must have come about in so many worlds, or they are too tame to show anything. */
const RARITIES = [
  'alarm given up',
  'alarm left paused',
  'attempt interrupted',
  'cancel that met a delivery',
  'create: key taken',
  'create: too many',
  'lease lost',
  'occurrence missed',
  'series caught up',
];

test(`chronos keeps its promises in ${SEEDS} worlds that break in every way there is`, async (t) => {
  // A tenth of the time would go into the stacks of errors that are meant to be.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  t.after(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  const figures = noFigures();
  const began = performance.now();
  const broken: string[] = [];
  for (const seed of [...Array.from({ length: SEEDS }, (_, index) => index + 1), ...ONCE_BROKEN]) {
    const outcome = await simulate({ seed });
    add(figures, outcome);
    broken.push(...outcome.violations.map((violation) => `npm run simulate -- --seed ${seed} --trace: ${violation}`));
  }
  t.diagnostic(summarize(figures, performance.now() - began));
  assert.deepEqual(broken, []);
  assert.deepEqual(
    RARITIES.filter((what) => !figures.sights.get(what)),
    [],
    'never seen',
  );
});

test('a seed makes the same world every time, event for event', async () => {
  const worlds = new Set<string>();
  for (let seed = 1; worlds.size < 4; seed++) {
    const { mode, engine } = drawScenario(seed);
    if (worlds.has(`${mode} ${engine}`)) continue;
    worlds.add(`${mode} ${engine}`);
    const lines: string[] = [];
    const first = await simulate({ seed, onLine: (line) => lines.push(line) });
    assert.ok(lines.length > 100);
    assert.deepEqual(await simulate({ seed }), first);
  }
});

test('two seeds make two worlds', async () => {
  assert.notEqual((await simulate({ seed: 1 })).digest, (await simulate({ seed: 2 })).digest);
});
