import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { classify, ESCALATE_PATTERNS, readEscalatePatterns } from './classify.ts';

const surfaceOf = (name: string, patterns = ESCALATE_PATTERNS) => classify({ name }, patterns).surface;

test('what moves or commits something escalates, in whatever case and wherever it stands in the name', () => {
  for (const pattern of ESCALATE_PATTERNS) {
    for (const name of [pattern, pattern.toUpperCase(), `do_${pattern}_now`, `erc20${pattern}From`]) {
      assert.equal(surfaceOf(name), 'escalate', name);
    }
  }
  assert.equal(surfaceOf('ｔｒａｎｓｆｅｒ'), 'escalate', 'full-width letters are letters');
});

test('reads and dry runs do not escalate, however what they look at is called', () => {
  const names = [
    'get_balance',
    'compile',
    'compile_contract',
    'test',
    'simulate_transfer',
    'simulateSwap',
    'lookup-fund',
  ];
  for (const name of [...names, 'list', 'list_transfers', 'LIST_STAKES', 'test deploy']) {
    assert.equal(surfaceOf(name), 'natural', name);
  }
});

test('a name that only begins like a read escalates still', () => {
  const names = ['testament_transfer', 'listing_send', 'simulate_and_send', 'lookupThenTransfer', 'transfer_list'];
  for (const name of [...names, 'latest_transfer']) assert.equal(surfaceOf(name), 'escalate', name);
});

test('the manifest has the last word, and a hint can only make a tool stricter', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.constantFrom(undefined, 'natural' as const, 'escalate' as const),
      fc.record({ destructiveHint: fc.option(fc.boolean(), { nil: undefined }), readOnlyHint: fc.boolean() }),
      (name, surface, annotations) => {
        const without = classify({ name, surface }, ESCALATE_PATTERNS).surface;
        const hinted = classify({ name, surface, annotations }, ESCALATE_PATTERNS).surface;
        if (surface !== undefined) assert.equal(hinted, surface);
        if (without === 'escalate') assert.equal(hinted, 'escalate');
        if (surface === undefined && annotations.destructiveHint) assert.equal(hinted, 'escalate');
      },
    ),
  );
});

test('patterns are read with blanks and in any case, and take the place of the default', () => {
  const patterns = readEscalatePatterns(' Pay , burn');
  assert.deepEqual(patterns, ['pay', 'burn']);
  assert.deepEqual([surfaceOf('payBob', patterns), surfaceOf('transfer', patterns)], ['escalate', 'natural']);
});

test('a pattern that would match everything or nothing is refused', () => {
  for (const setting of ['', 'send,', ',', 'a b', '*', 'x'.repeat(65)]) {
    assert.throws(() => readEscalatePatterns(setting), { code: 'invalid_request', message: /NEO_ESCALATE_PATTERNS/ });
  }
});
