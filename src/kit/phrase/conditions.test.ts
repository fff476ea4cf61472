import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { GivenParts, PartName } from './condition-parts.ts';
import { conditionText, waitText } from './condition-text.ts';
import { type Conditions, conditionsOf, durationText, givenPartsOf, scalarText } from './conditions.ts';

const ID = '018f3b1c-0000-7000-8000-000000000001';
const URL = 'https://example.com/feed';

const read = (given: GivenParts, earlier?: Conditions) =>
  conditionsOf(given, { nameOf: (name: PartName) => `--${name}`, refuse: (message) => new Error(message), earlier });

describe('parts become the fields of an alarm, and the fields the same parts', () => {
  const cases: [given: GivenParts, fields: Conditions, text: string][] = [
    [
      { 'check-url': URL, 'check-changed': 'on', 'max-skips': '5', 'wake-at-least': '1 d' },
      { check: { http: { url: URL, etag: 'changed' }, max_skips: 5, wake_at_least_every: 'PT24H' } },
      `${URL} (changed), wakes after 5 skips, wakes at least every 1 d`,
    ],
    [
      { 'check-url': URL, 'check-pointer': '/state', 'check-equals': 'closed', 'check-on-error': 'skip' },
      { check: { http: { url: URL, pointer: '/state', equals: 'closed' }, on_error: 'skip' } },
      `${URL} (/state is closed), does not wake when that fails`,
    ],
    [
      { 'check-url': URL, 'check-pointer': '/n', 'check-changed': 'on', 'check-status': '200' },
      { check: { http: { url: URL, status: 200, pointer: '/n', changed: true } } },
      `${URL} (status 200, /n changed)`,
    ],
    [
      { 'check-command': "./x.sh 'a b' c", 'check-network': 'on', 'check-env': 'A, B', 'check-timeout': '1 min 30 s' },
      { check: { command: { argv: ['./x.sh', 'a b', 'c'], network: true, env: ['A', 'B'], timeout_seconds: 90 } } },
      "./x.sh 'a b' c",
    ],
    [{ 'check-path': 'inbox/' }, { check: { path: { path: 'inbox/' } } }, 'inbox/ (changed)'],
    [
      { on: 'webhook:github', filter: '/body/action=opened', 'quiet-for': '30 s', repeat: 'on' },
      {
        event: {
          ...({ source: 'webhook', verify: 'github', repeat: 'always', quiet_for: 'PT30S' } as const),
          filter: { pointer: '/body/action', equals: 'opened' },
        },
      },
      'webhook (github), if /body/action is opened, once quiet for 30 s, repeats',
    ],
    [
      { on: 'mcp:mail/inbox/new', 'at-most-every': '5 min', batch: '50', deadline: '2 h' },
      {
        event: {
          ...({ source: 'mcp', server: 'mail', name: 'inbox/new', at_most_every: 'PT5M' } as const),
          ...{ batch_up_to: 50, deadline: 'PT2H' },
        },
      },
      'inbox/new of the MCP server mail, at most every 5 min, up to 50 in one wake, fires after 2 h without one',
    ],
    [{ on: 'file:inbox/' }, { event: { source: 'file', path: 'inbox/' } }, 'changes of inbox/'],
    [{ on: 'process:4711' }, { event: { source: 'process', pid: 4711 } }, 'the exit of process 4711'],
    [
      { after: ID, 'after-outcome': 'failed', delay: '10 min' },
      { after: { alarm: ID, on: 'failed', delay_seconds: 600 } },
      'a failed turn of "nightly", 10 min later',
    ],
    [
      { 'expect-every': '1 d', grace: '1 h' },
      { expect: { every: 'PT24H', grace: 'PT1H' } },
      'an event every 1 d (grace 1 h)',
    ],
    [
      { run: './backup.sh --all', 'run-timeout': '1 h' },
      { run: { argv: ['./backup.sh', '--all'], timeout_seconds: 3600 } },
      './backup.sh --all, at most 1 h',
    ],
  ];
  for (const [given, fields, text] of cases)
    test(Object.keys(given).join(', '), () => {
      const found = read(given);
      assert.deepEqual(found, fields);
      assert.deepEqual(givenPartsOf(found), given);
      const [field] = Object.keys(fields) as (keyof Conditions)[];
      assert.equal(
        conditionText(field!, found[field!]!, () => '"nightly"'),
        text,
      );
    });
});

test('an alarm that waits says for what, on one line', () => {
  const nameOf = () => '"nightly"';
  const after = { alarm: ID };
  const expect = { every: 'P1D' };
  assert.equal(waitText({ after }, nameOf), 'after the turn of "nightly"');
  assert.equal(waitText({ after, expect }, nameOf), 'waits for the turn of "nightly", expects one every 1 d');
  assert.equal(waitText({ expect }), 'expects a call of its address every 1 d');
  assert.equal(waitText({ event: { source: 'webhook' } }), 'waits for webhook');
});

test('an error names the part, the value and the remedy', () => {
  const cases: [given: GivenParts, message: string][] = [
    [{ 'check-status': '200' }, '--check-status needs --check-url; give it, or omit it'],
    [{ 'max-skips': '3' }, '--max-skips needs --check-url or --check-command or --check-path; give it, or omit it'],
    [{ 'check-url': URL, 'check-path': 'x' }, '--check-url and --check-path exclude each other; give one of them'],
    [
      { 'check-url': URL, 'check-pointer': '/a' },
      '--check-pointer needs --check-equals or --check-changed, which judges the value',
    ],
    [{ 'check-url': 'ftp://x' }, '--check-url must be an http or https address (got "ftp://x")'],
    [
      { 'check-url': URL, 'check-pointer': 'a', 'check-changed': 'on' },
      '--check-pointer must be a JSON Pointer of RFC 6901, such as /pull_request/state (got "a")',
    ],
    [{ 'check-url': URL, 'check-status': '99' }, '--check-status must be a whole number from 100 to 599 (got "99")'],
    [{ 'check-command': './x', 'check-timeout': '9m' }, '--check-timeout must be at most 5 min (got "9m")'],
    [
      { 'check-command': 'make && ls' },
      `--check-command is run without a shell, so & has no meaning: put it in quotes, or write sh -c '…' (got "make && ls")`,
    ],
    [{ run: `./x "a` }, '--run has a " without its counterpart (got "./x \\"a")'],
    [{ run: '' }, '--run must name a program (got "")'],
    [{ check: '[]' }, '--check must be a JSON object (got "[]")'],
    [{ check: '{"http":{"url":"https://x","status":1}}' }, '--check: http.status must be at least 100 (got 1)'],
    [{ check: '{}', 'check-url': URL }, '--check and --check-url exclude each other; give one of them'],
    [{ on: 'smoke' }, '--on must be webhook, github, file:PATH, process:PID or mcp:SERVER/EVENT (got "smoke")'],
    [{ on: 'process:1' }, '--on: pid must be at least 2 (got 1)'],
    [{ on: 'webhook', filter: 'a' }, '--filter must be a JSON Pointer with a value, such as /action=opened (got "a")'],
    [
      { on: 'webhook', 'quiet-for': '3' },
      '--quiet-for must be a duration in whole seconds, such as 30s, 10m, 2h or 1d (got "3")',
    ],
    [{ on: 'webhook', 'quiet-for': '30d' }, '--quiet-for must be a duration from 1 s to 1 d (got "30d")'],
    [{ on: 'webhook', after: ID }, '--on and --after exclude each other; give one of them'],
    [
      { on: 'webhook', deadline: '1h', 'expect-every': '1h' },
      '--deadline and --expect-every exclude each other; give one of them',
    ],
    [{ after: ID, 'after-outcome': 'ok' }, '--after-outcome must be one of finished, failed, missed, any (got "ok")'],
    [{ grace: '1h' }, '--grace needs --expect-every; give it, or omit it'],
  ];
  for (const [given, message] of cases) assert.throws(() => read(given), { message }, JSON.stringify(given));
});

test('an edit keeps members without a part, as long as the address or the source stays', () => {
  const http = { url: URL, method: 'HEAD' as const, headers: { authorization: 'Bearer x' } };
  const earlier: Conditions = { check: { http }, event: { source: 'file', path: 'inbox/', look_every: 'PT1M' } };
  const same = read({ 'check-url': URL, 'check-status': '200', on: 'file:inbox/', batch: '5' }, earlier);
  assert.deepEqual(same.check, { http: { ...http, status: 200 } });
  assert.deepEqual(same.event, { ...earlier.event, batch_up_to: 5 });
  const other = read({ 'check-url': 'https://elsewhere.example', on: 'file:outbox/' }, earlier);
  assert.deepEqual(other, {
    check: { http: { url: 'https://elsewhere.example' } },
    event: { source: 'file', path: 'outbox/' },
  });
});

test('a value keeps its type: text that looks like another value is in quotes', () => {
  const scalar = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.constantFrom('1', 'true', '"'),
  );
  fc.assert(
    fc.property(scalar, (equals) => {
      const event = { source: 'webhook' as const, filter: { pointer: '/a', equals } };
      assert.deepEqual(read(givenPartsOf({ event })), { event });
    }),
  );
  assert.deepEqual(['closed', '1', 1, null, 'null'].map(scalarText), ['closed', '"1"', '1', 'null', '"null"']);
  const long = read({ on: 'webhook', filter: '/a=12345678901234567890' });
  assert.deepEqual(long.event?.filter, { pointer: '/a', equals: '12345678901234567890' });
});

test('a duration has all its units', () => {
  assert.deepEqual(['PT90061S', 'P2W', 'PT0S', 'PT36H'].map(durationText), [
    ...['1 d 1 h 1 min 1 s', '14 d', '0 s', '1 d 12 h'],
  ]);
});
