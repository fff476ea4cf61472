/**
 * The package of `npm pack` alone: installed into an empty folder with an empty home, without a registry and without
 * scripts. Its commands, and its exports as programs import them.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { globSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import type { Bill } from '../../../packaging/sbom.ts';
import { VERSION } from '../../../src/wire/version.ts';
import type { Vector } from '../../contract/receipt-vectors/vectors.ts';
import { type InstalledPackage, installPackage, packedTarball } from '../../support/package.ts';
import { sharedOwner, temporaryFolder } from '../../support/temporary.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '..', '..', '..');
const LIBRARIES = join(ROOT, 'node_modules');
/** Unpacked, with all dependencies. */
const LIMIT_BYTES = 18_500_000;

/** Each export as its own page shows it, with its named types. */
const CONSUMER = `
import { ReveilleError, VERSION } from 'reveille';
import type { AlarmView, ChatRequest, FireView, IntentReceipt } from 'reveille';
import { agentIdentity, createChronosClient, createExecutorClient, createRouterClient, generateKey, localClients } from 'reveille/client';
import { alarmTools, mcpServers } from 'reveille/tools';
import { checkReceipts } from 'reveille/verify';
import { generateText, type ToolSet } from 'ai';
import type { StdioServerParameters } from '@modelcontextprotocol/client/stdio';

const identity = agentIdentity('build-agent', generateKey());
const chronos = createChronosClient({ url: 'http://127.0.0.1:1', token: 'a-token-of-a-server', identity });
const router = createRouterClient({ url: 'http://127.0.0.1:1', token: 'a-token-of-a-server' });
const executor = createExecutorClient({ url: 'http://127.0.0.1:1', token: 'a-token-of-a-server', userId: 'build-agent' });

export const tools: ToolSet = alarmTools();
export const ask = (model: Parameters<typeof generateText>[0]['model']) =>
  generateText({ model, prompt: 'Wake me in ten minutes.', tools: alarmTools() });
export const server: StdioServerParameters = mcpServers().chronos;
export const words = (chat: ChatRequest, alarm: AlarmView, fire: FireView, receipt: IntentReceipt): (string | undefined)[] =>
  [chat.message, chat.alarm_id, alarm.status, fire.outcome, receipt.intent_id];
export const machines = (): Promise<string[]> => router.list().then((list) => list.map(({ user_id }) => user_id));

// @ts-expect-error an alarm has no such field
export const wrong = (alarm: AlarmView) => alarm.does_not_exist;
// @ts-expect-error words are needed
void (() => chronos.createAlarm({ kind: 'once', delay_seconds: 5 }));

const refused = await chronos.listAlarms().then(() => 'reached', (error: unknown) =>
  error instanceof ReveilleError ? error.code : String(error));
const [unreadable] = await checkReceipts('{"format":1,"format":2}');
console.log(JSON.stringify({
  version: VERSION, refused, tools: Object.keys(tools), why: unreadable?.why, args: server.args,
  kinds: [typeof executor.submit, typeof localClients],
}));
`;

type Failed = { code: number; stdout: string; stderr: string };

const owner = sharedOwner();
let installed: InstalledPackage;

let installSeconds: number;

const secondsSince = (started: number) => (performance.now() - started) / 1000;

before(async () => {
  await packedTarball();
  const started = performance.now();
  installed = await installPackage(owner);
  installSeconds = secondsSince(started);
});
after(() => owner.end());

/** Runs the installed command with this Node. */
function reveille(...cliArgs: string[]) {
  const { folder, env, program } = installed;
  return run(process.execPath, [program, ...cliArgs], { cwd: folder, env });
}

/** A script beside the installation, which imports as any program there would. */
function script(source: string) {
  const { folder, env } = installed;
  return run(process.execPath, ['--input-type=module', '--eval', source], { cwd: folder, env });
}

test('the package and its dependencies stay under 18.5 MB, and none has a script that npm would run', (t) => {
  const { folder } = installed;
  const below = { cwd: join(folder, 'node_modules') };
  const files = globSync('**', { ...below, exclude: ['**/.cache/**'] }).map((name) => join(below.cwd, name));
  const bytes = files.map((file) => statSync(file)).reduce((sum, stat) => sum + (stat.isFile() ? stat.size : 0), 0);
  assert.ok(files.includes(installed.program) && bytes < LIMIT_BYTES, `${(bytes / 1e6).toFixed(1)} MB`);
  t.diagnostic(`${(bytes / 1e6).toFixed(1)} MB in ${files.length} files`);
  for (const manifest of files.filter((file) => file.endsWith('package.json'))) {
    const { scripts = {} } = JSON.parse(readFileSync(manifest, 'utf8'));
    assert.deepEqual(Object.keys(scripts), [], manifest);
  }
});

test('the manifest equals that of the repository without its development fields', () => {
  const manifestIn = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const [ours, theirs] = [manifestIn(ROOT), manifestIn(join(installed.program, '..', '..'))];
  for (const field of ['name', 'version', 'description', 'license', 'type', 'engines', 'bin'])
    assert.deepEqual(theirs[field], ours[field], field);
  for (const field of ['private', 'scripts', 'devDependencies', 'allowScripts', 'overrides', 'repository'])
    assert.ok(!(field in theirs), field);
  // Bundled dependencies are pinned; others, binaries for one system, are optional.
  assert.deepEqual(Object.keys(theirs.dependencies).sort(), [...theirs.bundleDependencies].sort());
  for (const version of Object.values({ ...theirs.dependencies, ...theirs.optionalDependencies }))
    assert.match(String(version), /^\d+\.\d+\.\d+$/);
});

test('the bill of materials names exactly the packages of an installation, with the digests of the lock file', async () => {
  const tarball = await packedTarball();
  const bill = JSON.parse(readFileSync(tarball.replace(/\.tgz$/, '.cdx.json'), 'utf8')) as Bill;
  const { component } = bill.metadata;
  assert.deepEqual(
    [bill.bomFormat, component.name, component.version, component.hashes],
    ['CycloneDX', 'reveille', VERSION, [{ alg: 'SHA-256', content: hash('sha256', readFileSync(tarball)) }]],
  );
  const laidOut = join(ROOT, 'dist', 'package');
  const isPackage = /(?:^|\/)node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/;
  const found = globSync('node_modules/**/package.json', { cwd: laidOut })
    .filter((path) => isPackage.test(path.replaceAll('\\', '/')))
    .map((path) => {
      const { name, version } = JSON.parse(readFileSync(join(laidOut, path), 'utf8'));
      return `${name}@${version}`;
    });
  const { optionalDependencies } = JSON.parse(readFileSync(join(laidOut, 'package.json'), 'utf8'));
  const beside = Object.entries(optionalDependencies).map((pair) => pair.join('@'));
  assert.equal(beside.length, 3);
  const refs = bill.components.map((one) => one['bom-ref']);
  assert.deepEqual(refs.toSorted(), [...new Set([...found, ...beside])].toSorted());
  for (const { 'bom-ref': ref, hashes } of bill.components)
    assert.match(hashes?.[0]?.content ?? '', /^[0-9a-f]{128}$/, ref);
  const known = new Set([component['bom-ref'], ...refs]);
  for (const { ref, dependsOn = [] } of bill.dependencies)
    for (const one of [ref, ...dependsOn]) assert.ok(known.has(one), one);
});

test('the manual page is included, where npm links it from', () => {
  const root = join(installed.program, '..', '..');
  const { man } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  assert.match(readFileSync(join(root, man[0]), 'utf8'), /^\.TH REVEILLE 1 /);
});

test('npm reports a complete installation, and "npx reveille" answers with the version of package.json', async () => {
  const { folder, env } = installed;
  await run('npm', ['ls', '--all', '--offline'], { cwd: folder, env });
  const { stdout } = await run('npx', ['--no-install', 'reveille', '--version'], { cwd: folder, env });
  assert.equal(stdout, `${VERSION}\n`);
});

test('every module of the package finds its imports, and every command has its help', async () => {
  const { program } = installed;
  const root = join(program, '..', '..');
  // Separate programs, which start to work when they are loaded.
  const threads = ['capabilities/git', 'capabilities/page-text', 'kit/sqlite/checkpoint'].map(
    (name) => `src/${name}-thread.js`,
  );
  const programs = [...threads, 'src/router/reaper/main.js'];
  const modules = globSync('{src,examples}/**/*.js', { cwd: root, exclude: ['src/console/assets/**'] });
  const { stdout } = await script(`
    for (const name of ${JSON.stringify(modules.filter((name) => !programs.includes(name)))})
      await import(${JSON.stringify(root)} + '/' + name);
    const { buildProgram } = await import(${JSON.stringify(join(root, 'src/cli/tree/program.js'))});
    let commands = 0;
    const walk = (command) => {
      commands += 1;
      if (!command.helpInformation().includes(command.name())) throw new Error(command.name());
      for (const below of command.commands) walk(below);
    };
    walk(buildProgram(process));
    console.log(commands);
  `);
  assert.ok(Number(stdout) > 60, `${stdout.trim()} commands`);
});

test('"npx reveille up --once --json" fires: an alarm starts the agent of the package, which answers', async (t) => {
  const { env } = installed;
  const home = temporaryFolder(t);
  const ports = { REVEILLE_HOME: home, CHRONOS_PORT: '0', ROUTER_PORT: '0', EXECUTOR_PORT: '0' };
  const started = performance.now();
  const { stdout, stderr } = await run('npx', ['--no-install', 'reveille', 'up', '--once', '--json'], {
    cwd: installed.folder,
    env: { ...env, ...ports },
  });
  t.diagnostic(
    `installed in ${installSeconds.toFixed(1)} s, fired ${secondsSince(started).toFixed(1)} s after "npx reveille up"`,
  );
  assert.equal(stderr, '');
  const fired = JSON.parse(stdout);
  assert.ok(fired.lateness_ms >= 0 && fired.machine_start_ms > 0, stdout);
  assert.match(fired.reply, /A timer woke me/);
});

test('"mcp" and "chronometric" list their tools to an MCP client', async () => {
  const { env, program, folder } = installed;
  const toolsOf = async (command: string) => {
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(
      new StdioClientTransport({ command: process.execPath, args: [program, command], env, cwd: folder }),
    );
    const { tools } = await client.listTools();
    await client.close();
    return tools.map(({ name }) => name).sort();
  };
  const [alarms, time] = await Promise.all([toolsOf('mcp'), toolsOf('chronometric')]);
  assert.deepEqual(alarms, ['alarm_cancel', 'alarm_list', 'alarm_set']);
  assert.deepEqual(time, [
    ...['get_time_context', 'idle_status', 'mark_session_end', 'mark_session_start', 'request_break_if_needed'],
  ]);
});

test('"receipt verify" passes a valid receipt and fails one with a removed entry', async (t) => {
  const textOf = (list: 'valid' | 'broken', wanted: string) =>
    readFileSync(join(ROOT, 'test', 'contract', 'receipt-vectors', `${list}.jsonl`), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Vector)
      .find(({ name }) => name === wanted)!.text;
  const file = join(temporaryFolder(t), 'receipt.json');
  writeFileSync(file, textOf('valid', 'transfer-approved'));
  const { stdout } = await reveille('receipt', 'verify', file, '--trust-embedded', '--json');
  assert.equal(JSON.parse(stdout).valid, true);

  writeFileSync(file, textOf('broken', 'removed'));
  await assert.rejects(reveille('receipt', 'verify', file, '--trust-embedded', '--json'), (failed: Failed) => {
    assert.deepEqual([failed.code, JSON.parse(failed.stdout).valid], [1, false]);
    return true;
  });
});

test('an older Node gets one sentence with the required version, before anything else', async (t) => {
  const { program, env } = installed;
  const older = join(temporaryFolder(t), 'older.cjs');
  writeFileSync(older, "Object.defineProperty(process.versions, 'node', { value: '20.20.2' });");
  const withOlder = (...cliArgs: string[]) => run(process.execPath, ['--require', older, program, ...cliArgs], { env });
  await assert.rejects(withOlder('up'), ({ code, stdout, stderr }: Failed) => {
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(stderr, /^reveille needs Node 24 or newer \(this is Node 20\.20\.2\); [^\n]+\n$/);
    return true;
  });
  // A prompt continues without the time.
  assert.equal((await withOlder('time', 'hook')).stdout, '');
});

test('the end-to-end path of an alarm passes with the installed package', async () => {
  const { env, program } = installed;
  const pathTest = join(ROOT, 'test', 'end-to-end', 'alarm-path.test.ts');
  await run(process.execPath, ['--test-reporter=dot', pathTest], { env: { ...env, REVEILLE_TEST_PROGRAM: program } });
});

/** As a project with the strictest options would, in the folder of the installation. */
async function compile(cliArgs: readonly string[]): Promise<void> {
  const { folder, env } = installed;
  const options = ['--module', 'nodenext', '--target', 'es2024', '--types', 'node', '--strict'];
  const flags = ['--ignoreConfig', ...options, '--exactOptionalPropertyTypes', ...cliArgs];
  await run(join(LIBRARIES, '.bin', 'tsc'), flags, { cwd: folder, env }).catch((failed: { stdout: string }) => {
    assert.fail(failed.stdout);
  });
}

test('a TypeScript program compiles against the declarations and runs as JavaScript', async () => {
  const { folder, env } = installed;
  // The dependencies of a user of the package: the libraries that the tools are for.
  for (const name of ['ai', '@modelcontextprotocol', '@types', 'undici-types'])
    symlinkSync(join(LIBRARIES, name), join(folder, 'node_modules', name));
  writeFileSync(join(folder, 'package.json'), '{"type":"module","dependencies":{"reveille":"*"}}');
  writeFileSync(join(folder, 'program.ts'), CONSUMER);
  // The declarations of other libraries are not checked; the package's own are, below.
  await compile(['--skipLibCheck', 'program.ts']);
  const { stdout } = await run(process.execPath, [join(folder, 'program.js')], { cwd: folder, env });
  const { args, ...output } = JSON.parse(stdout);
  assert.deepEqual(output, {
    version: VERSION,
    refused: 'unavailable',
    tools: ['alarm_set', 'alarm_list', 'alarm_cancel'],
    why: 'line 1, column 13: the field "format" is duplicated',
    kinds: ['function', 'function'],
  });
  assert.deepEqual(args, [installed.program, 'mcp']);
});

test('every example of docs/guides/library.md compiles', async () => {
  const { folder } = installed;
  const page = readFileSync(join(ROOT, 'docs', 'guides', 'library.md'), 'utf8');
  const examples = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1]!);
  assert.equal(examples.length, 6);
  const files = examples.map((example, at) => {
    writeFileSync(join(folder, `example-${at}.ts`), `${example}export {};\n`);
    return `example-${at}.ts`;
  });
  await compile(['--skipLibCheck', ...files]);
});

test('the declarations of the package compile by themselves, without skipLibCheck', async () => {
  const names = ['reveille', 'reveille/client', 'reveille/verify', 'reveille/tools'];
  const lines = names.map((name, at) => `export * as part${at} from '${name}';\n`);
  writeFileSync(join(installed.folder, 'declarations.ts'), lines.join(''));
  await compile(['declarations.ts']);
});

test('a module outside the exports cannot be imported', async () => {
  const source = "await import('reveille/src/cli/run.js').catch(({ code }) => console.log(code));";
  assert.equal((await script(source)).stdout, 'ERR_PACKAGE_PATH_NOT_EXPORTED\n');
});
