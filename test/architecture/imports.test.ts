import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { circlesOf, disorderOf, type ImportGraph, importGraph, mermaidOf } from './import-graph.ts';
import { findViolations, foreignImports } from './import-rules.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const SRC = join(ROOT, 'src');

test('every import in src follows the table of import rules', () => {
  assert.deepEqual(
    findViolations(SRC).map(({ file, line, specifier, reason }) => `${file}:${line} ${specifier}: ${reason}`),
    [],
  );
});

test('the examples import no system', () => {
  assert.deepEqual(foreignImports(join(SRC, '..', 'examples', 'ledger'), SRC), []);
});

test('no files of src and bench import each other in a circle, types and tests included', () => {
  const circles = circlesOf(importGraph(ROOT, ['src', 'bench'], true));
  assert.deepEqual(
    circles.map((circle) => circle.join(' -> ')),
    [],
  );
});

test('the drawing of imports between the parts of src has no arrow up and no circle', () => {
  const graph = importGraph(ROOT, ['src']);
  assert.deepEqual(disorderOf(graph), []);
  const drawing = mermaidOf(graph);
  for (const arrow of [
    'cli --> agents_neo_client',
    'agents_neo_client --> wire',
    'agents_neo --> layer_kit',
    'kit_outbox --> kit_http',
  ])
    assert.ok(drawing.includes(`  ${arrow}\n`), arrow);
});

/** A graph from lines such as `a: b c`. */
const graphOf = (...lines: string[]): ImportGraph =>
  new Map(
    lines.map((line) => [
      line.split(':')[0]!,
      line
        .split(':')[1]!
        .split(' ')
        .filter((name) => name !== ''),
    ]),
  );

test('a circle is reported once, by its shortest path', () => {
  assert.deepEqual(circlesOf(graphOf('a: b', 'b: c d', 'c: a', 'd: c', 'e: a')), [['a', 'b', 'c', 'a']]);
  assert.deepEqual(circlesOf(graphOf('a: b c', 'b: d', 'c: d', 'd:')), []);
  assert.deepEqual(circlesOf(graphOf('a: a', 'b: c', 'c: b')), [
    ['a', 'a'],
    ['b', 'c', 'b'],
  ]);
});

test('a long chain of imports needs no deep stack', () => {
  const chain = Array.from({ length: 50_000 }, (_, at): [string, string[]] => [`${at}`, [`${(at + 1) % 50_000}`]]);
  assert.equal(circlesOf(new Map(chain))[0]!.length, 50_001);
});

test('a type import closes a circle', () => {
  const files = { 'src/a.ts': `import type { B } from './b.ts';`, 'src/b.ts': `import { a } from './a.ts';` };
  assert.deepEqual(
    inFolder(files, {}, (root) => circlesOf(importGraph(root, ['src']))),
    [['src/a.ts', 'src/b.ts', 'src/a.ts']],
  );
});

/** Creates files and links in a folder for one reading. */
function inFolder<T>(files: Record<string, string>, links: Record<string, string>, read: (root: string) => T): T {
  const root = mkdtempSync(join(tmpdir(), 'reveille-imports-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    for (const [path, target] of Object.entries(links)) symlinkSync(join(root, target), join(root, path));
    return read(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

/** Creates a small `src` and reads it. */
const violationsIn = (files: Record<string, string>, links: Record<string, string> = {}): string[] =>
  inFolder(files, links, (root) => findViolations(root).map(({ file, reason }) => `${file}: ${reason}`));

const WIRE = { 'wire/errors.ts': 'export const a = 1;\n' };

test('a planted violation is found in each spelling of an import', () => {
  const spellings = [
    `import { a } from '../../router/wake.ts';`,
    `import type { a } from "../../router/wake.ts";`,
    `import '../../router/wake.ts';`,
    `export { a } from '../../router/wake.ts';`,
    `export const load = () => import('../../router/wake.ts');`,
    `import {\n  a,\n} from '../../router/wake.ts';`,
  ];
  for (const text of spellings) {
    const found = violationsIn({ ...WIRE, 'router/wake.ts': 'export const a = 1;\n', 'agents/neo/chat.ts': text });
    assert.deepEqual(found, ['agents/neo/chat.ts: agents/neo may not import router/wake.ts'], text);
  }
});

test('the store port may be imported where its implementations may not', () => {
  const store = {
    'chronos/store/store.ts': 'export const a = 1;\n',
    'chronos/store/sqlite/store.ts': 'export const a = 1;\n',
  };
  assert.deepEqual(violationsIn({ ...store, 'chronos/dispatch/a.ts': `import '../store/store.ts';` }), []);
  assert.deepEqual(violationsIn({ ...store, 'chronos/dispatch/a.ts': `import '../store/sqlite/store.ts';` }), [
    'chronos/dispatch/a.ts: chronos/dispatch may not import chronos/store/sqlite/store.ts',
  ]);
});

test("layers point downwards: a kit imports no system, a system imports another one's client alone, and nothing imports the command line", () => {
  const files = {
    'kit/http/a.ts': '',
    'router/a.ts': '',
    'router/client.ts': '',
    'cli/a.ts': '',
    'kit/text/a.ts': '',
  };
  const found = (path: string, ...specifiers: string[]) =>
    violationsIn({ ...files, [path]: specifiers.map((specifier) => `import '${specifier}';`).join('\n') });
  assert.deepEqual(found('kit/http/b.ts', '../../router/client.ts', '../text/a.ts'), [
    'kit/http/b.ts: kit/http may not import router/client.ts',
    'kit/http/b.ts: kit/http may not import kit/text/a.ts',
  ]);
  assert.deepEqual(
    found('agents/neo/b.ts', '../../kit/http/a.ts', '../../router/client.ts', '../../router/a.ts', '../../cli/a.ts'),
    ['agents/neo/b.ts: agents/neo may not import router/a.ts', 'agents/neo/b.ts: agents/neo may not import cli/a.ts'],
  );
});

test('wire imports no package but zod, and no other folder', () => {
  assert.deepEqual(violationsIn({ 'wire/a.ts': `import { z } from 'zod';\nimport { b } from 'hono';` }), [
    'wire/a.ts: wire may import no package but zod',
  ]);
  assert.deepEqual(violationsIn({ 'kit/identity/a.ts': '', 'wire/a.ts': `import '../kit/identity/a.ts';` }), [
    'wire/a.ts: wire may not import kit/identity/a.ts',
  ]);
});

test('a link into another folder counts as an import of that folder', () => {
  const files = { 'router/wake.ts': 'export const a = 1;\n', 'agents/neo/chat.ts': `import './wake.ts';` };
  assert.deepEqual(violationsIn(files, { 'agents/neo/wake.ts': 'router/wake.ts' }), [
    'agents/neo/chat.ts: agents/neo may not import router/wake.ts',
  ]);
});

test('imports in comments and strings with slashes do not confuse the reader', () => {
  const text = `// import '../../router/wake.ts'\n/* from '../../router/wake.ts' */\nexport const url = 'http://localhost'; import '../../wire/errors.ts';`;
  assert.deepEqual(violationsIn({ ...WIRE, 'agents/neo/chat.ts': text }), []);
});

test('a folder without an entry in the table is a violation', () => {
  assert.deepEqual(violationsIn({ ...WIRE, 'utils/a.ts': `import '../wire/errors.ts';` }), [
    'utils/a.ts: is in a folder without an entry in the table',
  ]);
});
