import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { runSelftest } from './selftest.ts';
import { TOOLS_FILE } from './tools.ts';

const ROOT = join(import.meta.dirname, '..', '..');

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'reveille-selftest-'));
  cpSync(fileURLToPath(TOOLS_FILE), join(folder, 'chronos-tools.json'));
  cpSync(join(ROOT, 'agents'), join(folder, 'agents'), { recursive: true });
  cpSync(join(ROOT, 'skills'), join(folder, 'skills'), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = () =>
  runSelftest({
    toolsFile: join(folder, 'chronos-tools.json'),
    agentsDir: join(folder, 'agents'),
    skillsDir: join(folder, 'skills'),
  });

/** Rewrites a file of the copy. */
function edit(path: string, change: (text: string) => string): void {
  const file = join(folder, path);
  const text = readFileSync(file, 'utf8');
  const changed = change(text);
  assert.notEqual(changed, text, 'the edit changes something');
  writeFileSync(file, changed);
}

// biome-ignore lint/suspicious/noExplicitAny: manifests are bent in every direction
function editManifest(change: (manifest: any) => void, name = 'neo.json'): void {
  edit(`agents/${name}`, (text) => {
    const manifest = JSON.parse(text);
    change(manifest);
    return JSON.stringify(manifest);
  });
}

/** Exactly these differences, each in this file. */
function expectDifferences(file: string, ...says: RegExp[]): void {
  const { ok, differences } = run();
  assert.equal(ok, false);
  assert.equal(differences.length, says.length, differences.join('\n'));
  for (const [index, saying] of says.entries()) {
    assert.ok(differences[index]!.startsWith(join(folder, file)), differences[index]);
    assert.match(differences[index]!, saying);
  }
}

test('what ships agrees', () => {
  const report = runSelftest({
    toolsFile: TOOLS_FILE,
    agentsDir: join(ROOT, 'agents'),
    skillsDir: join(ROOT, 'skills'),
  });
  assert.deepEqual(report.differences, []);
  assert.equal(report.ok, true);
  assert.deepEqual(
    report.checked,
    [
      'src/chronos-mcp/chronos-tools.json',
      'agents/default.json',
      'agents/executor.json',
      'agents/neo.json',
      'skills/assistant/SKILL.mtx',
    ].map((file) => join(ROOT, file)),
  );
});

test('a tool that a manifest lacks, adds, misnames or repeats is named', () => {
  editManifest(({ servers }) => servers[0].tools.pop());
  expectDifferences('agents/neo.json', /alarm_cancel is missing/);
  editManifest(({ servers }) => servers[0].tools.push({ name: 'alarm_cancel' }, { name: 'alarm_snooze' }));
  expectDifferences('agents/neo.json', /alarm_snooze is not a chronos tool/);
  editManifest(({ servers }) => {
    servers[0].tools[3].name = 'alarm_set';
  });
  expectDifferences('agents/neo.json', /alarm_set is a duplicate/);
});

test('a manifest that declares no tools for chronos lacks all of them', () => {
  editManifest(({ servers }) => {
    delete servers[0].tools;
  });
  expectDifferences('agents/neo.json', /alarm_set is missing/, /alarm_list is missing/, /alarm_cancel is missing/);
});

test('another alias, another version and a second chronos server are named', () => {
  editManifest(({ servers }) => {
    servers[0].alias = 'chrono';
  });
  expectDifferences('agents/neo.json', /alias "chrono" must be "chronos"/);
  editManifest(({ servers }) => {
    servers[0].alias = 'chronos';
    servers[0].version = '0.2.0';
  });
  expectDifferences('agents/neo.json', /version 0\.2\.0 must be 0\.1\.0/);
  editManifest(({ servers }) => {
    servers[0].version = '0.1.0';
    servers.push({ ...servers[0], command: 'node', args: ['bin/reveille.mjs', 'mcp'] });
  });
  expectDifferences('agents/neo.json', /2 chronos servers/);
});

test('both spellings of env agree; a literal in it is named without its value', () => {
  editManifest(({ servers }) => {
    servers[0].env = ['MATRIX_CHRONOS_URL=$env:MATRIX_CHRONOS_URL', 'MATRIX_CHRONOS_TOKEN=$env:CHRONOS_TOKEN'];
  });
  assert.equal(run().ok, true, run().differences.join());
  const bend: ((server: { env: unknown }) => void)[] = [
    (server) => {
      server.env = ['MATRIX_CHRONOS_TOKEN=hunter2'];
    },
    (server) => {
      server.env = { MATRIX_CHRONOS_TOKEN: 'hunter2' };
    },
    (server) => {
      server.env = ['hunter2'];
    },
    (server) => {
      server.env = { MATRIX_CHRONOS_TOKEN: ['hunter2'] };
    },
    (server) => {
      server.env = 'hunter2';
    },
  ];
  for (const change of bend) {
    editManifest(({ servers }) => change(servers[0]));
    expectDifferences('agents/neo.json', /env/);
    assert.doesNotMatch(run().differences.join(), /hunter2/);
  }
});

test('a manifest without chronos and a skill without chronos are passed over', () => {
  editManifest((manifest) => {
    manifest.servers = [{ alias: 'other', command: 'other-server', tools: [{ name: 'x' }] }];
  });
  mkdirSync(join(folder, 'skills', 'plain'));
  writeFileSync(join(folder, 'skills', 'plain', 'SKILL.mtx'), '§TOOLS\n  matrix://tool/mcp/other/x@1.0.0\nend\n');
  mkdirSync(join(folder, 'skills', 'empty'));
  const { ok, checked, differences } = run();
  assert.equal(ok, true, differences.join());
  assert.equal(checked.length, 4);
});

test('missing, extra, repeated and misversioned tools of a skill are named with their line', () => {
  const skill = 'skills/assistant/SKILL.mtx';
  edit(skill, (text) => text.replace('  matrix://tool/mcp/chronos/alarm_list@0.1.0\n', ''));
  expectDifferences(skill, /alarm_list is missing/);
  edit(skill, (text) =>
    text.replace('alarm_cancel@0.1.0', 'alarm_cancel@0.0.9\n  matrix://tool/mcp/chronos/alarm_list@0.1.0'),
  );
  expectDifferences(skill, /line 7: alarm_cancel has version 0\.0\.9, it must be 0\.1\.0/);
  edit(skill, (text) => text.replace('@0.0.9', '@0.1.0\n  matrix://tool/mcp/chronos/alarm_cancel@0.1.0'));
  expectDifferences(skill, /alarm_cancel is a duplicate/);
  edit(skill, (text) => text.replace('alarm_cancel@', 'alarm_snooze@'));
  expectDifferences(skill, /alarm_snooze is not a chronos tool/);
});

test('a chronos tool under another alias, and an entry that is no tool URI, are named', () => {
  const skill = 'skills/assistant/SKILL.mtx';
  edit(skill, (text) => text.replace('/chronos/alarm_set', '/chrono/alarm_set'));
  expectDifferences(skill, /line 6: alias "chrono" must be "chronos"/);
  edit(skill, (text) => text.replace('/chrono/alarm_set@0.1.0', '/chronos/alarm_set'));
  expectDifferences(skill, /line 6: .*must look like matrix:\/\/tool\/mcp\/chronos/, /alarm_set is missing/);
});

test('several blocks of a skill count together, and one without an end is a difference', () => {
  const skill = 'skills/assistant/SKILL.mtx';
  edit(skill, (text) =>
    text.replace(
      '  matrix://tool/mcp/chronos/alarm_list',
      'end\n\n§TOOLS\n  # the rest\n\n  matrix://tool/mcp/chronos/alarm_list',
    ),
  );
  assert.equal(run().ok, true, run().differences.join());
  edit(skill, (text) => text.replace('@0.1.0\nend', '@0.1.0\n'));
  expectDifferences(skill, /no end/);
});

test('a tools file that drifted is named, and the others are compared with it', () => {
  edit('chronos-tools.json', (text) => {
    const file = JSON.parse(text);
    file.tools[2].name = 'alarm_snooze';
    return JSON.stringify(file);
  });
  const { differences } = run();
  assert.deepEqual(
    differences.map((difference) => difference.slice(folder.length + 1)),
    [
      'chronos-tools.json',
      'agents/default.json',
      'agents/executor.json',
      'agents/neo.json',
      'skills/assistant/SKILL.mtx',
    ].flatMap((file) =>
      file === 'chronos-tools.json'
        ? [`${file}: alarm_snooze is not a chronos tool`, `${file}: alarm_cancel is missing`]
        : [`${file}: alarm_cancel is not a chronos tool`, `${file}: alarm_snooze is missing`],
    ),
  );
});

test('every file that is missing or malformed is a difference of its own', () => {
  rmSync(join(folder, 'chronos-tools.json'));
  rmSync(join(folder, 'agents', 'executor.json'));
  writeFileSync(join(folder, 'agents', 'default.json'), '{"servers": [');
  editManifest((manifest) => {
    manifest.servers[0].transport = 'pigeon';
  });
  rmSync(join(folder, 'skills'), { recursive: true });
  const { ok, differences, checked } = run();
  assert.equal(ok, false);
  assert.deepEqual(checked, []);
  assert.equal(differences.length, 4, differences.join('\n'));
  for (const [index, file] of ['chronos-tools.json', 'agents/default.json', 'agents/neo.json', 'skills'].entries()) {
    assert.ok(differences[index]!.startsWith(join(folder, file)), differences[index]);
  }
  assert.match(differences[2]!, /servers\.0\.transport/);
});

test('the lock beside a manifest is not taken for one', () => {
  writeFileSync(join(folder, 'agents', 'neo.lock.json'), '{"lock_version": 1, "servers": {}}');
  assert.deepEqual(run().differences, []);
});
