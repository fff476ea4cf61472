/** A passphrase in a real terminal: requested when it is needed, never shown, and entered twice when it is new. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PROGRAM } from '../../../src/cli/home/package-root.ts';
import { ADMIN_TOKEN } from '../../support/cluster/approval.ts';
import { reveille } from '../../support/command-line.ts';
import { watchCommand } from '../../support/pseudo-terminal.ts';
import { temporaryFolder } from '../../support/temporary.ts';
import { needs } from '../../support/tools.ts';
import { callerOf, startedExecutor, TOKEN, transfer } from '../executor/executor-bench.ts';
import { PROMPT } from './screens.ts';

const skip = needs('script');
const PASSPHRASE = 'a horse that nobody has stapled';
const WRONG = 'another horse altogether';
const SIZE = { columns: 80, rows: 24 };
const ASKED = /Passphrase of the approver's key:$/;

/** A user with an enrolled, unsealed key. */
async function open(t: TestContext) {
  const folder = temporaryFolder(t);
  const executor = await startedExecutor(t, folder);
  const env = {
    EXECUTOR_PORT: String(executor.port),
    EXECUTOR_TOKEN: TOKEN,
    EXECUTOR_ADMIN_TOKEN: ADMIN_TOKEN,
    MATRIX_USER_ID: 'ada',
    REVEILLE_APPROVER_DIR: join(folder, 'approver'),
    REVEILLE_APPROVER_STORE: 'file',
  };
  const home = join(folder, 'home');
  const run = (args: string[], input = '') => reveille(home, args, { env, input });
  assert.equal((await run(['approver', 'enroll'])).status, 0);
  const here = { ...env, PATH: process.env.PATH ?? '', HOME: home, REVEILLE_HOME: home };
  const inTerminal = (args: string[]) => {
    const watched = watchCommand(SIZE, [process.execPath, PROGRAM, ...args], here);
    let isOver = false;
    const end = async () => {
      if (!isOver) await watched.end();
      isOver = true;
    };
    t.after(end);
    return {
      ...watched,
      /** @returns all text that was on the screen, in one line */
      async seen(): Promise<string> {
        const all = watched.all().join('');
        await end();
        return all;
      },
    };
  };
  const keyFile = () => readFileSync(join(folder, 'approver', 'approver.json'), 'utf8');
  return { run, inTerminal, keyFile, ada: callerOf(executor, 'ada') };
}

/** No passphrase is shown, neither whole nor while it is typed. */
function assertHidden(screen: string): void {
  assert.doesNotMatch(screen, /horse|stapled|altogether/);
}

test('a new passphrase is entered twice, unseen, and two different entries seal nothing', { skip }, async (t) => {
  const { inTerminal, keyFile } = await open(t);
  const sealRun = inTerminal(['approver', 'seal']);
  await sealRun.until(/New passphrase:$/);
  await sealRun.type(`${PASSPHRASE}\r`, /Repeat it:$/);
  await sealRun.type(`${WRONG}\r`, /the two passphrases differ/);
  assertHidden(await sealRun.seen());
  assert.match(keyFile(), /"seed"/);

  const seal = inTerminal(['approver', 'seal']);
  await seal.until(/New passphrase:$/);
  await seal.type(`${PASSPHRASE}\r`, /Repeat it:$/);
  // A corrected typing error is no error.
  await seal.type(`${PASSPHRASE}x\u007f\r`, /Sealed\. The key in [\s\S]*answer\./);
  assertHidden(await seal.seen());
  assert.match(keyFile(), /"sealed"/);
  assert.doesNotMatch(keyFile(), /"seed"/);
});

test('a sealed key asks for its passphrase after the yes, unseen; a wrong passphrase approves nothing and is reported in one sentence', {
  skip,
}, async (t) => {
  const { run, inTerminal, ada } = await open(t);
  assert.equal((await run(['approver', 'seal'], `${PASSPHRASE}\n`)).status, 0);
  const id = await ada.submit({ intent: transfer() });
  await ada.waiting(id);

  const wrong = inTerminal(['intent', 'approve', id]);
  await wrong.until(PROMPT);
  await wrong.type('yes\r', ASKED);
  await wrong.type(`${WRONG}\r`, /the passphrase is wrong[^\n]*\n$/);
  assertHidden(await wrong.seen());
  assert.equal((await ada.state(id)).status, 'awaiting_approval');

  const left = inTerminal(['intent', 'approve', id]);
  await left.until(PROMPT);
  await left.type('yes\r', ASKED);
  await left.type('a horse\u0003', /no passphrase was given\n$/);
  assertHidden(await left.seen());
  assert.equal((await ada.state(id)).status, 'awaiting_approval');

  const right = inTerminal(['intent', 'approve', id]);
  await right.until(PROMPT);
  await right.type('yes\r', ASKED);
  await right.type(`${PASSPHRASE}\r`, /Approved pay of [\s\S]*reveille intent watch/);
  assertHidden(await right.seen());
  await ada.until(id, 'completed');
});
