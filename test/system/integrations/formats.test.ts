import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { parse as parseToml } from 'smol-toml';
import { parse as parseYaml } from 'yaml';
import type { z } from 'zod';
import * as formats from '../../../integrations/formats.ts';
import { BUNDLES, bundleManifest, integrationFiles, registryEntry } from '../../../integrations/generate.ts';
import { packageManifest, ROOT } from '../../../packaging/manifest.ts';
import { VERSION } from '../../../src/wire/version.ts';

const read = (name: string) => readFileSync(join(ROOT, name), 'utf8');
const readJson = (name: string) => JSON.parse(read(name));

/** The head of a page between two lines of hyphens, and whether text follows. */
function headOf(name: string): unknown {
  const [, head, body] = /^---\n(.*?)^---\n(.*)$/ms.exec(read(name)) ?? [];
  assert.ok(body?.trim(), name);
  return parseYaml(head!);
}

test('the checked-in files equal the output of "npm run integrations", and there are no others', () => {
  const files = integrationFiles();
  for (const [name, text] of Object.entries(files)) assert.equal(read(name), text, name);
  const found = globSync(
    ['integrations/**/*.{json,md,toml}', 'integrations/**/.*/*.json', 'integrations/**/.mcp.json'],
    { cwd: ROOT },
  );
  const others = found.filter((name) => !(name in files));
  assert.deepEqual(others, ['integrations/README.md']);
});

/** Each file that a client reads, with the schema from the client's documentation. */
const FORMS: Record<string, z.ZodType> = {
  '.claude-plugin/marketplace.json': formats.claudeMarketplaceSchema,
  'integrations/claude/.claude-plugin/plugin.json': formats.claudePluginSchema,
  'integrations/claude/hooks/hooks.json': formats.hooksSchema('UserPromptSubmit'),
  'integrations/gemini/gemini-extension.json': formats.geminiExtensionSchema,
  'integrations/gemini/hooks/hooks.json': formats.hooksSchema('BeforeAgent'),
  'integrations/registry/server.json': formats.mcpServerSchema,
  'integrations/desktop/chronos.json': formats.bundleSchema,
  'integrations/desktop/chronometric.json': formats.bundleSchema,
};

test('each file has the documented schema of its client, and the version of the package', () => {
  for (const [name, form] of Object.entries(FORMS)) {
    const value = readJson(name);
    form.parse(value);
    if ('version' in value) assert.equal(value.version, VERSION, name);
    // A field unknown to the schema is a typing error.
    assert.equal(form.safeParse({ ...value, verson: '1' }).success, false, name);
  }
  for (const name of ['claude/.mcp.json', 'cursor/mcp.json'])
    formats.serversSchema.parse(readJson(`integrations/${name}`).mcpServers);
  formats.serversSchema.parse(
    JSON.parse(JSON.stringify(parseToml(read('integrations/codex/config.toml')).mcp_servers)),
  );
});

test('skills and slash commands have their heads, and a skill has the name of its folder', () => {
  const skills = globSync('integrations/*/skills/*/SKILL.md', { cwd: ROOT });
  assert.equal(skills.length, 4);
  for (const name of skills) {
    const head = formats.skillHeadSchema.parse(headOf(name));
    assert.equal(head.name, basename(dirname(name)));
  }
  const commands = globSync('integrations/claude/commands/*.md', { cwd: ROOT });
  for (const name of commands) formats.commandHeadSchema.parse(headOf(name));
  const others = globSync('integrations/gemini/commands/*/*.toml', { cwd: ROOT });
  for (const name of others) formats.geminiCommandSchema.parse(JSON.parse(JSON.stringify(parseToml(read(name)))));
  assert.deepEqual([commands.length, others.length], [3, 3]);
});

test("the marketplace names the folder of the plugin, under the plugin's name", () => {
  const { plugins } = formats.claudeMarketplaceSchema.parse(readJson('.claude-plugin/marketplace.json'));
  for (const { name, source } of plugins) assert.equal(readJson(join(source, '.claude-plugin/plugin.json')).name, name);
});

test('the registry entry and the package have one name, also when a release comes from another repository', () => {
  for (const [address, name] of [
    [undefined, readJson('package.json').mcpName],
    ['git+https://github.com/some-body/clock.git', 'io.github.some-body/reveille'],
    ['git+https://git.example.com/a/b.git', readJson('package.json').mcpName],
  ] as const) {
    assert.equal(registryEntry(address).name, name);
    assert.equal(packageManifest([], address).mcpName, name);
  }
});

test('the registry entry links to the repository, the website and an icon that the repository has', () => {
  const address = 'git+https://github.com/some-body/clock.git';
  const { repository, websiteUrl, icons } = registryEntry(address);
  assert.deepEqual(repository, { url: 'https://github.com/some-body/clock', source: 'github' });
  assert.equal(websiteUrl, 'https://github.com/some-body/clock#readme');
  const prefix = `https://raw.githubusercontent.com/some-body/clock/v${VERSION}/`;
  assert.deepEqual(
    icons?.map(({ src }) => src.startsWith(prefix) && read(src.slice(prefix.length)).slice(0, 4)),
    ['<svg'],
  );
  assert.equal(registryEntry(address, 'https://example.com/').websiteUrl, 'https://example.com/');
  for (const elsewhere of [undefined, 'https://github.com.evil.example/a/b', 'https://git.example.com/a/b'])
    assert.deepEqual(Object.keys(registryEntry(elsewhere)).sort(), Object.keys(registryEntry()).sort());
  assert.throws(() => registryEntry(address, 'http://example.com/'));
});

test('wrong documents are refused', () => {
  const entry = registryEntry();
  for (const wrong of [
    { name: 'no-slash' },
    { version: '^1.0.0' },
    { description: 'x'.repeat(101) },
    { packages: [{ ...entry.packages[0], version: 'latest' }] },
  ])
    assert.equal(formats.mcpServerSchema.safeParse({ ...entry, ...wrong }).success, false, JSON.stringify(wrong));
  const manifest = bundleManifest(BUNDLES[0]!);
  for (const wrong of [{ manifest_version: '9' }, { server: { type: 'node' } }, { author: 'x' }])
    assert.equal(formats.bundleSchema.safeParse({ ...manifest, ...wrong }).success, false, JSON.stringify(wrong));
  const marketplace = readJson('.claude-plugin/marketplace.json');
  for (const source of ['integrations/claude', '../elsewhere', './a/../../b'])
    assert.equal(
      formats.claudeMarketplaceSchema.safeParse({ ...marketplace, plugins: [{ ...marketplace.plugins[0], source }] })
        .success,
      false,
      source,
    );
});
