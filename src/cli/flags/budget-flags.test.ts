import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { budgetText } from '../commands/machine.ts';
import { type BudgetFlags, budgetOf } from './budget-flags.ts';
import { machineOf } from './machine-flags.ts';
import { UsageError } from './usage-error.ts';

const ALL: BudgetFlags = {
  maxPerHour: '10',
  maxPerDay: '50',
  maxTokensPerTurn: '20000',
  maxTokensPerDay: '1000000',
  maxTokensPerAlarm: '300000',
  maxUsdPerDay: '2.5',
  maxUsdPerAlarm: '0.75',
  minGap: '90s',
  quiet: '22:00-07:00',
  zone: 'Europe/Berlin',
  quietDays: 'mon,tue',
  breaker: '5',
  breakerPause: '10m',
};

test('the flags of a budget make one, and it is printed as text', () => {
  const { budget } = machineOf({ provider: 'http', url: 'http://127.0.0.1:1', ...ALL }, '/');
  assert.deepEqual(budget, {
    wakes_per_hour: 10,
    wakes_per_day: 50,
    min_gap_seconds: 90,
    tokens_per_turn: 20_000,
    tokens_per_day: 1_000_000,
    usd_per_day: 2.5,
    tokens_per_alarm_per_day: 300_000,
    usd_per_alarm_per_day: 0.75,
    quiet: { from: '22:00', to: '07:00', timezone: 'Europe/Berlin', days: ['mon', 'tue'] },
    breaker: { failures: 5, pause_seconds: 600 },
  });
  assert.equal(
    budgetText(budget!),
    'at most 10 wakes an hour, 50 wakes a day, 20000 tokens a turn, 1000000 tokens a day, $2.50 a day, 300000 tokens a day for each alarm and $0.75 a day for each alarm; 1 min 30 s between two wakes; quiet from 22:00 to 07:00 Europe/Berlin beginning on mon, tue; a pause of 10 min and more after 5 failed starts in a row',
  );
  assert.equal(budgetOf({}), undefined);
  assert.deepEqual(budgetOf({ unlimited: true }), {});
  assert.equal(budgetText({}), 'no limits');
  assert.equal(
    budgetText({ wakes_per_hour: 1, breaker: { failures: 1 } }),
    'at most 1 wake an hour; a pause of 5 min and more after 1 failed start in a row',
  );
});

test('an impossible option is refused with the flag, the value and the remedy', () => {
  const cases: [flags: BudgetFlags, said: RegExp][] = [
    [{ maxPerHour: '0' }, /--max-per-hour must be a whole number from 1 to 1000 \(got "0"\)/],
    [{ maxPerDay: 'many' }, /--max-per-day must be a whole number/],
    [{ maxTokensPerDay: '1.5' }, /--max-tokens-per-day must be a whole number from 1 to 1000000000000/],
    [{ maxUsdPerDay: '$2' }, /--max-usd-per-day must be an amount in US dollars up to 1000000, such as 2.50/],
    [{ maxUsdPerAlarm: '0' }, /--max-usd-per-alarm must be an amount/],
    [{ minGap: '5' }, /--min-gap must be a duration/],
    [{ quiet: '22-7', zone: 'UTC' }, /--quiet must look like 22:00-07:00 \(got "22-7"\)/],
    [{ quiet: '22:00-07:00' }, /--quiet needs --zone/],
    [{ zone: 'UTC' }, /--zone needs --quiet/],
    [{ quietDays: 'mon' }, /--quiet-days needs --quiet/],
    [{ breaker: '0' }, /--breaker must be a whole number from 1 to 100/],
    [{ breakerPause: '5m' }, /--breaker-pause needs --breaker/],
    [{ unlimited: true, maxPerHour: '3' }, /--unlimited excludes limits/],
  ];
  for (const [flags, said] of cases)
    assert.throws(
      () => budgetOf(flags),
      (error) => error instanceof UsageError && said.test(error.message),
      said.source,
    );
  const put = (flags: BudgetFlags) => () => machineOf({ provider: 'http', url: 'http://127.0.0.1:1', ...flags }, '/');
  const refused = (said: RegExp) => (error: unknown) => error instanceof ReveilleError && said.test(error.message);
  assert.throws(put({ quiet: '22:00-22:00', zone: 'UTC' }), refused(/budget\.quiet\.to must differ from from/));
  assert.throws(
    put({ quiet: '22:00-07:00', zone: 'Berlin' }),
    refused(/budget\.quiet\.timezone must be an IANA time zone/),
  );
  assert.throws(put({ ...ALL, quietDays: 'monday' }), refused(/budget\.quiet\.days\.0 must be one of mon/));
});
