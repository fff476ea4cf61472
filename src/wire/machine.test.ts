import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from './errors.ts';
import { machinePutSchema } from './machine.ts';
import { parseOrThrow } from './validate.ts';

function complaintAbout(body: unknown): string {
  try {
    parseOrThrow(machinePutSchema, body);
  } catch (error) {
    assert.ok(error instanceof ReveilleError, String(error));
    assert.equal(error.code, 'invalid_request');
    return error.message;
  }
  return 'accepted';
}

test('an address that is none is refused with its field, its value and what is right', () => {
  for (const url of ['nope', 'http://', '', 'ftp://host', 'http://[', '/path', 7]) {
    assert.equal(
      complaintAbout({ provider: 'http', spec: { url } }),
      `spec.url must be an http:// or https:// address (got ${JSON.stringify(url)})`,
    );
  }
  assert.equal(complaintAbout({ provider: 'http', spec: {} }), 'spec.url is required');
  assert.match(
    complaintAbout({ provider: 'http', spec: { url: 'http://me:secret@host/' } }),
    /^spec\.url must be an address without user, password, query or fragment/,
  );
  assert.equal(complaintAbout({ provider: 'http', spec: { url: 'http://127.0.0.1:8080/agent' } }), 'accepted');
});

test('a provider that is missing or unknown is said to be, with those that exist', () => {
  assert.equal(complaintAbout({ spec: {} }), 'provider is required');
  assert.equal(complaintAbout({ provider: 'x', spec: {} }), 'provider must be one of http, process (got "x")');
  assert.equal(complaintAbout({ provider: null }), 'provider must be one of http, process (got null)');
  assert.equal(complaintAbout('x'), 'must be an object');
});

test('a variable with a name that none can have is named, and its value is not repeated', () => {
  const spec = (env: unknown) => ({ provider: 'process', spec: { command: ['agent'], env } });
  assert.equal(complaintAbout(spec({ 'A=B': 'hunter2' })), 'spec.env.A=B must be a variable name');
  assert.equal(complaintAbout(spec({ '1A': 'hunter2' })), 'spec.env.1A must be a variable name');
  assert.equal(complaintAbout(spec({ A: 'x\0' })), 'spec.env.A must not contain a NUL character (got "x\\u0000")');
});
