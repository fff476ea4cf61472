/**
 * Checks the agents of this folder with an alarm: the alarm starts the agent, the message arrives unchanged, and each
 * occurrence is one turn.
 */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../test/support/eventually.ts';
import { type Installation, startInstallation } from '../../test/support/installation.ts';
import { sharedOwner, temporaryFolder } from '../../test/support/temporary.ts';
import { needs } from '../../test/support/tools.ts';

const WORDS = 'Look at the "build" – and say so 🎈';
const AGENTS = [
  { name: 'agent.py', program: 'python3', skip: needs('python3') },
  { name: 'agent.ts', program: process.execPath, skip: false },
];

describe('an example agent', () => {
  const owner = sharedOwner();
  let installation: Installation;
  before(async () => {
    installation = await startInstallation(owner);
  });
  after(() => owner.end());

  for (const { name, program, skip } of AGENTS) {
    test(`${name} is started by an alarm and has one turn`, { skip }, async () => {
      const folder = join(temporaryFolder(owner), 'agent');
      mkdirSync(folder);
      const command = [program, join(import.meta.dirname, name)];
      await installation.run(
        'machine',
        'put',
        '--provider',
        'process',
        '--no-sandbox',
        '--dir',
        folder,
        '--',
        ...command,
      );
      const { id } = await installation.client.createAlarm({ kind: 'once', wake_message: WORDS, delay_seconds: 1 });
      await eventually(`${name} took the wake`, async () => {
        const { fires } = await installation.client.listFires(id);
        return fires.some(({ outcome }) => outcome === 'delivered');
      });
      const book = new DatabaseSync(join(folder, 'turns.db'), { readOnly: true });
      const turns = book.prepare('SELECT message FROM turns').all();
      book.close();
      assert.equal(turns.length, 1);
      assert.ok(String(turns[0]!.message).includes(WORDS));
    });
  }
});
