import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { releaseProblems } from '../../packaging/release.ts';

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

test('the release workflow runs existing scripts on a supported Node, and only publishing has an identity', () => {
  const { engines, scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const text = readFileSync(join(ROOT, '.github', 'workflows', 'release.yml'), 'utf8');
  for (const [, name] of text.matchAll(/npm run (?:--silent )?([\w:-]+)/g)) assert.ok(scripts[name!], name);
  for (const [, node] of text.matchAll(/node-version: (\d+)/g)) assert.equal(`>=${node}`, engines.node);
  const { permissions, jobs } = parse(text);
  assert.deepEqual(permissions, { contents: 'read' });
  const withIdentity = Object.entries<{ permissions?: object }>(jobs).filter(
    ([, job]) => 'id-token' in (job.permissions ?? {}),
  );
  assert.deepEqual(
    withIdentity.map(([name]) => name),
    ['publish'],
  );
  assert.doesNotMatch(text, /NPM_TOKEN|NODE_AUTH_TOKEN/);
});
