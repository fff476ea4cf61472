import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReveilleError } from '../../wire/errors.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { PROVIDERS } from '../providers/descriptors.ts';
import { machinePutSchema } from './machine-schema.ts';

function messageFor(body: unknown): string {
  try {
    parseOrThrow(machinePutSchema, body);
  } catch (error) {
    assert.ok(error instanceof ReveilleError, String(error));
    assert.equal(error.code, 'invalid_request');
    return error.message;
  }
  return 'accepted';
}

test('an invalid address is rejected with its field, its value and the valid form', () => {
  for (const url of ['nope', 'http://', '', 'ftp://host', 'http://[', '/path', 7]) {
    assert.equal(
      messageFor({ provider: 'http', spec: { url } }),
      `spec.url must be an http:// or https:// address (got ${JSON.stringify(url)})`,
    );
  }
  assert.equal(messageFor({ provider: 'http', spec: {} }), 'spec.url is required');
  assert.match(
    messageFor({ provider: 'http', spec: { url: 'http://me:secret@host/' } }),
    /^spec\.url must be an address without user, password, query or fragment/,
  );
  assert.equal(messageFor({ provider: 'http', spec: { url: 'http://127.0.0.1:8080/agent' } }), 'accepted');
});

const NAMES = PROVIDERS.map(({ name }) => name).join(', ');

test('a missing or unknown provider is rejected with the list of providers', () => {
  assert.equal(messageFor({ spec: {} }), 'provider is required');
  assert.equal(messageFor({ provider: 'x', spec: {} }), `provider must be one of ${NAMES} (got "x")`);
  assert.equal(messageFor({ provider: null }), `provider must be one of ${NAMES} (got null)`);
  assert.equal(messageFor('x'), 'must be an object');
});

test('an invalid variable name is reported, and its value is not repeated', () => {
  const spec = (env: unknown) => ({ provider: 'process', spec: { command: ['agent'], env } });
  assert.equal(messageFor(spec({ 'A=B': 'hunter2' })), 'spec.env.A=B must be a variable name');
  assert.equal(messageFor(spec({ '1A': 'hunter2' })), 'spec.env.1A must be a variable name');
  assert.equal(messageFor(spec({ A: 'x\0' })), 'spec.env.A must not contain a NUL character (got "x\\u0000")');
});

test('containers and Fly machines have the names of their platforms', () => {
  const docker = (spec: object) => messageFor({ provider: 'docker', spec: { container: 'neo', port: 8080, ...spec } });
  assert.equal(docker({ socket: '/run/docker.sock', sleep: 'pause', health_path: '/up' }), 'accepted');
  assert.equal(docker({ port: undefined }), 'spec.port is required');
  assert.match(
    docker({ container: '../etc' }),
    /^spec\.container must be the name or id of a container: .*got "\.\.\/etc"/,
  );
  assert.match(docker({ container: 'a/b?c' }), /^spec\.container must be/);
  assert.match(docker({ socket: 'docker.sock' }), /^spec\.socket must begin with "\/" \(got "docker\.sock"\)$/);
  assert.match(docker({ sleep: 'suspend' }), /^spec\.sleep must be one of stop, pause/);
  assert.match(docker({ image: 'neo' }), /^unknown field "spec\.image"/);
  const fly = (spec: object) =>
    messageFor({ provider: 'fly', spec: { app: 'my-agents', machine_id: '148ed1234567', ...spec } });
  assert.equal(fly({ port: 9, sleep: 'stop', lease_nonce: '5c35f65c9f95' }), 'accepted');
  assert.match(fly({ app: 'My App' }), /^spec\.app must be the name of a Fly app: a-z 0-9 -/);
  assert.match(fly({ machine_id: 'a/../b' }), /^spec\.machine_id must be the id of a Fly machine/);
  assert.match(fly({ machine_id: undefined }), /^spec\.machine_id is required$/);
  assert.match(fly({ lease_nonce: 'a\r\nx: y' }), /^spec\.lease_nonce must be 1 to 128 visible ASCII/);
});

test('the limits of a process are whole numbers within bounds', () => {
  const limits = (given: object) => messageFor({ provider: 'process', spec: { command: ['agent'], limits: given } });
  assert.equal(limits({ memory_mb: 512, processes: 20, open_files: 1024, niceness: 10 }), 'accepted');
  assert.match(limits({ memory_mb: 1 }), /^spec\.limits\.memory_mb must be at least 16 \(got 1\)$/);
  assert.match(limits({ niceness: 20 }), /^spec\.limits\.niceness must be at most 19 \(got 20\)$/);
  assert.match(limits({ cpu: 1 }), /^unknown field "spec\.limits\.cpu"/);
});

test('a token that is no valid header, variable or key is rejected and not repeated', () => {
  const put = (token: string) => {
    try {
      parseOrThrow(machinePutSchema, { provider: 'http', spec: { url: 'http://x' }, token }, ['token']);
    } catch (error) {
      return (error as Error).message;
    }
    return 'accepted';
  };
  const secret = 'canary-of-the-tests-';
  for (const ending of ['\r\nx: y', '\0', ' z', '\u{fc}', '\u{d800}'])
    assert.equal(put(`${secret}${ending}`), 'token must be visible ASCII without spaces', JSON.stringify(ending));
  assert.equal(put('whsec_!!!!!!!!!!!!!!!!'), 'token must be base64 after whsec_');
  for (const token of [`${secret}!~`, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']) assert.equal(put(token), 'accepted');
});

test('a token may begin with a part of whsec_, and after whsec_ must be base64', () => {
  const rest = 'a-b.c~'.repeat(4);
  const isTaken = (token: string) =>
    machinePutSchema.safeParse({ provider: 'http', spec: { url: 'http://127.0.0.1:1' }, token }).success;
  for (const start of ['', 'w', 'wh', 'whs', 'whse', 'whsec', 'whsecx', 'whsex_', 'Whsec_', 'xwhsec_'])
    assert.ok(isTaken(start + rest), start);
  const taken = ['QUJD'.repeat(5), `${'QUJD'.repeat(5)}QQ==`].map((base64) => isTaken(`whsec_${base64}`));
  const refused = [rest, `${'QUJD'.repeat(5)}===`, `${'QUJD'.repeat(5)}=A`].map((text) => isTaken(`whsec_${text}`));
  assert.deepEqual(
    [taken, refused],
    [
      [true, true],
      [false, false, false],
    ],
  );
});
