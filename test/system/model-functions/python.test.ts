/** The tools of Reveille as the libraries of Python agents send them to each provider. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { temporaryFolder } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';
import { type Conversion, checkConversions, TOOLS } from './table.ts';

/** It takes a minute. A registry that does not answer must not fail the suite. */
const INSTALL_LIMIT_MS = 5 * 60_000;

async function run(program: string, args: readonly string[], input = '', timeout?: number) {
  const child = spawn(program, args, { stdio: 'pipe', timeout });
  child.stdin.end(input);
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { stdout, stderr, status };
}

test('the libraries of Python agents send all tools unchanged', { skip: needs('python3-venv') }, async (t) => {
  const folder = temporaryFolder(t);
  const python = join(folder, 'bin', 'python');
  await run('python3', ['-m', 'venv', folder]);
  const requirements = join(import.meta.dirname, 'requirements.txt');
  const options = ['--quiet', '--disable-pip-version-check', '--no-deps', '--no-compile', '--only-binary', ':all:'];
  const install = ['-m', 'pip', 'install', ...options, '--requirement', requirements];
  const installed = await run(python, install, '', INSTALL_LIMIT_MS);
  if (installed.status !== 0) {
    const why = installed.status === null ? 'it took too long' : installed.stderr.trim().split('\n').at(-1);
    return t.skip(`pip cannot install the libraries: ${why}`);
  }
  const { stdout, stderr } = await run(python, [join(import.meta.dirname, 'convert.py')], JSON.stringify(TOOLS));
  const lines = stdout.trim().split('\n');
  if (lines.length !== TOOLS.length * 8) throw new Error(stderr);
  checkConversions(
    t,
    lines.map((line) => JSON.parse(line) as Conversion),
    // langchain-google-genai omits them.
    { accepted: ['converted', 'without bounds'] },
  );
});
