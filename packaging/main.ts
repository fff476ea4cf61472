/**
 * `npm run package`: makes the package that a registry serves, `dist/reveille-<version>.tgz`.
 *
 * The sources are compiled. The files that the program and its exports can load are traced and copied to `dist/package`
 * under their paths in the repository: `src/cli/run.ts` becomes `src/cli/run.js`. The dependencies are included, pinned
 * and without unused files (docs/internals/decisions/0020-package-and-start.md). `dist/reveille-<version>.cdx.json` is
 * the bill of materials.
 */
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  globSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { writeMarkdown } from '../site/markdown.ts';
import { readDocumentation } from '../site/pages.ts';
import { manPage, outlineOf } from '../src/cli/outline/outline.ts';
import { buildProgram } from '../src/cli/tree/program.ts';
import { withTabs } from './indentation.ts';
import { carriedManifest, EXPORTS, MAN_PAGE, type Manifest, packageManifest, ROOT, readManifest } from './manifest.ts';
import { billOfMaterials } from './sbom.ts';
import { mapByLine } from './source-map.ts';
import { isInstalled, packageRootOf, traceFiles } from './trace.ts';

const DIST = join(ROOT, 'dist');
/** The work folder of this run, so that `dist` has a complete package or none. */
const MAKING = join(DIST, `making-${process.pid}`);
const COMPILED = join(MAKING, 'compiled');
const STAGED = join(MAKING, 'package');
const INSTALLED = join(ROOT, 'node_modules');

/** Files that the program or its users read, copied unchanged. */
const CARRIED = [
  ...['LICENSE', 'README.md', 'CHANGELOG.md', 'agents/*', 'skills/**/*'],
  // The pictures of README.md; the pages themselves come from site/markdown.ts.
  'docs/console/{upcoming.png,terminal.svg}',
  // The marketplace and its files, for users who add the installed package to their client.
  ...['.claude-plugin/*', 'integrations/**/*.{json,md,toml}', 'integrations/**/.*/*', 'integrations/**/.mcp.json'],
  ...['examples/*/*.{md,json,yaml}', '{src,examples}/**/migrations/*.sql'],
  ...['src/console/assets/*', 'src/**/presets/*.json', 'src/*/*.json'],
];

/** JSON for programs, without white space: half the size. */
const COMPACTED = ['schemas/*.json', 'agents/*.{tools,lock}.json', 'src/chronos-mcp/chronos-tools.json'];

/** Programs that no file imports. */
const PROGRAMS = ['bin/reveille.mjs'];
/** Entries of MCP servers that manifests start. */
const SERVERS = ['@modelcontextprotocol/server-filesystem/dist/index.js'];

/** The binaries of `koffi`, one package for each platform: npm installs the right one. */
const NOT_CARRIED = '@koromix';

function compile(): void {
  const project = join(import.meta.dirname, 'tsconfig.json');
  const emit = (...flags: string[]) =>
    execFileSync('tsc', ['-p', project, '--outDir', COMPILED, ...flags], { stdio: 'inherit' });
  // Programs need no comments. Editors show the docstrings of declarations.
  emit('--declaration', 'false', '--removeComments');
  emit('--emitDeclarationOnly', '--sourceMap', 'false');
  for (const name of globSync('**/*.js', { cwd: COMPILED })) {
    const file = join(COMPILED, name);
    const source = readFileSync(file, 'utf8');
    // tsc rewrites imports, but not the programs of threads and child processes in a URL.
    const rewritten = source.replace(/(new URL\((['"])\.[^'"\n]+)\.ts(\2, import\.meta\.url\))/g, '$1.js$3');
    writeFileSync(file, withTabs(file, rewritten));
  }
  // The compiled files resolve packages and have the module type of the repository.
  copyFileSync(join(ROOT, 'package.json'), join(COMPILED, 'package.json'));
}

/** The declarations behind the exports, of the project and of its dependencies. */
function declarations(): string[] {
  const entries = Object.values(EXPORTS).map((source) => join(COMPILED, source.replace(/\.ts$/, '.d.ts')));
  if (entries.length === 0) return [];
  const flags = ['--listFilesOnly', '--ignoreConfig', '--module', 'nodenext', '--types', '', '--lib', 'es2024'];
  const listed = execFileSync('tsc', [...flags, ...entries], { encoding: 'utf8' });
  const ofLanguage = /[\\/]node_modules[\\/](?:@typescript|typescript|@types|undici-types)[\\/]/;
  return listed.split('\n').filter((file) => file !== '' && !ofLanguage.test(file));
}

function write(target: string, text: string): void {
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, text);
}

/** Makes a hard link, which costs a tenth of a copy. No program writes to the copied files. */
function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** Copies a dependency: its loaded files, its licence and its manifest. */
function layOutDependency(root: string, files: readonly string[], isCarried: (name: string) => boolean): void {
  const target = join(STAGED, relative(ROOT, root));
  for (const file of files) {
    const to = join(target, relative(root, file));
    if (file === join(root, 'package.json')) write(to, carriedManifest(readFileSync(file, 'utf8'), isCarried));
    else copy(file, to);
  }
  for (const name of readdirSync(root))
    if (/^(?:licen[cs]e|notice|copying|copyright)/i.test(name)) copy(join(root, name), join(target, name));
}

function layOut(): { ours: number; carried: number } {
  const entries = [
    ...[...PROGRAMS, ...Object.values(EXPORTS).map((source) => source.replace(/\.ts$/, '.js'))].map((name) =>
      join(COMPILED, name),
    ),
    ...SERVERS.map((name) => join(INSTALLED, name)),
  ];
  const traced = traceFiles(entries, (file) => file.startsWith(`${join(INSTALLED, NOT_CARRIED)}${sep}`));
  const files = [...new Set([...traced, ...declarations()])];

  const ours = files.filter((file) => !isInstalled(file) && basename(file) !== 'package.json');
  for (const file of ours) {
    copy(file, join(STAGED, relative(COMPILED, file)));
    if (/\.m?js$/.test(file))
      write(join(STAGED, `${relative(COMPILED, file)}.map`), mapByLine(readFileSync(`${file}.map`, 'utf8')));
  }
  const compacted = new Set(globSync(COMPACTED, { cwd: ROOT }));
  for (const name of globSync(CARRIED, { cwd: ROOT }))
    if (!compacted.has(name) && statSync(join(ROOT, name)).isFile()) copy(join(ROOT, name), join(STAGED, name));
  for (const name of compacted)
    write(join(STAGED, name), JSON.stringify(JSON.parse(readFileSync(join(ROOT, name), 'utf8'))));

  const installed = Map.groupBy(files.filter(isInstalled), packageRootOf);
  const names = new Set([...installed.keys()].map((root) => root.slice(root.lastIndexOf('node_modules') + 13)));
  for (const [root, parts] of installed) layOutDependency(root, parts, (name) => names.has(name));

  const { dependencies, optionalDependencies } = readManifest(ROOT);
  const direct = Object.keys({ ...dependencies, ...optionalDependencies });
  const unused = direct.filter((name) => !names.has(name));
  if (unused.length > 0)
    throw new Error(`nothing loads ${unused.join(', ')}: not dependencies, or loaded by a name that no import shows`);
  const manifest: Manifest = packageManifest(direct, process.env.REVEILLE_REPOSITORY || undefined);
  write(join(STAGED, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  return { ours: ours.length, carried: installed.size };
}

const bytesBelow = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;

/** Replaces the package of an earlier run. @returns the path of the tarball */
function publishLocally(filename: string): string {
  for (const old of globSync(['package', '*.tgz', '*.cdx.json'], { cwd: DIST }))
    rmSync(join(DIST, old), { recursive: true, force: true });
  renameSync(STAGED, join(DIST, 'package'));
  renameSync(join(MAKING, filename), join(DIST, filename));
  return join(DIST, filename);
}

/** Makes `dist/package` and the tarball of it. */
async function makePackage(say: (line: string) => void): Promise<void> {
  const started = performance.now();
  compile();
  const { ours, carried } = layOut();
  write(join(STAGED, MAN_PAGE), manPage(await outlineOf(buildProgram(process)), readManifest(ROOT).version));
  writeMarkdown(await readDocumentation(process.env.REVEILLE_REPOSITORY || undefined), join(STAGED, 'docs'));
  const bytes = bytesBelow(join(STAGED, 'node_modules'));
  const flags = ['--json', '--ignore-scripts', '--pack-destination', MAKING];
  const [packed] = JSON.parse(execFileSync('npm', ['pack', ...flags], { cwd: STAGED, encoding: 'utf8' })) as [
    { filename: string; size: number; unpackedSize: number; entryCount: number },
  ];
  const tarball = relative(ROOT, publishLocally(packed.filename));
  const bill = billOfMaterials(join(DIST, 'package'), readFileSync(join(ROOT, tarball)));
  write(join(ROOT, tarball.replace(/\.tgz$/, '.cdx.json')), `${JSON.stringify(bill, null, 2)}\n`);
  const { size, unpackedSize, entryCount } = packed;
  say(`${tarball}: ${megabytes(size)}, unpacked ${megabytes(unpackedSize)} in ${entryCount} files`);
  say(`${megabytes(bytes)} of it are ${carried} dependencies; ${ours} files are compiled sources`);
  say(`made in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

if (import.meta.main) {
  try {
    await makePackage((line) => console.log(line));
  } finally {
    rmSync(MAKING, { recursive: true, force: true });
  }
}
