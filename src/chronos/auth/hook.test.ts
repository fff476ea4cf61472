import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { webhookSigner } from '../../kit/identity/webhook-signature.ts';
import type { EventSource, Expect } from '../../wire/conditions.ts';
import { hookPathOf, hookSchemeOf, newHookSecret, readHookId } from '../alarm/hook.ts';
import { encodeOptions } from '../alarm/options.ts';
import { eventOf, isVerified } from './hook.ts';

const NOW = Date.UTC(2026, 10, 27, 9);
const SECRET = newHookSecret();

const alarmWith = (event?: EventSource, expect?: Expect) => ({
  ...{ id: '018f3b1c-0000-7000-8000-000000000001', owner: 'ada', kind: 'event' as const },
  options: encodeOptions({ event, expect, hook_secret: SECRET }),
});
const STANDARD = alarmWith({ source: 'webhook' });
const GITHUB = alarmWith({ source: 'webhook', verify: 'github' });
const PATH = alarmWith({ source: 'webhook', verify: 'path' });
const HEARTBEAT = alarmWith(undefined, { every: 'PT1H' });

const nameOf = (alarm: typeof STANDARD) => readHookId(hookPathOf(alarm)!.slice('/hooks/'.length))!;
const request = (body: string, headers: Record<string, string | undefined> = {}, nowMs = NOW) => ({
  ...{ body: Buffer.from(body), headers, nowMs },
});
const signed = (body: string, { secret = SECRET, at = NOW, id = 'msg_1' } = {}) => ({
  ...webhookSigner(secret)({ id, timestampSeconds: at / 1000, body }),
});
const github = (body: string, secret = SECRET) => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
  'x-github-event': 'pull_request',
  'x-github-delivery': 'd-1',
});

test('an address names its alarm, and only a secret address has a token', () => {
  for (const alarm of [STANDARD, GITHUB, PATH, HEARTBEAT]) {
    const { owner, alarmId, token } = nameOf(alarm);
    assert.deepEqual([owner, alarmId], ['ada', alarm.id]);
    assert.equal(token !== undefined, alarm === PATH || alarm === HEARTBEAT);
  }
  assert.equal(hookPathOf(alarmWith({ source: 'file', path: '/inbox' })), undefined);
  assert.equal(hookSchemeOf({ kind: 'once', options: null }), undefined);
  const wrong = ['', 'x', `${STANDARD.id}`, `${STANDARD.id}.`, `${STANDARD.id}.${'A'.repeat(300)}`, '../v1.YWRh'];
  for (const id of [...wrong, `${STANDARD.id}.YWRh.short`, `${STANDARD.id.toUpperCase()}.YWRh`])
    assert.equal(readHookId(id), undefined, id);
});

test('a sender without the secret is refused', () => {
  const body = '{"state":"open"}';
  const others = { secret: newHookSecret() };
  const verdicts: [
    alarm: typeof STANDARD,
    headers: Record<string, string | undefined>,
    expected: boolean,
    body?: string,
  ][] = [
    [STANDARD, signed(body), true],
    [STANDARD, signed(body, others), false],
    [STANDARD, signed(body), false, '{"state":"closed"}'],
    [STANDARD, signed(body, { at: NOW - 400_000 }), false],
    [STANDARD, signed(body, { at: NOW + 400_000 }), false],
    [STANDARD, { ...signed(body), 'webhook-id': 'msg_2' }, false],
    [STANDARD, github(body), false],
    [STANDARD, {}, false],
    [GITHUB, github(body), true],
    [GITHUB, github(body, others.secret), false],
    [GITHUB, github(body), false, `${body} `],
    [GITHUB, { 'x-hub-signature-256': 'sha256=' }, false],
    [GITHUB, { 'x-hub-signature': github(body)['x-hub-signature-256'] }, false],
    [GITHUB, signed(body), false],
    [GITHUB, {}, false],
    [PATH, {}, true],
    [HEARTBEAT, {}, true],
  ];
  for (const [alarm, headers, expected, sent = body] of verdicts)
    assert.equal(isVerified(alarm, nameOf(alarm), request(sent, headers)), expected, JSON.stringify([headers, sent]));
  const { token, ...name } = nameOf(PATH);
  assert.equal(isVerified(PATH, { ...name, token: undefined }, request(body)), false);
  assert.equal(
    isVerified(PATH, { ...name, token: `${token!.slice(0, -1)}${token!.endsWith('0') ? '1' : '0'}` }, request(body)),
    false,
  );
  // The token of an address neither signs, nor opens an address of another scheme.
  assert.equal(isVerified(STANDARD, { ...name, token }, request(body)), false);
  assert.equal(isVerified(STANDARD, nameOf(STANDARD), request(body, signed(body, { secret: token! }))), false);
  const unset = { kind: 'event' as const, options: encodeOptions({ event: { source: 'webhook' } }) };
  assert.equal(isVerified(unset, name as never, request(body, signed(body))), false);
});

test('the id of an event is that of what was signed', () => {
  const idOf = (alarm: typeof STANDARD, headers: Record<string, string | undefined>, body = '{}') =>
    eventOf(alarm, request(body, headers))!.id;
  assert.equal(idOf(STANDARD, signed('{}')), idOf(STANDARD, signed('{}', { at: NOW + 1000 })));
  assert.notEqual(idOf(STANDARD, signed('{}')), idOf(STANDARD, signed('{}', { id: 'msg_2' })));
  assert.equal(idOf(GITHUB, github('{}')), idOf(GITHUB, { ...github('{}'), 'x-github-delivery': 'replayed' }));
  assert.notEqual(idOf(PATH, {}), idOf(PATH, {}));
  assert.equal(idOf(PATH, { 'idempotency-key': 'a' }), idOf(PATH, { 'idempotency-key': 'a' }));
});

test('the data of an event is its body, digit for digit', () => {
  const dataOf = (alarm: typeof STANDARD, body: string, headers = {}) => eventOf(alarm, request(body, headers))?.data;
  const body = '{"id":12345678901234567890, "v":1.0}';
  assert.equal(dataOf(STANDARD, body), body);
  assert.equal(dataOf(PATH, 'backup done'), '"backup done"');
  assert.equal(dataOf(PATH, ''), '""');
  assert.equal(dataOf(GITHUB, body, github(body)), `{"event":"pull_request","delivery":"d-1","body":${body}}`);
  assert.equal(dataOf(GITHUB, body), `{"body":${body}}`);
  const deep = `${'['.repeat(100)}${']'.repeat(100)}`;
  assert.equal(dataOf(STANDARD, deep), JSON.stringify(deep));
});

test('a filter excludes events with another value', () => {
  const opened = alarmWith({
    source: 'webhook',
    verify: 'github',
    filter: { pointer: '/body/action', equals: 'opened' },
  });
  const eventIn = (body: string) => eventOf(opened, request(body, github(body)));
  assert.ok(eventIn('{"action":"opened"}'));
  for (const body of ['{"action":"closed"}', '{}', 'opened', '']) assert.equal(eventIn(body), undefined, body);
});
