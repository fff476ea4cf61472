import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { Temporal } from 'temporal-polyfill';
import { rounds } from '../../../test/support/random/random.ts';
import type { Decision, PolicyRequest, Spend } from './policy.ts';
import { parsePolicy, readPolicy } from './read-policy.ts';

type File = Record<string, unknown>;
type Rule = { name: string; tool: string; effect: string } & Record<string, unknown>;

/** JSON is YAML. */
const policyOf = (file: File) => parsePolicy(JSON.stringify({ version: 1, ...file }), 'p.yaml');
const NOON = Date.parse('2026-06-15T12:00:00Z');
const euros = (value: string) => ({ value, currency: 'EUR' });

const transfer: PolicyRequest = {
  user: 'alice',
  tool: 'ledger/transfer',
  args: { to: 'bob', amount: '10', currency: 'EUR' },
  surface: 'escalate',
  amount: euros('10'),
  unattended: false,
  spends: [],
  now: NOON,
};
const said = (file: File, change: Partial<PolicyRequest> = {}): Decision =>
  policyOf(file).decide({ ...transfer, ...change });
const effectOf = (file: File, change: Partial<PolicyRequest> = {}) => said(file, change).effect;
const rule = (more: Record<string, unknown>): Rule => ({
  name: 'r',
  tool: 'ledger/transfer',
  effect: 'allow',
  ...more,
});

describe('without a file', () => {
  test('escalate-class calls need an approval and natural tools run', () => {
    const policy = readPolicy(undefined);
    assert.deepEqual(policy.decide(transfer), {
      effect: 'ask',
      rule: 'default',
      reason: 'No rule decides it, and the default for tools of the escalate class is ask.',
    });
    assert.equal(policy.decide({ ...transfer, surface: 'natural' }).effect, 'allow');
    assert.equal(policy.approvalTimeoutMs, 86_400_000);
    assert.equal(policy.sha256, 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  });
});

describe('patterns', () => {
  const to = (pattern: unknown, effect = 'allow') => ({ rules: [rule({ effect, args: { '/to': pattern } })] });
  const withTo = (value: unknown) => ({ args: { to: value } });

  test('compare exact characters: lookalikes are not allowed', () => {
    const lookalikes = [
      'Bob',
      'bob ',
      ' bob',
      'b\u200bob',
      'bоb',
      'ｂob',
      'bob\n',
      'bob\0',
      'bo\u0062\u0301',
      'bob\ufeff',
      '',
    ];
    for (const pattern of [{ equals: 'bob' }, { one_of: ['bob', 'carol'] }, { glob: 'bob' }, { matches: 'bob' }]) {
      assert.equal(effectOf(to(pattern), withTo('bob')), 'allow');
      for (const value of lookalikes) assert.equal(effectOf(to(pattern), withTo(value)), 'ask', JSON.stringify(value));
    }
  });

  test('an argument that is missing or of another type is never allowed and always denied', () => {
    for (const pattern of [
      { equals: 'bob' },
      { one_of: ['bob'] },
      { glob: 'bob*' },
      { matches: 'bob' },
      { range: { max: 5 } },
    ]) {
      for (const args of [{}, { To: 'bob' }, { to: ['bob'] }, { to: { name: 'bob' } }, { to: null }, { to: true }]) {
        assert.equal(effectOf(to(pattern), { args }), 'ask', JSON.stringify([pattern, args]));
        assert.equal(effectOf(to(pattern, 'deny'), { args }), 'deny', JSON.stringify([pattern, args]));
      }
    }
    assert.equal(effectOf(to({ equals: 'mallory', optional: true }, 'deny'), { args: {} }), 'ask');
    assert.equal(effectOf(to({ equals: 'mallory', optional: true }, 'deny'), withTo(['mallory'])), 'deny');
  });

  test('a number is not its text', () => {
    assert.equal(effectOf(to({ equals: 42 }), withTo(42)), 'allow');
    assert.equal(effectOf(to({ equals: 42 }), withTo('42')), 'ask');
    assert.equal(effectOf(to({ equals: 42 }, 'deny'), withTo('42')), 'deny');
    assert.equal(effectOf(to({ one_of: ['42'] }, 'deny'), withTo(42)), 'deny');
  });

  test('a range includes its ends, without rounding, in text and numbers', () => {
    const range = to({ range: { min: '-1', max: '9007199254740993.10' } });
    for (const value of ['9007199254740993.1', '0', -1, 5.5])
      assert.equal(effectOf(range, withTo(value)), 'allow', String(value));
    for (const value of ['9007199254740993.11', '-1.0000001', '1e1', '٣', 'NaN'])
      assert.equal(effectOf(range, withTo(value)), 'ask', value);
  });

  test('all members of a pattern must match, and pointers may contain / and ~', () => {
    const both = to({ glob: '/srv/*', matches: '[a-z/]+' });
    assert.equal(effectOf(both, withTo('/srv/data')), 'allow');
    assert.equal(effectOf(both, withTo('/srv/../etc')), 'ask');
    const file = { rules: [rule({ args: { '/a~1b/0/m~0n': { equals: 'x' } } })] };
    assert.equal(effectOf(file, { args: { 'a/b': [{ 'm~n': 'x' }] } }), 'allow');
    assert.equal(
      effectOf({ rules: [rule({ args: { '/constructor/name': { equals: 'Object' } } })] }, { args: {} }),
      'ask',
    );
  });

  test('a text that is too long to be matched is in doubt', () => {
    assert.equal(effectOf(to({ matches: 'a*' }), withTo('a'.repeat(4097))), 'ask');
    assert.equal(effectOf(to({ matches: 'b.*' }, 'deny'), withTo('a'.repeat(4097))), 'deny');
  });

  test('an ask rule in doubt turns allow into ask and leaves deny unchanged', () => {
    const rules = [rule({ name: 'a', effect: 'ask', args: { '/to': { equals: 'mallory' } } })];
    assert.equal(effectOf({ default: 'deny', rules }, { args: {} }), 'deny');
    assert.equal(effectOf({ default: 'deny', rules }, withTo('mallory')), 'ask');
    assert.equal(effectOf({ default: 'allow', rules }, { args: {} }), 'ask');
    assert.equal(effectOf({ rules: [...rules, rule({ name: 'b' })] }, { args: {} }), 'ask');
  });

  test('tools and users are compared letter by letter', () => {
    const file = { rules: [rule({ tool: 'ledger/tr*', users: ['alice'] })] };
    assert.equal(effectOf(file), 'allow');
    for (const change of [
      { tool: 'Ledger/transfer' },
      { tool: 'ledger2/transfer' },
      { tool: 'x/ledger/transfer' },
      { user: 'Alice' },
      { user: '' },
    ])
      assert.equal(effectOf(file, change), 'ask', JSON.stringify(change));
  });
});

describe('limits', () => {
  const file = {
    timezone: 'Europe/Berlin',
    rules: [rule({ limits: { per_call: { EUR: '50', GBP: 1 }, per_day: { EUR: '120.50', GBP: 1 } } })],
  };
  const spend = (value: string, at: string, more: Partial<Spend> = {}): Spend => ({
    tool: 'ledger/transfer',
    currency: 'EUR',
    value,
    at: Date.parse(at),
    ...more,
  });

  test('deny calls beyond them, and the reason names the limit, the spending and the end of the day', () => {
    assert.match(
      said(file, { amount: euros('50.01') }).reason,
      /limits a call to 50 EUR, and this one is about 50\.01 EUR/,
    );
    const spends = [spend('100.51', '2026-06-15T01:00:00Z'), spend('500', '2026-06-14T21:59:59Z')];
    const decision = said(file, { amount: euros('20'), spends });
    assert.equal(decision.effect, 'deny');
    assert.match(
      decision.reason,
      /limits a day to 120\.50 EUR: 100\.51 EUR are spent today, this call is about 20 EUR/,
    );
    assert.match(decision.reason, /the next day begins at 2026-06-16 00:00 Europe\/Berlin\.$/);
    assert.equal(effectOf(file, { amount: euros('19.99'), spends }), 'allow');
  });

  test('deny another currency, an unreadable amount, and a missing amount', () => {
    assert.match(
      said(file, { amount: { value: '1', currency: 'eur' } }).reason,
      /limits for "EUR", "GBP" and none for "eur"/,
    );
    assert.match(said(file, { amount: { value: '1', currency: '__proto__' } }).reason, /none for "__proto__"/);
    for (const value of ['-1', '1e1', '1,5', 'NaN', '', '１', '0x1', ' 1'])
      assert.match(said(file, { amount: euros(value) }).reason, /^The amount of the call cannot be read/, value);
    assert.match(said(file, { amount: undefined, amountUnreadable: true }).reason, /cannot be read/);
    assert.match(said(file, { amount: euros('1'), amountUnreadable: true }).reason, /cannot be read/);
    assert.match(said(file, { amount: undefined }).reason, /manifest declares no amount for ledger\/transfer/);
    assert.equal(effectOf(file, { amount: undefined, surface: 'natural' }), 'allow');
    assert.equal(effectOf(file, { amount: euros('51'), surface: 'natural' }), 'deny');
  });

  test('count only amounts of the tools of the rule, including future ones after the clock was set back', () => {
    const amount = euros('50');
    assert.equal(effectOf(file, { amount, spends: [spend('100', '2026-06-17T00:00:00Z')] }), 'deny');
    assert.equal(
      effectOf(file, { amount, spends: [spend('100', '2026-06-15T10:00:00Z', { tool: 'bank/pay' })] }),
      'allow',
    );
    assert.equal(
      effectOf(file, { amount, spends: [spend('100', '2026-06-15T10:00:00Z', { currency: 'GBP' })] }),
      'allow',
    );
    assert.match(
      said(file, { amount, spends: [spend('?', '2026-06-15T10:00:00Z')] }).reason,
      /What was spent today cannot be read/,
    );
  });

  test('also apply for rules that ask or are in doubt', () => {
    const limits = { per_call: { EUR: 5 } };
    assert.equal(effectOf({ rules: [rule({ effect: 'ask', limits })] }), 'deny');
    const rules = [rule({ name: 'a', args: { '/to': { equals: 'bob' } }, limits }), rule({ name: 'b' })];
    assert.equal(effectOf({ rules }), 'deny');
    assert.equal(effectOf({ rules }, { args: {} }), 'deny');
    assert.equal(effectOf({ rules }, { args: { to: 'carol' } }), 'allow');
  });

  test('per day apply to any sequence of calls, in days of any length', () => {
    const LIMIT = 10_000n;
    const cents = (units: bigint) => `${units / 100n}.${String(units % 100n).padStart(2, '0')}`;
    const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'Africa/Cairo', 'Australia/Lord_Howe', 'Pacific/Auckland');
    const calls = fc.array(fc.tuple(fc.bigInt({ min: 0n, max: 6000n }), fc.integer({ min: 0, max: 10 * 3_600_000 })), {
      maxLength: 40,
    });
    // Each of these zones changes its clock within the days that follow one of these instants.
    const starts = fc.constantFrom(
      '2026-03-27T00:00:00Z',
      '2026-10-23T00:00:00Z',
      '2026-04-03T00:00:00Z',
      '2026-04-22T12:00:00Z',
    );
    fc.assert(
      fc.property(zones, starts, calls, (timezone, start, sequence) => {
        const policy = policyOf({ timezone, rules: [rule({ limits: { per_day: { EUR: cents(LIMIT) } } })] });
        const sums = new Map<string, bigint>();
        let spends: Spend[] = [];
        let now = Date.parse(start);
        for (const [units, pause] of sequence) {
          now += pause;
          // The executor passes the spending of the last 48 hours.
          spends = spends.filter(({ at }) => at > now - 48 * 3_600_000);
          const amount = euros(cents(units));
          const day = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone).toPlainDate().toString();
          const sum = (sums.get(day) ?? 0n) + units;
          const { effect } = policy.decide({ ...transfer, amount, spends, now });
          assert.equal(effect, sum > LIMIT ? 'deny' : 'allow');
          if (effect !== 'allow') continue;
          sums.set(day, sum);
          spends.push({ tool: transfer.tool, ...amount, at: now });
        }
      }),
      { numRuns: rounds(60, 150) },
    );
  });
});

describe('quiet hours', () => {
  const file = (effect?: string, days?: string[]) => ({
    timezone: 'Europe/Berlin',
    quiet_hours: [{ from: '22:00', to: '07:00', ...(effect && { effect }), ...(days && { days }) }],
    rules: [rule({ unattended: true })],
  });
  const at = (text: string) => ({ now: Date.parse(text) });

  test('wrap around midnight, include their beginning and not their end', () => {
    assert.equal(effectOf(file(), at('2026-06-15T19:59:59.999Z')), 'allow');
    assert.equal(effectOf(file(), at('2026-06-15T20:00:00Z')), 'ask');
    assert.equal(effectOf(file(), at('2026-06-16T04:59:59.999Z')), 'ask');
    assert.equal(effectOf(file(), at('2026-06-16T05:00:00Z')), 'allow');
    assert.match(said(file(), at('2026-06-15T23:00:00Z')).reason, /quiet hours until 07:00 Europe\/Berlin/);
    assert.equal(said(file(), at('2026-06-15T23:00:00Z')).rule, 'quiet_hours');
  });

  test('follow the wall clock when it is changed', () => {
    assert.equal(effectOf(file(), at('2026-03-29T05:00:00Z')), 'allow', '07:00 of summer time');
    assert.equal(effectOf(file(), at('2026-10-25T05:59:59Z')), 'ask', '06:59 of winter time');
  });

  test('belong to the day on which they begin', () => {
    assert.equal(effectOf(file('ask', ['fri']), at('2026-06-20T02:00:00Z')), 'ask', 'Saturday morning');
    assert.equal(effectOf(file('ask', ['sat']), at('2026-06-20T02:00:00Z')), 'allow');
  });

  test('with effect deny also deny calls that need an approval, and ignore natural tools', () => {
    const night = at('2026-06-15T23:00:00Z');
    assert.equal(effectOf(file('deny'), night), 'deny');
    assert.equal(effectOf({ ...file('deny'), rules: [] }, night), 'deny');
    assert.equal(effectOf(file('deny'), { ...night, surface: 'natural' }), 'allow');
  });
});

describe('in an unattended turn', () => {
  test('only a rule with unattended allows an escalate-class call without an approval', () => {
    const unattended = true;
    assert.equal(effectOf({ rules: [rule({})] }, { unattended }), 'ask');
    assert.match(
      said({ rules: [rule({})] }, { unattended }).reason,
      /an alarm began this turn, so an approval is required/,
    );
    assert.equal(effectOf({ default: 'allow' }, { unattended }), 'ask');
    assert.equal(effectOf({ rules: [rule({ unattended: true })] }, { unattended }), 'allow');
    assert.equal(
      effectOf({ rules: [rule({ name: 'a' }), rule({ name: 'b', unattended: true })] }, { unattended }),
      'allow',
    );
    assert.equal(effectOf({ rules: [rule({})] }, { unattended, surface: 'natural' }), 'allow');
  });
});

describe('for any rules and any call', () => {
  const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const;
  const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
  const pattern = fc.constantFrom<unknown>(
    { equals: 'a' },
    { equals: 1 },
    { one_of: ['a', 'b'] },
    { glob: 'a*' },
    { matches: 'a|b' },
    { range: { min: 1, max: 5 } },
  );
  const amount = fc.constantFrom('1', '3', '7');
  const ruleOf = (effects: fc.Arbitrary<string>) =>
    fc
      .record({
        tool: fc.constantFrom('l/t', 'l/*', '*', 'm/s'),
        effect: effects,
        args: optional(fc.dictionary(fc.constantFrom('/to', '/n'), pattern, { maxKeys: 2 })),
        users: optional(fc.constantFrom(['a'], ['a', 'b'])),
        unattended: fc.boolean(),
        limits: optional(
          fc.record({ per_call: amount.map((EUR) => ({ EUR })), per_day: amount.map((EUR) => ({ EUR })) }),
        ),
      })
      .map(({ unattended, limits, ...rest }) => ({
        ...rest,
        ...(rest.effect === 'allow' && { unattended }),
        ...(rest.effect !== 'deny' && { limits }),
      }));
  const effect = fc.constantFrom('allow', 'ask', 'deny');
  const rulesOf = fc.array(ruleOf(effect), { maxLength: 5 });
  const naming = (rules: readonly object[]) => rules.map((one, index) => ({ name: `rule ${index}`, ...one }));
  const file = fc.record({
    default: optional(effect),
    default_natural: optional(effect),
    quiet_hours: optional(
      fc.constantFrom([{ from: '22:00', to: '07:00' }], [{ from: '11:00', to: '13:00', effect: 'deny' }]),
    ),
    rules: rulesOf,
  });
  const value = fc.constantFrom<unknown>('a', 'ab', 'b', '3', 1, 3, true, null, ['a']);
  const request: fc.Arbitrary<PolicyRequest> = fc
    .record({
      user: fc.constantFrom('a', 'b', 'c'),
      tool: fc.constantFrom('l/t', 'l/b', 'm/s'),
      args: fc.dictionary(fc.constantFrom('to', 'n'), value, { maxKeys: 2 }),
      surface: fc.constantFrom('natural', 'escalate'),
      amount: optional(
        fc.record({ value: fc.constantFrom('0', '2', '4', 'x'), currency: fc.constantFrom('EUR', 'USD') }),
      ),
      amountUnreadable: fc.boolean(),
      unattended: fc.boolean(),
      spends: fc.array(
        fc.record({ tool: fc.constant('l/t'), value: amount, currency: fc.constant('EUR'), at: fc.constant(NOON) }),
        { maxLength: 2 },
      ),
      now: fc.constantFrom(NOON, NOON + 11 * 3_600_000, NOON + 36 * 3_600_000),
    })
    .map((made) => made as PolicyRequest);
  const strictness = ({ rules, ...rest }: { rules: readonly object[] }, call: PolicyRequest) =>
    STRICTNESS[policyOf({ ...rest, rules: naming(rules) }).decide(call).effect];
  const runs = { numRuns: rounds(150, 400) };

  test('another deny rule, or limits on a rule, never loosen', () => {
    fc.assert(
      fc.property(file, ruleOf(fc.constant('deny')), request, (one, added, call) => {
        assert.ok(strictness({ ...one, rules: [...one.rules, added] }, call) >= strictness(one, call));
        const limited = one.rules.map((each) =>
          each.effect === 'deny' ? each : { ...each, limits: { per_call: { EUR: 1 } } },
        );
        const unlimited = one.rules.map((each) => ({ ...each, limits: undefined }));
        assert.ok(strictness({ ...one, rules: limited }, call) >= strictness({ ...one, rules: unlimited }, call));
      }),
      runs,
    );
  });

  test('another ask rule never makes a call allowed that was not', () => {
    fc.assert(
      fc.property(file, ruleOf(fc.constant('ask')), request, (one, added, call) => {
        const [before, after] = [strictness(one, call), strictness({ ...one, rules: [added, ...one.rules] }, call)];
        if (before > 0) assert.ok(after > 0);
        if (one.default !== 'deny' && one.default_natural !== 'deny') assert.ok(after >= before);
      }),
      runs,
    );
  });

  test('the order of the rules makes no difference to the effect', () => {
    const shuffled = file.chain((one) =>
      fc.tuple(fc.constant(one), fc.shuffledSubarray(one.rules, { minLength: one.rules.length })),
    );
    fc.assert(
      fc.property(shuffled, request, ([one, rules], call) => {
        assert.equal(strictness({ ...one, rules }, call), strictness(one, call));
      }),
      runs,
    );
  });

  test('omitting an argument, or wrapping it in a list, never loosens the decision', () => {
    fc.assert(
      fc.property(file, request, fc.constantFrom('to', 'n'), (one, call, name) => {
        const { [name]: given, ...others } = call.args;
        const before = strictness(one, call);
        assert.ok(strictness(one, { ...call, args: others }) >= before);
        assert.ok(strictness(one, { ...call, args: { ...others, [name]: [[given]] } }) >= before);
      }),
      runs,
    );
  });

  test('an unattended turn is never looser, and the default then never allows the escalate class', () => {
    fc.assert(
      fc.property(file, request, (one, call) => {
        assert.ok(strictness(one, { ...call, unattended: true }) >= strictness(one, { ...call, unattended: false }));
        const escalate: PolicyRequest = { ...call, surface: 'escalate', unattended: true };
        assert.ok(strictness({ ...one, rules: [] }, escalate) > 0);
        assert.notEqual(readPolicy(undefined).decide({ ...call, surface: 'escalate' }).effect, 'allow');
      }),
      runs,
    );
  });
});
