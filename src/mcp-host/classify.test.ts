import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anyCharacter } from '../../test/support/random/characters.ts';
import { type Classifiable, classify, ESCALATE_PATTERNS, readEscalatePatterns } from './classify.ts';

const surfaceOf = (name: string, more: Omit<Classifiable, 'name'> = {}, patterns: readonly string[] = []) =>
  classify({ name, ...more }, patterns).surface;
const READ = { sideEffectClass: 'read' } as const;

/** Names of tools that move, commit or destroy something, some of them disguised as a read or a dry run. */
const HOSTILE = [
  ...['test_transfer', 'list_with_transfer', 'simulate_swap_execute', 'listANDtransfer', 'pay', 'wireMoney'],
  ...['sweep', 'purchase', 'delete_all', 'lookupThenSend', 'compile_and_deploy', 'payBob', 'buy_now'],
];

/** Cyrillic letters that look like Latin ones. */
const CYRILLIC: Readonly<Record<string, string>> = { a: 'а', e: 'е', o: 'о', p: 'р', c: 'с', y: 'у', x: 'х', i: 'і' };
const FULL_WIDTH = (name: string) =>
  [...name]
    .map((letter) => (/[!-~]/.test(letter) ? String.fromCharCode(letter.charCodeAt(0) + 0xfee0) : letter))
    .join('');

/** The same name to a reader, in other code points. */
const DISGUISES: Readonly<Record<string, (name: string) => string>> = {
  none: (name) => name,
  'look-alike letters': (name) => [...name].map((letter) => CYRILLIC[letter] ?? letter).join(''),
  'letters with marks': (name) => [...name].map((letter) => `${letter}\u0323`).join(''),
  'zero-width characters': (name) => [...name].join('\u200b'),
  'soft hyphens and fillers': (name) => [...name].join('\u00ad\u3164'),
  'tags and selectors': (name) => [...name].join('\ufe0f\u{e0041}'),
  'full-width letters': FULL_WIDTH,
  'mathematical letters': (name) =>
    name.replace(/[a-z]/g, (letter) => String.fromCodePoint(0x1d41a + letter.charCodeAt(0) - 97)),
  'other separators': (name) => name.replace(/([a-z])([A-Z])/g, '$1.$2').replaceAll('_', '-'),
  'camel case': (name) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
  capitals: (name) => name.replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase(),
  'digits for letters': (name) => name.replace(/e/g, '3').replace(/a/g, '4').replace(/s/g, '5'),
};

test("a tool without a declared class is escalate, whatever its name and its server's hints are", () => {
  for (const name of [...HOSTILE, 'get_balance', 'list', 'read_file', 'simulate_transfer', 'ping', '查询余额', '']) {
    for (const [disguise, disguiseName] of Object.entries(DISGUISES)) {
      for (const annotations of [undefined, { readOnlyHint: true, destructiveHint: false }]) {
        assert.equal(surfaceOf(disguiseName(name), { annotations }), 'escalate', `${name} in ${disguise}`);
      }
    }
  }
  fc.assert(fc.property(fc.string({ unit: anyCharacter }), (name) => assert.equal(surfaceOf(name), 'escalate')));
});

test('a class other than read does not make a tool natural', () => {
  for (const sideEffectClass of ['write', 'network', 'shell'] as const)
    assert.equal(surfaceOf('look', { sideEffectClass }), 'escalate');
});

/** Names whose words alone show an effect, so that the class "read" does not make them natural. */
const MOVING = ['list_with_transfer', 'simulate_swap_execute', 'listANDtransfer', 'pay', 'wireMoney', 'sweep'];
const ALSO_MOVING = ['purchase', 'delete_all', 'lookupThenSend', 'compile_and_deploy', 'payBob', 'getTransfer'];

test('the words of a name make a declared read stricter, in every disguise', () => {
  for (const name of [...MOVING, ...ALSO_MOVING]) {
    for (const [disguise, disguiseName] of Object.entries(DISGUISES))
      assert.equal(surfaceOf(disguiseName(name), READ), 'escalate', `${name} in ${disguise}: ${disguiseName(name)}`);
  }
  for (const pattern of ESCALATE_PATTERNS) {
    for (const name of [pattern, pattern.toUpperCase(), `do_${pattern}_now`, `erc20${pattern}From`])
      assert.equal(surfaceOf(name, READ), 'escalate', name);
  }
});

test('no combination of disguises makes a declared read natural', () => {
  const insertion = fc.constantFrom(
    '',
    '',
    '\u200b',
    '\u200d',
    '\u2060',
    '\u00ad',
    '\u0301',
    '\ufe0f',
    '\u{e0020}',
    '\u3164',
  );
  const letter = (plain: string) =>
    fc.tuple(
      fc.constantFrom(plain, plain.toUpperCase(), CYRILLIC[plain] ?? plain, FULL_WIDTH(plain), plain.normalize('NFD')),
      insertion,
    );
  const name = fc.constantFrom(...MOVING, ...ALSO_MOVING).chain((plain) => fc.tuple(...[...plain].map(letter)));
  fc.assert(
    fc.property(name, (letters) => {
      const disguised = letters.map((pair) => pair.join('')).join('');
      // Capitals in the middle of a word change its words, which is allowed in a plain name.
      fc.pre(/[^\x20-\x7e]/.test(disguised));
      assert.equal(surfaceOf(disguised, READ), 'escalate', JSON.stringify(disguised));
    }),
    { numRuns: 2000 },
  );
});

test('the reason says how a disguised name is read', () => {
  const reason = (name: string) => {
    const found = classify({ name, surface: undefined });
    return found.surface === 'escalate' ? found.reason : '';
  };
  assert.equal(reason('do_transfer'), 'its name contains "transfer"');
  for (const name of ['tr\u0430nsfer', 't\u200bransfer', 'tr4n5fer', 'trans_fer', 'ｔｒａｎｓ．ｆｅｒ', 'trånsfer'])
    assert.equal(reason(name), 'its name reads like "transfer"', name);
  assert.equal(reason('wireMoney'), 'its name has the word "wire"');
  assert.equal(reason('w\u0456re_money'), 'its name has the word "wire"');
  assert.equal(reason('look'), 'the manifest calls it neither a read nor natural');
});

test('a read or dry run that the manifest declares as read is natural, whatever its object is named', () => {
  const names = [
    'get_balance',
    'compile',
    'compile_contract',
    'test',
    'simulate_transfer',
    'simulateSwap',
    'lookup-fund',
  ];
  const more = [
    'list',
    'list_transfers',
    'LIST_STAKES',
    'test deploy',
    'get_display',
    'decode_payload',
    'wireless_scan',
  ];
  for (const name of [...names, ...more]) assert.equal(surfaceOf(name, READ), 'natural', name);
});

test('a name that only begins like a read still escalates', () => {
  const names = ['testament_transfer', 'listing_send', 'simulate_and_send', 'lookupThenTransfer', 'transfer_list'];
  for (const name of [...names, 'latest_transfer']) assert.equal(surfaceOf(name, READ), 'escalate', name);
});

test('a doubtful tool needs approval', () => {
  const surface = (tool: Omit<Classifiable, 'name'>, name = 'look') => surfaceOf(name, tool);
  assert.equal(surface({}), 'escalate');
  assert.equal(surface({ sideEffectClass: 'network' }), 'escalate');
  assert.equal(surface({ sideEffectClass: 'read' }), 'natural');
  assert.equal(surface({ sideEffectClass: 'read', annotations: { destructiveHint: true } }), 'escalate');
  assert.equal(surface({ sideEffectClass: 'read' }, 'getTransfer'), 'escalate');
  assert.equal(surface({ sideEffectClass: 'read', surface: 'natural' }, 'getTransfer'), 'natural');
  assert.equal(surface({ sideEffectClass: 'read', surface: 'escalate' }), 'escalate');
});

test('the manifest decides, and the result says when a name speaks against it', () => {
  assert.deepEqual(classify({ name: 'transfer', surface: 'natural' }), {
    surface: 'natural',
    despite: 'its name contains "transfer"',
  });
  assert.deepEqual(classify({ name: 'note', surface: 'natural' }), { surface: 'natural' });
  fc.assert(
    fc.property(
      fc.string({ unit: 'grapheme', maxLength: 40 }),
      fc.constantFrom(undefined, 'natural' as const, 'escalate' as const),
      fc.constantFrom(undefined, 'read' as const, 'write' as const),
      fc.record({ destructiveHint: fc.option(fc.boolean(), { nil: undefined }), readOnlyHint: fc.boolean() }),
      (name, surface, sideEffectClass, annotations) => {
        const without = surfaceOf(name, { surface, sideEffectClass });
        const hinted = surfaceOf(name, { surface, sideEffectClass, annotations });
        if (surface !== undefined) assert.equal(hinted, surface);
        if (without === 'escalate') assert.equal(hinted, 'escalate');
        if (surface === undefined && annotations.destructiveHint) assert.equal(hinted, 'escalate');
      },
    ),
  );
});

test('patterns are read with blanks and in any case, and are added to the built-in ones', () => {
  const patterns = readEscalatePatterns(' Pay , burn, Look');
  assert.deepEqual(patterns, ['pay', 'burn', 'look']);
  for (const name of ['payBob', 'transfer', 'look', 'l\u043e\u043ek'])
    assert.equal(surfaceOf(name, READ, patterns), 'escalate', name);
  assert.equal(surfaceOf('look', READ), 'natural');
});

test('a pattern that would match everything or nothing is refused', () => {
  for (const setting of ['', 'send,', ',', 'a b', '*', 'x'.repeat(65)]) {
    assert.throws(() => readEscalatePatterns(setting), { code: 'invalid_request', message: /NEO_ESCALATE_PATTERNS/ });
  }
});
