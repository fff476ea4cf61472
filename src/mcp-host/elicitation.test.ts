/** Allowed and forbidden questions of a server to the user. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ElicitRequestParams } from '@modelcontextprotocol/client';
import { checkContent, typedValue } from '../wire/question.ts';
import { readQuestion } from './elicitation.ts';

const read = (params: object) => readQuestion(params as ElicitRequestParams);
const form = (properties: object, more: { message?: string; required?: string[] } = {}) => {
  const { message = 'Which trip?', required = [] } = more;
  return read({ message, requestedSchema: { type: 'object', properties, required } });
};
const fieldsOf = (properties: object, required?: string[]) => {
  const found = form(properties, required && { required });
  assert.ok('question' in found && found.question.mode === 'form', JSON.stringify(found));
  return found.question.fields;
};

test('a form of simple fields is read with its limits, options and defaults', () => {
  const fields = fieldsOf(
    {
      city: { type: 'string', title: 'City', minLength: 2, maxLength: 40 },
      mail: { type: 'string', format: 'email' },
      nights: { type: 'integer', minimum: 1, maximum: 30, default: 2 },
      share: { type: 'number' },
      quiet: { type: 'boolean', default: false },
      class: { type: 'string', enum: ['1', '2'], enumNames: ['first', 'second'] },
      meal: { type: 'string', oneOf: [{ const: 'v', title: 'Vegetarian' }] },
      extras: { type: 'array', items: { type: 'string', enum: ['wifi', 'desk'] }, maxItems: 1 },
    },
    ['city'],
  );
  assert.deepEqual(
    fields.map(({ name, kind, required }) => [name, kind, required]),
    [
      ['city', 'text', true],
      ['mail', 'text', false],
      ['nights', 'integer', false],
      ['share', 'number', false],
      ['quiet', 'boolean', false],
      ['class', 'choice', false],
      ['meal', 'choice', false],
      ['extras', 'choices', false],
    ],
  );
  assert.deepEqual(checkContent(fields, { city: 'Bonn' }), { content: { city: 'Bonn', nights: 2, quiet: false } });
  const wrong = checkContent(fields, {
    ...{ city: 'B', mail: 'me', nights: 2.5, class: '3', meal: 'x', extras: ['wifi', 'desk'], other: 1 },
  });
  assert.deepEqual(wrong, {
    problems: [
      'other is not a field of this question',
      'city must have at least 2 characters',
      'mail must be an email address',
      'nights must be a whole number',
      'class must be one of 1, 2',
      'meal must be one of v',
      'extras must have at most 1 options',
    ],
  });
  assert.deepEqual(checkContent(fields), { problems: ['city is required'] });
});

test('typed words become values of their fields', () => {
  const [nights, quiet, choice, extras] = fieldsOf({
    nights: { type: 'integer' },
    quiet: { type: 'boolean' },
    class: { type: 'string', enum: ['first', 'second'] },
    extras: { type: 'array', items: { type: 'string', enum: ['wifi', 'desk'] } },
  });
  assert.equal(typedValue(nights!, ' 12 '), 12);
  assert.equal(typedValue(nights!, '12 or so'), '12 or so');
  assert.equal(typedValue(quiet!, 'no'), false);
  assert.equal(typedValue(choice!, '2'), 'second');
  assert.deepEqual(typedValue(extras!, 'wifi, 2'), ['wifi', 'desk']);
  assert.equal(typedValue(nights!, ' '), undefined);
});

test('a form that asks for a secret is refused', () => {
  const secret = /asks for a secret in a form/;
  for (const name of ['password', 'userPassword', 'pass_phrase', 'api_key', 'apiKey', 'access_token', 'otp', 'pin'])
    assert.match((form({ [name]: { type: 'string' } }) as { refusal: string }).refusal, secret, name);
  for (const title of ['Your password', 'Credit card', 'Card number', 'CVV', 'Social security number', 'Seed phrase'])
    assert.match((form({ a: { type: 'string', title } }) as { refusal: string }).refusal, secret, title);
  const hidden = form({ a: { type: 'string', description: 'The password of your bank' } });
  assert.match((hidden as { refusal: string }).refusal, secret);
  const inMessage = form({ a: { type: 'string' } }, { message: 'Reveille needs your passphrase to go on.' });
  assert.match((inMessage as { refusal: string }).refusal, secret);
  assert.match((form({ a: { type: 'string', format: 'password' } }) as { refusal: string }).refusal, secret);
  for (const name of ['city', 'description', 'pinned', 'tokens_per_turn', 'keyboard', 'monkey'])
    assert.ok('question' in form({ [name]: { type: 'string' } }), name);
});

test('a word for a secret is found in disguise, and in other languages', () => {
  const isRefused = (read: ReturnType<typeof form>) => 'refusal' in read && /asks for a secret/.test(read.refusal);
  for (const title of [
    ...['Pass\u200bword', 'P\u00adassword', 'Pаsswоrd', 'Ｐａｓｓｗｏｒｄ', '𝐏𝐚𝐬𝐬𝐰𝐨𝐫𝐝', 'pa\u2060ssphrase', 'Ѕecret'],
    ...['pwd', 'PSW', 'Passwort', 'Kennwort', 'Contraseña', 'Mot de passe', 'Senha', 'Пароль', '密码', 'パスワード'],
    ...['Verification code', 'Login code', 'Authenticator code', 'Security code', 'sign-in code'],
  ]) {
    assert.ok(isRefused(form({ a: { type: 'string', title } })), title);
  }
  for (const message of [
    'Type the verification code of your phone',
    'Your PIN, please',
    'Gib dein Passwort ein',
    'pаsswоrd',
  ])
    assert.ok(isRefused(form({ a: { type: 'string' } }, { message })), message);
  for (const title of ['Postal code', 'Country code', 'Pinned', 'Code of conduct', 'Compass', 'Login name'])
    assert.ok('question' in form({ a: { type: 'string', title } }), title);
});

test('a form that is nested, endless or no form is refused', () => {
  const many = Object.fromEntries(Array.from({ length: 33 }, (_, at) => [`f${at}`, { type: 'string' }]));
  for (const properties of [
    many,
    { a: { type: 'object' } },
    { a: { $ref: '#/x' } },
    { a: true },
    { a: { type: 'string', title: 'x'.repeat(600) } },
  ])
    assert.ok('refusal' in form(properties));
  assert.ok('refusal' in read({ message: 'x' }));
  assert.ok('refusal' in read({ message: 'x'.repeat(4001), requestedSchema: { type: 'object', properties: {} } }));
});

test('an address is shown as it is opened, with its host; others than https are refused', () => {
  const url = (address: string) => read({ mode: 'url', message: 'Pay here', url: address, elicitationId: '1' });
  const found = url('https://xn--pypal-4ve.com/pay?to=1');
  assert.ok('question' in found && found.question.mode === 'url');
  assert.equal(found.question.host, 'xn--pypal-4ve.com');
  const lookalike = url('https://pаypal.com/pay');
  assert.ok('question' in lookalike && lookalike.question.mode === 'url');
  assert.equal(lookalike.question.host, 'xn--pypal-4ve.com', 'a Cyrillic letter is visible');
  for (const address of [
    ...['javascript:alert(1)', 'file:///etc/passwd', 'http://shop.example/', 'https://paypal.com@evil.example/'],
    ...['reveille://approve', 'not an address', `https://x.example/${'y'.repeat(3000)}`],
  ])
    assert.ok('refusal' in url(address), address);
});

test('a word for a secret is not hidden by signs, digits, look-alikes or its direction', () => {
  const hide: readonly ((word: string) => string)[] = [
    (word) => [...word].join('-'),
    (word) => [...word].join(' . '),
    (word) => word.replaceAll('a', '4').replaceAll('o', '0').replaceAll('e', '3').replaceAll('s', '5'),
    (word) => word.replaceAll('s', '$').replaceAll('a', '@'),
    (word) => [...word].reverse().join(''),
    (word) => [...word].reverse().join('_'),
    (word) => word.replaceAll('a', '\u0430').replaceAll('o', '\u043e'),
    (word) => [...word].map((letter) => String.fromCodePoint(letter.codePointAt(0)! + 0xfee0)).join(''),
  ];
  for (const word of ['password', 'passphrase', 'apikey', 'accesstoken', 'securitycode', 'cardnumber'])
    for (const hidden of hide.map((how) => how(word))) {
      assert.ok('refusal' in form({ [hidden]: { type: 'string' } }), hidden);
      assert.ok('refusal' in form({ a: { type: 'string', title: `Your ${hidden}` } }), hidden);
      assert.ok('refusal' in form({ a: { type: 'string' } }, { message: `Enter the ${hidden} now` }), hidden);
    }
  for (const word of ['token', 'secret', 'pin', 'otp'])
    for (const hidden of hide.map((how) => how(word)))
      assert.ok('refusal' in form({ [hidden]: { type: 'string' } }), hidden);
  for (const name of ['nights', 'passenger', 'pinned', 'departure', 'stop', 'tokenizer', 'seat_number', 'spin'])
    assert.ok('question' in form({ [name]: { type: 'string' } }), name);
  for (const name of ['P.I.N.', 'O-T-P', 'p.1.n', 'C.V.C'])
    for (const text of [`Enter your ${name}`, `${name}, please`]) {
      assert.ok('refusal' in form({ a: { type: 'string' } }, { message: text }), text);
      assert.ok('refusal' in form({ a: { type: 'string', description: text } }), text);
    }
  assert.ok('refusal' in form({ a: { type: 'string', default: 'type your password' } }));
  for (const text of ['The U.S. or the E.U.?', 'At 9 a.m., i.e. before noon', '1.2.3', 'a-b-c'])
    assert.ok('question' in form({ a: { type: 'string', default: text } }, { message: text }), text);
});
