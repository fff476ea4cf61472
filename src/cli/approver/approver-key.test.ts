import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { approverPlace, loadOrMakeApprover } from './approver-key.ts';

test('the key of who approves lies beside the home, in the folder of the system for settings', () => {
  const environment = { HOME: '/home/ada', REVEILLE_HOME: '/home/ada/.reveille' };
  const fileOn = (platform: NodeJS.Platform, more = {}) => approverPlace({ ...environment, ...more }, platform).file;
  assert.equal(fileOn('linux'), '/home/ada/.config/reveille-approver/approver.json');
  assert.equal(fileOn('darwin'), '/home/ada/Library/Application Support/reveille-approver/approver.json');
  assert.equal(fileOn('linux', { XDG_CONFIG_HOME: '/settings' }), '/settings/reveille-approver/approver.json');
  assert.equal(fileOn('linux', { REVEILLE_APPROVER_DIR: '/stick' }), '/stick/approver.json');
});

test('the first key is made there, for its owner alone, and nothing of it in the home', async (t) => {
  const folder = temporaryFolder(t);
  const environment = {
    HOME: folder,
    REVEILLE_HOME: join(folder, '.reveille'),
    REVEILLE_APPROVER_STORE: 'file',
  };
  const made = await loadOrMakeApprover(environment, 0);
  assert.equal(made.file, approverPlace(environment).file);
  assert.equal(statSync(made.file).mode & 0o777, 0o600);
  assert.ok(!existsSync(environment.REVEILLE_HOME));
  const again = await loadOrMakeApprover(environment, 1);
  assert.equal(again.publicKey, made.publicKey);
  assert.deepEqual(readdirSync(join(made.file, '..')), ['approver.json']);
});
