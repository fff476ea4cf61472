import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeVerdict, longestCheckMs, readVerdict } from './check-verdict.ts';
import { checkSchema } from './conditions.ts';

test('a verdict survives its header, whatever its texts are', () => {
  for (const value of ['', 'grün "1" \\ ✓', '"'.repeat(1024), '✓'.repeat(341)]) {
    const verdict = { verdict: 'wake', reason: 'a reason', value, duration_ms: 12 } as const;
    const header = encodeVerdict(verdict);
    assert.match(header, /^[\w-]{1,4096}$/);
    assert.deepEqual(readVerdict(header), verdict);
  }
  const long = readVerdict(encodeVerdict({ verdict: 'skip', reason: '\0✓'.repeat(5000), duration_ms: 1.4 }))!;
  assert.ok(long.reason.length <= 240);
  // A value that does not fit is left out: the earlier one stays.
  const wide = encodeVerdict({ verdict: 'wake', reason: 'r', value: '\u0001'.repeat(1024), duration_ms: 1 });
  assert.deepEqual(readVerdict(wide), { verdict: 'wake', reason: 'r', duration_ms: 1 });
});

test('anything else is no verdict', () => {
  const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  for (const header of [undefined, '', 'x', ['a'], encoded(null), encoded({ verdict: 'maybe', reason: '' })])
    assert.equal(readVerdict(header), undefined);
  assert.equal(readVerdict('a'.repeat(5000)), undefined);
  assert.deepEqual(readVerdict(encoded({ verdict: 'skip', reason: 'r', value: 'x'.repeat(1025), duration_ms: -1 })), {
    ...{ verdict: 'skip', reason: 'r', duration_ms: 0 },
  });
});

test('a check has one kind, and conditions that fit each other', () => {
  const http = { url: 'https://example.org/' };
  const wrong = [
    {},
    { http, path: { path: 'x' } },
    { http: { ...http, pointer: 'state', equals: 1 } },
    { http: { ...http, pointer: '/state' } },
    { http: { ...http, changed: true } },
    { http: { ...http, pointer: '/a', equals: 1, changed: true } },
    { http: { ...http, etag: 'changed', pointer: '/a', changed: true } },
    { http: { ...http, method: 'HEAD', pointer: '/a', equals: 1 } },
    { http: { ...http, headers: { Host: 'internal' } } },
    { http: { ...http, headers: { accept: 'a\r\nb: c' } } },
    { http: { url: 'file:///etc/passwd' } },
    { command: { argv: [] } },
    { command: { argv: ['x\0'] } },
    { command: { argv: ['x'.repeat(4096), 'x'.repeat(4096), 'x'.repeat(4096), 'x'.repeat(4096)] } },
    { command: { argv: ['x'], timeout_seconds: 301 } },
    { command: { argv: ['x'], env: ['A=B'] } },
    { path: { path: 'a\0' } },
    { http, by_person: true },
  ];
  for (const check of wrong) assert.equal(checkSchema.safeParse(check).success, false, JSON.stringify(check));
  assert.equal(longestCheckMs(checkSchema.parse({ command: { argv: ['x'], timeout_seconds: 300 } })), 310_000);
  assert.equal(longestCheckMs(checkSchema.parse({ command: { argv: ['x'] } })), 40_000);
});
