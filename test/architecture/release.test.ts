import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { releaseNotes, releaseProblems } from '../../packaging/release.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const changelog = (...versions: readonly (readonly [heading: string, part: string])[]) =>
  ['# Changelog', '## Unreleased', ...versions.map(([heading, part]) => `## ${heading}\n\n### ${part}\n\n- x`)].join(
    '\n\n',
  );
const FIRST = ['0.1.0 - 2026-01-01', 'Added'] as const;

test('a release is one version in the tag, the manifest and the changelog, with a date', () => {
  assert.deepEqual(releaseProblems('v0.1.0', '0.1.0', changelog(FIRST)), []);
  assert.deepEqual(releaseProblems('v0.2.0', '0.1.0', changelog(FIRST)), [
    'the tag is v0.2.0 and package.json says 0.1.0',
  ]);
  assert.deepEqual(releaseProblems('v0.2.0', '0.2.0', changelog(FIRST)), [
    'the latest version in CHANGELOG.md must be 0.2.0 (it is 0.1.0)',
  ]);
  assert.deepEqual(releaseProblems('v0.2.0', '0.2.0', changelog(['0.2.0', 'Added'], FIRST)), [
    'CHANGELOG.md must say when: ## 0.2.0 - YYYY-MM-DD',
  ]);
});

test('a version number matches its breaking changes: below 1.0.0 in its second part, from 1.0.0 on in its first', () => {
  const of = (version: string, part: string, from = '0.1.0') =>
    releaseProblems(
      `v${version}`,
      version,
      changelog([`${version} - 2026-02-01`, part], [`${from} - 2026-01-01`, 'Added']),
    );
  assert.deepEqual(of('0.2.0', 'Breaking'), []);
  assert.match(of('0.1.1', 'Breaking')[0]!, /breaks nothing/);
  assert.deepEqual(of('2.0.0', 'Breaking', '1.4.2'), []);
  assert.match(of('1.5.0', 'Breaking', '1.4.2')[0]!, /breaks nothing/);
  assert.match(of('1.4.3', 'Added', '1.4.2')[0]!, /allows only fixes/);
  assert.deepEqual(of('1.4.3', 'Fixed', '1.4.2'), []);
  assert.deepEqual(of('0.1.0', 'Fixed', '0.2.0'), ['0.1.0 does not follow 0.2.0']);
  assert.deepEqual(of('1.5.1', 'Fixed', '1.4.2'), ['1.5.1 does not follow 1.4.2']);
});

test('the notes of a release are its section, with links that work elsewhere', () => {
  const text =
    '# Changelog\n\n## 0.2.0 - 2026-02-01\n\n### Added\n\n- [a](docs/a.md), [b](https://b.example)\n\n## 0.1.0 - 2026-01-01\n\n- x\n';
  assert.equal(
    releaseNotes('0.2.0', text, 'https://github.com/some-body/clock'),
    '### Added\n\n- [a](https://github.com/some-body/clock/blob/v0.2.0/docs/a.md), [b](https://b.example)\n',
  );
  assert.equal(releaseNotes('0.1.0', text, undefined), '- x\n');
  assert.throws(() => releaseNotes('0.3.0', text, undefined), /does not have 0\.3\.0/);
});

type Job = { permissions?: Record<string, string>; 'timeout-minutes'?: number; environment?: string };
type Workflow = { on: Record<string, unknown>; permissions: object; jobs: Record<string, Job> };
const workflows = globSync('.github/workflows/*.yml', { cwd: ROOT }).map((name) => {
  const text = readFileSync(join(ROOT, name), 'utf8');
  return { name, text, ...(parse(text) as Workflow) };
});

test('workflows run existing scripts on a supported Node, with pinned actions and a time limit', () => {
  const { engines, scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  assert.equal(workflows.length, 2);
  for (const { name, text, permissions, jobs } of workflows) {
    for (const [, script] of text.matchAll(/npm run (?:--silent )?([\w:-]+)/g)) assert.ok(scripts[script!], script);
    for (const [, node] of text.matchAll(/node-version: (\d+)/g)) assert.equal(`>=${node}`, engines.node);
    for (const [line] of text.matchAll(/^.*\buses:.*$/gm))
      assert.match(line, /uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/, name);
    assert.deepEqual(permissions, { contents: 'read' });
    for (const job of Object.values(jobs)) assert.ok(job['timeout-minutes'], name);
    assert.doesNotMatch(text, /NPM_TOKEN|NODE_AUTH_TOKEN/);
  }
});

test('a pull request runs without secrets and rights, and only publishing jobs have more', () => {
  const rights = workflows.flatMap(({ name, on, jobs }) =>
    Object.entries(jobs).map(([job, { permissions = {}, environment }]) => {
      assert.ok(!('pull_request_target' in on), name);
      const isForReleases = !('pull_request' in on);
      return {
        job,
        more: Object.keys(permissions).filter((one) => permissions[one] === 'write'),
        environment,
        isForReleases,
      };
    }),
  );
  for (const { job, more, environment, isForReleases } of rights)
    if (more.length > 0) assert.deepEqual([environment, isForReleases], ['npm', true], job);
  assert.deepEqual(
    rights.map(({ job, more }) => [job, more.toSorted()]),
    [
      ['test', []],
      ['package', []],
      ['publish', ['attestations', 'contents', 'id-token']],
    ],
  );
  const pulls = workflows.find(({ on }) => 'pull_request' in on)!;
  assert.doesNotMatch(pulls.text, /secrets\.|github\.event\.pull_request\.(?:title|body|head\.ref)/);
});
