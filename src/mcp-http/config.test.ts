import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary.ts';
import type { TrustedIssuer } from '../wire/remote-caller.ts';
import { parseMcpHttpConfig } from './config.ts';

const ISSUER = 'https://login.example.com/';
const parse = (issuers: unknown, more: Record<string, string> = {}) =>
  parseMcpHttpConfig({ ROUTER_MCP_ISSUERS: JSON.stringify(issuers), ...more });

test('without an issuer nothing is served', () => {
  assert.equal(parseMcpHttpConfig({}), undefined);
  assert.equal(parseMcpHttpConfig({ ROUTER_MCP_ISSUERS: '', ROUTER_MCP_ORIGINS: 'https://a.example' }), undefined);
  const own: TrustedIssuer = { issuer: 'http://127.0.0.1:8087/oauth', subjectClaim: 'sub', userOf: (user) => user };
  assert.deepEqual(parseMcpHttpConfig({}, [own])?.issuers, [own]);
});

test('an issuer maps its subjects to users, and its clients to names', () => {
  const users = { 'auth0|1': 'ada', 'auth0|2': '018F3B1C-0000-7000-8000-000000000001' };
  const clients = { 'https://chat.example/client.json': 'Chat' };
  const audiences = { chronos: 'api://reveille' };
  const { issuers, allow } = parse([{ issuer: ISSUER, users, clients, audiences, subject: 'oid' }])!;
  const [issuer] = issuers;
  assert.deepEqual([issuer!.issuer, issuer!.subjectClaim, issuer!.jwksUrl], [ISSUER, 'oid', undefined]);
  assert.equal(issuer!.userOf('auth0|1'), 'ada');
  for (const subject of ['ada', 'auth0|3', '__proto__', 'toString', ''])
    assert.equal(issuer!.userOf(subject), undefined);
  assert.equal(issuer!.clientNameOf!('https://chat.example/client.json'), 'Chat');
  assert.equal(issuer!.clientNameOf!('constructor'), undefined);
  assert.deepEqual(issuer!.audiencesOf!('chronos'), ['api://reveille']);
  assert.deepEqual(issuer!.audiencesOf!('intents'), []);
  assert.equal(allow, 'login.example.com:443');
});

test('a subject can be the id of its user', () => {
  const issuer = parse([{ issuer: ISSUER, users: 'subject' }])!.issuers[0]!;
  assert.equal(issuer.userOf('ada'), 'ada');
  for (const subject of ['a b', '../a', '.', '', 'x'.repeat(65)]) assert.equal(issuer.userOf(subject), undefined);
});

test('the list may be in a file', (t) => {
  const file = join(temporaryFolder(t), 'issuers.json');
  writeFileSync(file, JSON.stringify([{ issuer: ISSUER, users: 'subject' }]));
  assert.equal(parseMcpHttpConfig({ ROUTER_MCP_ISSUERS: file })!.issuers.length, 1);
  assert.throws(() => parseMcpHttpConfig({ ROUTER_MCP_ISSUERS: `${file}.x` }), /ROUTER_MCP_ISSUERS: .*ENOENT/);
});

test('only the hosts that the operator wrote may be private', () => {
  const { allow, origins } = parse(
    [{ issuer: 'http://127.0.0.1:7000', jwks: 'https://keys.lan:8443/jwks', users: 'subject' }],
    { ROUTER_MCP_ALLOW: 'other.lan', ROUTER_MCP_ORIGINS: 'https://inspector.example, http://localhost:6274' },
  )!;
  assert.equal(allow, '127.0.0.1:7000,keys.lan:8443,other.lan');
  assert.deepEqual(origins, ['https://inspector.example', 'http://localhost:6274']);
});

test('a wrong value is refused, and the message names it', () => {
  const entry = { issuer: ISSUER, users: 'subject' };
  const wrong: [unknown, RegExp][] = [
    [[], /ROUTER_MCP_ISSUERS must have at least 1 entry/],
    [{ issuer: ISSUER }, /ROUTER_MCP_ISSUERS must be a JSON list, or the absolute path/],
    [[{ ...entry, issuer: 'http://login.example.com' }], /ROUTER_MCP_ISSUERS\.0\.issuer must be an https:\/\/ address/],
    [[{ ...entry, issuer: 'https://login.example.com?x=1' }], /issuer must be an https:\/\/ address without a query/],
    [[{ ...entry, issuer: 'https://ada:secret@login.example.com' }], /issuer must be an https:\/\/ address/],
    [[{ ...entry, jwks: 'file:///etc/passwd' }], /jwks must be an https:\/\/ address/],
    [[{ issuer: ISSUER }], /users is required/],
    [[{ issuer: ISSUER, users: 'all' }], /users must be "subject", or an object/],
    [[{ ...entry, users: { one: 'two words' } }], /users/],
    [[{ ...entry, user: 'x' }], /user/],
    [[{ ...entry, audiences: { neo: 'x' } }], /audiences/],
    [[entry, entry], /names https:\/\/login\.example\.com\/ twice/],
  ];
  for (const [issuers, message] of wrong) assert.throws(() => parse(issuers), message);
  assert.throws(() => parseMcpHttpConfig({ ROUTER_MCP_ISSUERS: '[{]' }), /must be JSON, such as/);
  assert.throws(() => parse([entry], { ROUTER_MCP_ORIGINS: 'https://a.example/page' }), /ROUTER_MCP_ORIGINS must be/);
  assert.throws(() => parse([entry], { ROUTER_MCP_ORIGINS: 'null' }), /ROUTER_MCP_ORIGINS must be/);
});
