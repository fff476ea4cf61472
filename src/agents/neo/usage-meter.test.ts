import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelAnswer } from '../../kit/model/model.ts';
import { pricesSetting } from '../../kit/model/prices.ts';
import type { Turn } from '../../turns/turn.ts';
import type { JournalledStep } from './loop/journal.ts';
import type { NeoModel } from './model.ts';
import { usageMeter } from './usage-meter.ts';

const turnWith = (more: Partial<Turn> = {}) => ({ attempts: 1, retries: 0, ...more }) as Turn;
const step = (usage?: JournalledStep['usage']): JournalledStep => ({
  step: 1,
  text: '',
  omittedCalls: 0,
  calls: [],
  usage,
});
const answer = (usage?: ModelAnswer['usage']): ModelAnswer => ({ text: 'ok', model: 'm', ...(usage && { usage }) });

/** A model that gives the answers in turn; an error is thrown after the first piece. */
function scripted(...answers: (ModelAnswer | Error)[]): NeoModel {
  return {
    name: 'm',
    async generate({ onText }) {
      onText('piece');
      const next = answers.shift()!;
      if (next instanceof Error) throw next;
      return next;
    },
  };
}
const request = { onText() {} } as unknown as Parameters<NeoModel['generate']>[0];

test('the calls of a turn are summed with their cost', async () => {
  const meter = usageMeter(turnWith(), [], pricesSetting.parse('m=1/10'));
  assert.deepEqual(meter.used(), { input_tokens: 0, output_tokens: 0 });
  const usage = { inputTokens: 1000, outputTokens: 100 };
  const model = meter.metered(scripted(answer(usage), answer(usage)));
  await model.generate(request);
  await model.generate(request);
  assert.deepEqual(meter.used(), { input_tokens: 2000, output_tokens: 200, cost_usd: 0.004 });
});

test('a call without usage, or one that broke off, makes it incomplete; without any it is unknown', async () => {
  const meter = usageMeter(turnWith(), [], new Map());
  const cut = new Error('cut');
  const model = meter.metered(scripted(answer(), cut, answer({ inputTokens: 5, outputTokens: 1 })));
  await model.generate(request);
  assert.equal(meter.used(), undefined);
  await assert.rejects(model.generate(request), cut);
  assert.equal(meter.used(), undefined);
  await model.generate(request);
  assert.deepEqual(meter.used(), { input_tokens: 5, output_tokens: 1, incomplete: true });
});

test('a turn that runs again goes on from what was stored', () => {
  const used = { input_tokens: 100, output_tokens: 10 };
  const parked = turnWith({ attempts: 2, retries: 1, usage: used });
  assert.deepEqual(usageMeter(parked, [step({ input_tokens: 60, output_tokens: 5 })], new Map()).used(), used);
  const killed = turnWith({ attempts: 2, retries: 0 });
  assert.deepEqual(usageMeter(killed, [step(used)], new Map()).used(), { ...used, incomplete: true });
  assert.equal(usageMeter(killed, [], new Map()).used(), undefined);
  assert.equal(usageMeter(turnWith({ attempts: 2, retries: 1 }), [], new Map()).used(), undefined);
});

test('the limit of a turn is reached at its number', async () => {
  const meter = usageMeter(turnWith({ terms: { tokens_per_turn: 12 } }), [], new Map());
  const usage = { inputTokens: 5, outputTokens: 1 };
  const model = meter.metered(scripted(answer(usage), answer(usage)));
  await model.generate(request);
  assert.equal(meter.exhausted(), undefined);
  await model.generate(request);
  assert.match(meter.exhausted()!, /it has used 12 tokens, and its user's budget is 12 per turn/);
});
