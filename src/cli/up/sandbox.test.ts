import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { hasBubblewrap } from '../../../test/support/tools.ts';
import { replacePrivateFile } from '../../kit/identity/private-file.ts';
import { homeAt } from '../home/home.ts';
import { machineSandbox } from './sandbox.ts';

test("in a user's own home, files that the program replaces while a sandboxed program runs stay hidden from it", async (t) => {
  const { PATH } = process.env;
  if (!(await hasBubblewrap(t))) return;
  const person = mkdtempSync(join(tmpdir(), 'reveille-own-home-'));
  t.after(() => rmSync(person, { recursive: true }));
  const home = homeAt(person);
  const cwd = join(person, 'work');
  mkdirSync(cwd);
  const sandbox = machineSandbox({ home, settings: {}, environment: { HOME: person, PATH } }, 'required');
  const script = 'echo ready; read word; ls ..; cat ../person/* 2>&- || echo nothing';
  const { command } = await sandbox.wrap({ command: ['sh', '-c', script], cwd, env: {} });
  const program = spawn(command[0]!, command.slice(1), { cwd, stdio: ['pipe', 'pipe', 'inherit'] });
  const said: string[] = [];
  for await (const line of createInterface({ input: program.stdout })) {
    said.push(line);
    if (line !== 'ready') continue;
    for (const file of [home.chatHistoryFile, home.newsFile]) replacePrivateFile(file, 'typed text and notifications');
    program.stdin.end('go on\n');
  }
  assert.deepEqual(said, ['ready', 'keys', 'person', 'work', 'nothing']);
});
