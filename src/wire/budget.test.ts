import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { budgetSchema, type QuietHours } from './budget.ts';
import { parseOrThrow } from './validate.ts';

const night: QuietHours = { from: '22:00', to: '07:00', timezone: 'Europe/Berlin' };

describe('a budget in a request', () => {
  const refused = (budget: unknown) => {
    try {
      parseOrThrow(budgetSchema, budget);
    } catch (thrown) {
      return (thrown as Error).message;
    }
    return 'accepted';
  };

  test('is refused with field, value and remedy if it is inconsistent', () => {
    assert.match(refused({ quiet: { ...night, to: '22:00' } }), /^quiet\.to must differ from from.*\(got "22:00"\)/);
    assert.match(refused({ quiet: { ...night, from: '24:00' } }), /quiet\.from must be a time of day.*got "24:00"/);
    assert.match(
      refused({ quiet: { ...night, timezone: 'Berlin' } }),
      /quiet\.timezone must be an IANA time zone.*Berlin/,
    );
    assert.match(refused({ quiet: { ...night, timezone: 'BST' } }), /must be an IANA time zone/);
    assert.match(refused({ quiet: { ...night, timezone: 'Europe/Nowhere' } }), /must be an IANA time zone/);
    assert.match(refused({ quiet: { ...night, days: ['mon', 'mon'] } }), /quiet\.days must name each day once/);
    assert.match(refused({ quiet: { ...night, days: ['Mon'] } }), /must be one of mon, tue/);
    assert.match(refused({ wakes_per_hour: 0 }), /wakes_per_hour must be at least 1 \(got 0\)/);
    assert.match(refused({ wakes_per_hour: 1e9 }), /wakes_per_hour must be at most 1000/);
    assert.match(
      refused({ breaker: { failures: 5, pause_seconds: 7200 } }),
      /breaker\.pause_seconds must be at most 3600/,
    );
    assert.match(refused({ wakes: 5 }), /unknown field "wakes"; allowed here: wakes_per_hour/);
    assert.equal(refused({ quiet: { ...night, timezone: 'UTC' } }), 'accepted');
    assert.equal(refused({}), 'accepted');
  });
});
