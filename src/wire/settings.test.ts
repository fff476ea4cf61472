import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { parseSettings, portSetting, secretSetting, switchSetting, urlSetting, wholeNumber } from './settings.ts';

const schema = z.object({
  A_PORT: portSetting.default(80),
  A_TOKEN: secretSetting.optional(),
  A_DEV: switchSetting.default(false),
  A_URL: urlSetting.default('http://localhost'),
  A_COUNT: wholeNumber(1, 10).optional(),
});

test('absent and empty variables take their defaults; the result is frozen', () => {
  const settings = parseSettings(schema, { A_PORT: '', OTHER: 'x' });
  assert.deepEqual({ ...settings }, { A_PORT: 80, A_DEV: false, A_URL: 'http://localhost' });
  assert.ok(Object.isFrozen(settings));
});

test('a wrong value is refused with its name, its value and what is allowed', () => {
  assert.throws(
    () => parseSettings(schema, { A_PORT: '70000' }),
    /A_PORT must be a whole number from 0 to 65535 \(got "70000"\)/,
  );
  assert.throws(() => parseSettings(schema, { A_DEV: 'yes' }), /A_DEV must be 1 or 0 \(got "yes"\)/);
  assert.throws(
    () => parseSettings(schema, { A_URL: 'localhost:80' }),
    /A_URL must be an http:\/\/ or https:\/\/ address/,
  );
  assert.throws(
    () => parseSettings(schema, { A_PORT: 'x', A_COUNT: '11' }),
    /A_PORT .*; A_COUNT must be a whole number from 1 to 10/,
  );
});

test('a limit without its own message gets the standard message', () => {
  assert.throws(
    () => parseSettings(z.object({ A_NAME: z.string().max(2) }), { A_NAME: 'xyz' }),
    (error: Error) => error.message === 'A_NAME must have at most 2 characters (got "xyz")',
  );
});

test('the error for a wrong secret does not contain its value', () => {
  assert.throws(
    () => parseSettings(schema, { A_TOKEN: 'hunter2' }),
    (error: Error) => error.message === 'A_TOKEN must have at least 16 characters',
  );
});

test('the trailing slash of an address is removed', () => {
  assert.equal(parseSettings(schema, { A_URL: 'http://localhost:1/x/' }).A_URL, 'http://localhost:1/x');
});

test('an address is read in its canonical form', () => {
  const read = (url: string) => urlSetting.parse(url);
  assert.equal(read('HTTPS://Reveille.Example.com:443/'), 'https://reveille.example.com');
  assert.equal(read('http://[::1]:80/Path/'), 'http://[::1]/Path');
  assert.equal(read('http://localhost:8087'), 'http://localhost:8087');
});
