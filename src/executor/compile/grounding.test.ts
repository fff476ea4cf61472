import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Intent } from '../../wire/intent.ts';
import { groundingProblems, provenanceOf } from './grounding.ts';
import type { Material } from './sources.ts';
import { bankToolbox } from './testing/bank-tools.ts';

const { toolbox } = bankToolbox();

const transfer = (args: Record<string, unknown>, others: Partial<Intent> = {}): Intent => ({
  verb: 'transfer',
  plan: { id: 'n1', kind: 'call', tool: 'bank/transfer', args },
  ...others,
});

const material = (prose: string, others: Partial<Material> = {}): Material => ({
  prose,
  context: [],
  reads: [],
  ...others,
});

const read = (text: string) => ({ tool: 'bank/balance', args: {}, args_sha256: '', is_error: false, text });

const problems = (intent: Intent, from: Material | string) =>
  groundingProblems(intent, typeof from === 'string' ? material(from) : from, toolbox);

test('a plan whose values occur in the task has no problems', () => {
  const prose = 'Please move 25.00 USD from acct-1 to acct-2 ("rent for June").';
  for (const amount of [25, '25', '25.00']) {
    const args = { from: 'acct-1', to: 'acct-2', amount, currency: 'USD', memo: 'rent for June', urgent: true };
    assert.deepEqual(problems(transfer(args), prose), []);
  }
});

test('a value that occurs nowhere is reported with its position', () => {
  const prose = 'Move 25 USD from acct-1 to acct-2.';
  const [problem, ...others] = problems(transfer({ from: 'acct-1', to: 'acct-3', amount: 25 }), prose);
  assert.deepEqual(others, []);
  assert.match(problem!, /^plan\.args\/to "acct-3" does not occur in the task/);
  const plan = {
    id: 's',
    kind: 'sequence' as const,
    nodes: [{ ...transfer({ to: 'acct-2', amount: 26 }).plan, id: 'n' }],
  };
  assert.match(problems(transfer({}, { plan }), prose).join(), /^plan\.nodes\[0\]\.args\/amount 26 does not occur/);
});

test('parts, other spellings and other cases of a value do not count', () => {
  const pairs: [string, Record<string, unknown>][] = [
    ['Send 50 to acct-2.', { to: 'acct-2', amount: 5 }],
    ['Send 150 to acct-2.', { to: 'acct-2', amount: 50 }],
    ['Send 5 to acct-12.', { to: 'acct-1', amount: 5 }],
    ['Send 5 to ACCT-2.', { to: 'acct-2', amount: 5 }],
    ['Send 5 to аcct-2.', { to: 'acct-2', amount: 5 }],
    ['Send five to acct-2.', { to: 'acct-2', amount: 5 }],
    ['Send 5 to account 7.', { to: '007', amount: 5 }],
    ['Send 5 to account 007.', { to: '7', amount: 5 }],
    ['Send 5 to Jane Doe or John Smith.', { to: 'Jane Smith', amount: 5 }],
    ['Send 5 to 0xAbC1.', { to: '0xabc1', amount: 5 }],
    ['Send 5 and 10 to acct-2.', { to: 'acct-2', amount: 15 }],
    ['Send 5 to acct -2.', { to: 'acct-2', amount: 5 }],
    ['Send 5 thousand to acct-2.', { to: 'acct-2', amount: 5000 }],
    ['Send 5 thousand to acct-2.', { to: 'acct-2', amount: '5' }],
  ];
  for (const [prose, args] of pairs) assert.equal(problems(transfer(args), prose).length, 1, prose);
});

test('a listed value must occur, in any case; a forced value need not', () => {
  const args = { to: 'acct-2', amount: 5 };
  assert.deepEqual(problems(transfer({ ...args, currency: 'USD' }), '5 usd to acct-2'), []);
  assert.equal(problems(transfer({ ...args, currency: 'EUR' }), '5 usd to acct-2').length, 1);
  assert.equal(problems(transfer({ ...args, currency: 'USD' }), '$5 to acct-2').length, 1);
  assert.deepEqual(problems(transfer({ ...args, network: 'internal' }), '5 to acct-2'), []);
  assert.equal(problems(transfer({ ...args, network: 'Internal' }), '5 to acct-2').length, 1);
});

test('lists, references and unknown fields are searched', () => {
  const many = (args: Record<string, unknown>): Intent => ({
    verb: 'pay',
    plan: { id: 'n', kind: 'call', tool: 'bank/pay_many', args },
  });
  const prose = '5 to acct-1, 6 to acct-2, as batch rent';
  const payments = [
    { to: 'acct-1', amount: 5 },
    { to: 'acct-2', amount: 6 },
  ];
  assert.deepEqual(problems(many({ payments, labels: { batch: 'rent' } }), prose), []);
  assert.match(
    problems(many({ payments: [...payments, { to: 'acct-3', amount: 6 }] }), prose).join(),
    /payments\/2\/to "acct-3"/,
  );
  assert.match(problems(many({ labels: { 'acct-9': 'rent' } }), prose).join(), /labels\/acct-9 "acct-9"/);
  assert.match(problems(many({ labels: { a: { b: { c: 'x9' } } } }), prose).join(), /"x9"/);
});

test('a memo may be composed of plain words that occur, but not of pieces of values', () => {
  const prose = 'Pay 5 to acct-2 for the June rent, IBAN DE89 3704 0044, ref A-17 and B-18';
  const memo = (words: string) => problems(transfer({ to: 'acct-2', amount: 5, memo: words }), prose);
  for (const words of [
    'rent June',
    'June rent, A-17',
    'The RENT (June)',
    'DE89 3704 0044',
    'rent A-17 for June B-18',
  ]) {
    assert.deepEqual(memo(words), [], words);
  }
  for (const words of ['July rent', 'A-18', 'A-17 B-18', 'DE89 0044', 'DE89', 'approved', 'rent https://x.example']) {
    assert.equal(memo(words).length, 1, words);
  }
});

test('values may come from the conversation and from lookups, and their origin is reported', () => {
  const from = material('Pay what we talked about from acct-1.', {
    context: [
      { from: 'tool', text: '{"invoice":{"payee":"acct-9","total":12.50}}' },
      { from: 'person', text: 'Yes, twelve fifty: 12.5 EUR.' },
    ],
    reads: [read('{"iban":"DE00-1","memo":"caf\\u00e9"}')],
  });
  const intent = transfer({
    from: 'acct-1',
    to: 'acct-9',
    amount: '12.50',
    currency: 'EUR',
    network: 'internal',
    memo: 'café',
  });
  assert.deepEqual(problems(intent, from), []);
  assert.deepEqual(
    provenanceOf(intent, from, toolbox).map(({ place, from: kind, tool }) => [place, kind, tool]),
    [
      ['/from', 'prose', undefined],
      ['/to', 'tool', undefined],
      ['/amount', 'person', undefined],
      ['/currency', 'person', undefined],
      ['/network', 'schema', undefined],
      ['/memo', 'read', 'bank/balance'],
    ],
  );
  // An agent that repeats a tool's text does not make the person its origin.
  const repeated = { ...from, prose: 'Pay 12.50 EUR from acct-1 to acct-9.' };
  const to = provenanceOf(intent, repeated, toolbox).find(({ place }) => place === '/to');
  assert.equal(to?.from, 'tool');
  const [nowhere] = provenanceOf(transfer({ to: 'x-1' }), from, toolbox);
  assert.deepEqual(nowhere, { node_id: 'n1', place: '/to', value: 'x-1', from: 'nowhere' });
});

test('a long number in JSON counts as written, not as JavaScript rounds it', () => {
  const from = material('Pay 5.', { reads: [read('{"id":12345678901234567891}')] });
  assert.deepEqual(problems(transfer({ to: '12345678901234567891', amount: 5 }), from), []);
  assert.equal(problems(transfer({ to: '12345678901234567000', amount: 5 }), from).length, 1);
});

test('text that misleads a person is refused, even if it is grounded', () => {
  for (const to of ['acct-\u200b9', 'acct\u202e-9', 'аcct-9', 'acct-９', 'acct-9\u{e0041}']) {
    const from = material('Pay 5.', { context: [{ from: 'tool', text: `payee ${to}` }] });
    assert.match(problems(transfer({ to, amount: 5 }), from).join(), /cannot be seen|look like others/, to);
  }
});

test('texts for people contain only plain names and words of the task', () => {
  const args = { to: 'acct-2', amount: 5 };
  const prose = 'transfer 5 to acct-2, fees at most 1, before 2026-06-15T08:10:00Z';
  const sound = {
    objects: { payee: 'acct-2' },
    constraints: { fees: 'at most 1' },
    deadline: '2026-06-15T10:10:00+02:00',
  };
  assert.deepEqual(problems(transfer(args, sound), prose), []);
  for (const [others, pattern] of [
    [{ verb: 'transfer (already approved)' }, /^verb/],
    [{ verb: 'transfer 9' }, /^verb/],
    [{ constraints: { note: 'the user has approved' } }, /^constraints\/note/],
    [{ objects: { 'approved: yes': true } }, /^objects must not have a field/],
    [{ objects: { payee: 'acct-9' } }, /^objects\/payee "acct-9"/],
    [{ deadline: '2027-01-01T00:00:00Z' }, /^deadline/],
  ] as const) {
    assert.match(problems(transfer(args, others), prose).join(), pattern);
  }
});

test('a wait must have the duration of the task', () => {
  const wait = (seconds: number): Intent => ({ verb: 'wait', plan: { id: 'w', kind: 'wait', seconds } });
  assert.deepEqual(problems(wait(600), 'wait 10 minutes'), []);
  assert.match(problems(wait(60), 'wait 10 minutes').join(), /^plan\.seconds 60/);
});

test('only accounts that the task names are accepted', () => {
  const account = fc.stringMatching(/^[a-z]{2,5}-[0-9]{1,6}$/);
  const words = fc.array(fc.stringMatching(/^[a-z]{1,8}$/), { maxLength: 6 });
  fc.assert(
    fc.property(account, account, words, fc.integer({ min: 1, max: 9999 }), (named, other, around, amount) => {
      const prose = [...around, named, ...around, String(amount)].join(' ');
      assert.deepEqual(problems(transfer({ to: named, amount }), prose), []);
      const result = problems(transfer({ to: other, amount }), prose);
      assert.equal(result.length, other === named ? 0 : 1);
    }),
    { numRuns: 500 },
  );
});

test('a value with one changed character is not grounded', () => {
  const account = fc.stringMatching(/^[A-Za-z0-9]{8,34}$/);
  fc.assert(
    fc.property(account, fc.nat(), fc.constantFrom('0', 'x', 'X', 'а', '-', '\u0131'), (value, at, letter) => {
      const place = at % value.length;
      const changed = value.slice(0, place) + letter + value.slice(place + 1);
      fc.pre(changed !== value);
      assert.notEqual(problems(transfer({ to: changed, amount: 5 }), `5 to ${value}`).length, 0);
    }),
    { numRuns: 500 },
  );
});

test('a plan with too many values is refused', () => {
  const labels = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`k${index}`, 'x']));
  const plan = { id: 'n', kind: 'call' as const, tool: 'bank/pay_many', args: { labels } };
  assert.match(problems({ verb: 'pay', plan }, 'x').join(), /^the intent must have at most 2000 values/);
});
