import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { ReveilleError } from '../../wire/errors.ts';
import type { PolicyRequest } from './policy.ts';
import { parsePolicy, readPolicy } from './read-policy.ts';

/** Every problem of a text. */
function refused(text: string): string[] {
  try {
    parsePolicy(text, 'p.yaml');
  } catch (error) {
    assert.ok(error instanceof ReveilleError && error.code === 'invalid_request', String(error));
    return error.message.split('\n');
  }
  return [];
}

const file = (...lines: string[]) => ['version: 1', ...lines].join('\n');

describe('a policy is refused', () => {
  test('with every problem and its position', () => {
    const text = file(
      'rules:',
      '  - name: first',
      '    tool: ledger',
      '    efect: allow',
      '  - name: second',
      '    tool: ledger/*',
      '    effect: deny',
      '    unattended: no',
      '    args: {/to: {equals: 0123}, /x: {matches: "a(b"}, y: {glob: a}, /z: {}}',
      'approval_timeout: 1d',
      'timezone: BST',
    );
    assert.deepEqual(refused(text), [
      'p.yaml:3:5: rules.0.effect is required',
      'p.yaml:4:11: rules.0.tool must be <alias>/<tool>, such as ledger/transfer or ledger/* (got "ledger")',
      'p.yaml:5:5: unknown field "rules.0.efect"; allowed here: name, tool, args, users, effect, unattended, limits',
      'p.yaml:9:17: no has different meanings in different YAML parsers; write true or false, or put it in quotes',
      'p.yaml:10:26: the number 0123 is not supported, because YAML reads it as 123; put it in quotes to keep it as written',
      'p.yaml:10:47: rules.1.args./x.matches must be a regular expression; it has a ( without its ) (got "a(b")',
      'p.yaml:10:55: rules.1.args.y must be a JSON Pointer such as /to',
      'p.yaml:10:73: rules.1.args./z must have one of equals, one_of, glob, matches, range (got {})',
      'p.yaml:11:19: approval_timeout must be an ISO 8601 duration from PT1S to P365D, such as PT24H (got "1d")',
      'p.yaml:12:11: timezone must be an IANA time zone such as Europe/Berlin, or UTC (got "BST")',
    ]);
  });

  test('for misleading YAML', () => {
    const traps: [string, RegExp][] = [
      [file('version: 1'), /^p\.yaml:2:1: Map keys must be unique/],
      ['version: 1\n\tdefault: ask', /^p\.yaml:2:1: Tabs/],
      ['%YAML 1.1\n---\nversion: 1', /must be YAML 1\.2/],
      [file('default: &a ask', 'default_natural: *a'), /^p\.yaml:2:13: anchors/],
      ['version: !!int "1"', /^p\.yaml:1:16: the tag/],
      [file('---', 'version: 1'), /^p\.yaml:2:1: must be one document/],
      [file('__proto__: {default: allow}'), /^p\.yaml:2:1: unknown field "__proto__"/],
      [file('default: al\u200blow'), /^p\.yaml:2:12: contains the invisible character U\+200B; write "\\u200b"/m],
      [file('# \u202e comment'), /^p\.yaml:2:3: contains the invisible character U\+202E/],
      [file('default:\u00a0ask'), /invisible character U\+00A0/],
      [file('quiet_hours: [{from: 8:00, to: 9:00}]'), /^p\.yaml:2:22: quiet_hours\.0\.from must be a time of day/],
      [file('quiet_hours: [{from: "08:00", to: "08:00"}]'), /must differ from from/],
      [file('approval_timeout: 24'), /approval_timeout must be a string \(got 24\)/],
      [file('default: Allow'), /default must be one of allow, ask, deny \(got "Allow"\)/],
      [file('1: 2'), /the field name 1 is not a text/],
      ['version: "1"', /version must be 1/],
      ['', /the file must be an object/],
      ['{{{', /p\.yaml:1/],
      [file(`rules: ${'['.repeat(5000)}`), /^p\.yaml:2:\d+: is nested more than 20 deep$/],
      [
        file('rules: [{name: a, tool: a/b, effect: deny, args: {/x: {glbo: b}}}]'),
        /^p\.yaml:2:56: unknown field "rules\.0\.args\.\/x\.glbo"/m,
      ],
      [file('rules: [{name: default, tool: a/b, effect: ask}]'), /must be another name/],
      [
        file('rules: [{name: a, tool: a/b, effect: ask}, {name: a, tool: a/c, effect: ask}]'),
        /rules\.1\.name must differ from the name of rule 1/,
      ],
    ];
    for (const [text, problem] of traps) assert.match(refused(text).join('\n'), problem, JSON.stringify(text));
  });

  test('for contradictory limits and patterns', () => {
    const one = (rest: string) => file(`rules: [{name: a, tool: a/b, ${rest}}]`);
    const wrong: [string, RegExp][] = [
      ['effect: allow, limits: {per_day: {EUR: -1}}', /per_day\.EUR must be an amount.*\(got -1\)/],
      ['effect: allow, limits: {per_day: {EUR: 1_000}}', /must be an amount.*\(got "1_000"\)/],
      ['effect: allow, limits: {per_day: {EUR: .inf}}', /the number \.inf is not supported/],
      ['effect: allow, limits: {per_day: {EUR: 12345678901234567890}}', /it has more digits than a number can represent/],
      ['effect: allow, limits: {per_call: {EUR: 1}, per_day: {USD: 1}}', /per_call\.EUR has no counterpart/],
      ['effect: allow, limits: {}', /must have per_call or per_day/],
      ['effect: deny, limits: {per_day: {EUR: 1}}', /limits makes no sense where the effect is deny/],
      ['effect: ask, unattended: true', /unattended makes sense only where the effect is allow/],
      ['effect: allow, args: {/a: {equals: x, optional: true}}', /optional makes no sense where the effect is allow/],
      ['effect: deny, args: {/a: {one_of: [x, 1]}}', /must be all texts or all numbers/],
      ['effect: deny, args: {/a: {equals: null}}', /must be a text, a number, true or false/],
      ['effect: deny, args: {/a: {range: {min: 2, max: 1}}}', /max must not be less than min/],
      ['effect: deny, args: {/a: {range: {min: 1.}}}', /the number 1\. is not supported/],
    ];
    for (const [rest, problem] of wrong) assert.match(refused(one(rest)).join('\n'), problem, rest);
  });

  test('for any wrong content, with a readable message', () => {
    const piece = fc.constantFrom(
      'version: 1',
      'rules:',
      '- ',
      '\n',
      '  ',
      '{',
      '}',
      '[',
      ': ',
      '*',
      '&a',
      'effect',
      'deny',
      '"',
      "'",
      '\t',
      '|',
      '\u0000',
      '<<',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(piece, { maxLength: 20 }).map((pieces) => pieces.join('')),
        ),
        (text) => {
          for (const problem of refused(text)) assert.match(problem, /^p\.yaml:\d+:\d+: /);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('a policy file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-policy-'));
  const written = (name: string, bytes: string | Uint8Array) => {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    return path;
  };
  test.after(() => rmSync(folder, { recursive: true, force: true }));

  test('has the hash of its bytes, a byte order mark included', () => {
    for (const text of ['version: 1\n', '\ufeffversion: 1\r\ndefault: deny\r\n']) {
      const policy = readPolicy(written('p.yaml', text));
      assert.equal(policy.sha256, createHash('sha256').update(Buffer.from(text)).digest('hex'));
    }
    assert.equal(readPolicy(written('p.yaml', '\ufeffversion: 1\ndefault: deny')).file.default, 'deny');
  });

  test('that is missing, not text or too large is refused by its name', () => {
    assert.throws(() => readPolicy(join(folder, 'none.yaml')), /none\.yaml: the policy cannot be read: ENOENT/);
    assert.throws(() => readPolicy(folder), /cannot be read: EISDIR/);
    assert.throws(() => readPolicy(written('b.yaml', Uint8Array.of(0xff, 0xfe))), /b\.yaml: the policy must be UTF-8/);
    assert.throws(() => readPolicy(written('c.yaml', `version: 1 #${' '.repeat(300_000)}`)), /at most 262144 bytes/);
  });
});

test('covered rules and a missing time zone cause warnings', () => {
  const text = file(
    'rules:',
    '  - {name: a, tool: ledger/transfer, effect: allow, users: [x], limits: {per_day: {EUR: 1}}}',
    '  - {name: b, tool: "ledger/*", effect: deny}',
    '  - {name: c, tool: "mail/*", effect: deny, args: {/to: {equals: x}}}',
    '  - {name: d, tool: mail/send, effect: ask, args: {/to: {equals: x}, /cc: {equals: y}}}',
    '  - {name: e, tool: mail/send, effect: allow}',
    '  - {name: f, tool: bank/pay, effect: ask}',
    '  - {name: g, tool: bank/pay, effect: allow}',
  );
  assert.deepEqual(parsePolicy(text, 'p.yaml').warnings, [
    'p.yaml:1:1: timezone is missing, so days and quiet hours use UTC; set one such as Europe/Berlin',
    'p.yaml:3:12: the rule "a" has no effect: "b" denies every call that matches it',
    'p.yaml:6:12: the rule "d" has no effect: "c" denies every call that matches it',
    'p.yaml:9:12: the rule "g" has no effect: "f" asks about every call that matches it',
  ]);
});

test('the examples of docs/reference/policies.md cause no warning and decide as documented', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', '..', 'docs', 'reference', 'policies.md'), 'utf8');
  const parts = page.split('```yaml\n').slice(1);
  assert.ok(parts.length >= 2);
  for (const part of parts) {
    const [yaml, rest] = part.split('```\n', 2) as [string, string];
    const policy = parsePolicy(yaml, 'docs/reference/policies.md');
    assert.deepEqual(policy.warnings, []);
    const rows = [...rest.split('\n## ')[0]!.matchAll(/^\| `(\S+) (\{.*\})` \| (\d\d:\d\d)(.*?) \| (\w+) \|$/gm)];
    assert.ok(rows.length >= 3);
    for (const [row, tool, json, time, scene, effect] of rows) {
      const args = JSON.parse(json!) as Record<string, string>;
      const now = Date.parse(`2026-06-15T${time}:00+02:00`);
      const spent = /spent (\S+) (\w+)/.exec(scene!);
      const request: PolicyRequest = {
        user: 'alice',
        tool: tool!,
        args,
        surface: tool === 'ledger/balance' ? 'natural' : 'escalate',
        amount: args.amount === undefined ? undefined : { value: args.amount, currency: args.currency! },
        unattended: scene!.includes('unattended'),
        spends: spent ? [{ tool: tool!, value: spent[1]!, currency: spent[2]!, at: now }] : [],
        now,
      };
      assert.equal(policy.decide(request).effect, effect, row);
    }
  }
});
