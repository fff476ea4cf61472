/**
 * `npm run test:without -- [TOOL…]`: runs the suites of the product half that name a tool, with the tool's programs
 * hidden from the PATH, and prints a table. Without names it hides each optional tool alone, then all of them together.
 * A name other than an optional tool's is a program.
 *
 * Exit 0: nothing failed. 1: a test failed or did not end.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { runProcesses } from './run-processes.ts';
import { processesOf, suitesOf, testFilesOf } from './suites.ts';
import { programsOf, TOOL_NAMES, type Tool } from './tools.ts';

const PATH = process.env.PATH ?? '';
/** The calls by which a suite uses the sandbox without naming bubblewrap. */
const OTHER_NAMES: Partial<Record<string, string[]>> = { bubblewrap: ['needsSandbox'] };

const isTool = (name: string): name is Tool => (TOOL_NAMES as string[]).includes(name);
const hiddenBy = (name: string) => (isTool(name) ? programsOf(name) : [name]);

/** A folder of links to all programs of the PATH but these. */
function pathWithout(folder: string, programs: readonly string[]): string {
  const linked = new Set(programs);
  for (const place of PATH.split(delimiter)) {
    let names: string[] = [];
    try {
      names = readdirSync(place);
    } catch {
      // A folder of the PATH need not exist.
    }
    for (const name of names.filter((each) => !linked.has(each))) {
      linked.add(name);
      symlinkSync(join(place, name), join(folder, name));
    }
  }
  return folder;
}

const texts = new Map<string, string>();
function textOf(file: string): string {
  if (!texts.has(file)) texts.set(file, readFileSync(file, 'utf8'));
  return texts.get(file)!;
}

/** Whether a suite, or a test module that it imports, has one of the names in quotes, or calls it. */
function isNamedIn(suite: string, names: readonly string[]): boolean {
  const namePattern = names.map((name) => RegExp.escape(name)).join('|');
  const pattern = new RegExp(`['"\`](?:${namePattern})['"\`]|\\b(?:has|needs)(?:${namePattern}|Sandbox)\\b`, 'i');
  return [...testFilesOf(suite)].some((file) => !file.endsWith('/support/tools.ts') && pattern.test(textOf(file)));
}

type Row = { hidden: string; suites: number; tests: number; skipped: number; failed: string[]; hanging: number };

async function runWithout(hidden: string, names: readonly string[]): Promise<Row> {
  const programs = names.flatMap(hiddenBy);
  const suites = suitesOf(['--product']).filter((suite) =>
    isNamedIn(suite, [...names, ...programs, ...names.flatMap((name) => OTHER_NAMES[name] ?? [])]),
  );
  const row: Row = { hidden, suites: suites.length, tests: 0, skipped: 0, failed: [], hanging: 0 };
  if (suites.length === 0) return row;
  const folder = mkdtempSync(join(tmpdir(), 'reveille-path-'));
  process.env.PATH = pathWithout(folder, programs);
  delete process.env.CI;
  try {
    for await (const { type, data } of runProcesses(processesOf(suites))) {
      if (type !== 'test:pass' && type !== 'test:fail') continue;
      if (data.details.type === 'suite' && data.skip === undefined) continue;
      row.tests++;
      if (data.skip !== undefined) row.skipped++;
      if (type !== 'test:fail') continue;
      const { failureType, message } = data.details.error as Error & { failureType?: string };
      // A parent fails with its tests, which are counted themselves.
      if (failureType === 'subtestsFailed') continue;
      row.failed.push(`${data.file ?? ''}: ${data.name}: ${message}`);
      if (/timed out/.test(message)) row.hanging++;
    }
  } finally {
    process.env.PATH = PATH;
    rmSync(folder, { recursive: true });
  }
  return row;
}

const words = process.argv.slice(2);
const alone = words.length > 0 ? words : TOOL_NAMES.filter((tool) => programsOf(tool).length > 0);
const runs: [string, string[]][] = alone.map((name) => [name, [name]]);
if (words.length === 0) runs.push(['all of them', alone]);
let failed = 0;
// Each row leaves a listener for the end of the process.
process.setMaxListeners(0);
console.log('hidden                 suites   tests  skipped  failed  hanging');
for (const [hidden, names] of runs) {
  const row = await runWithout(hidden, names);
  failed += row.failed.length;
  const columns = [row.suites, row.tests, row.skipped, row.failed.length, row.hanging];
  console.log(hidden.padEnd(20) + columns.map((count) => String(count).padStart(9)).join(''));
  for (const problem of row.failed) console.log(`  ${problem}`);
}
process.exitCode = failed > 0 ? 1 : 0;
