/**
 * The parts of `npm run check` as tests: `npm test` runs them in one process beside the suites, which often wait.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { test } from 'node:test';

const ROOT = resolve(import.meta.dirname, '..', '..');
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
const PATH = [join(ROOT, 'node_modules', '.bin'), process.env.PATH].join(delimiter);
/** Of a run of Node's test runner: a program that also runs tests would report them to this process. */
const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;

for (const [, name] of scripts.check!.matchAll(/\bnpm run --silent (check:\w+)/g))
  test(`npm run ${name}`, () => {
    const options = { cwd: ROOT, env: { ...inherited, PATH }, shell: true, encoding: 'utf8' } as const;
    // More threads of the compiler check much of the program twice.
    const command = `${scripts[name!]}${name === 'check:types' ? ' --singleThreaded' : ''}`;
    const { status, stdout, stderr } = spawnSync(command, options);
    assert.equal(status, 0, `${stdout}${stderr}`.trim());
  });
