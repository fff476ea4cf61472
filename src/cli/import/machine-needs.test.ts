import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { lacking } from './machine-needs.ts';

test('a program or folder that the machine lacks, or that its sandbox hides, is named', (t) => {
  const [folder, other] = [temporaryFolder(t), temporaryFolder(t)];
  for (const path of [join(folder, 'job.sh'), join(other, 'job.sh'), join(other, 'tool')])
    writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 });
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'text'), '');
  const lacks = lacking('/usr/bin:/bin', folder);
  const no = (what: string) => [`your agent's machine has no ${what}`];
  assert.deepEqual(lacks({ program: 'sh' }), []);
  assert.deepEqual(lacks({ program: 'no-such-program' }), no('program no-such-program'));
  assert.deepEqual(lacks({ program: 'tool' }), no('program tool'));
  assert.deepEqual(lacks({ program: 'tool', searchPath: other }), []);
  assert.deepEqual(lacks({ program: './job.sh' }), []);
  assert.deepEqual(lacks({ program: './job.sh', folder: other }), []);
  assert.deepEqual(lacks({ program: './job.sh', folder: 'sub' }), no('program ./job.sh'));
  assert.deepEqual(lacks({ program: join(folder, 'text') }), no(`program ${join(folder, 'text')}`));
  assert.deepEqual(lacks({ program: '/nowhere/x', folder: '/nowhere' }), [
    ...no('folder /nowhere'),
    ...no('program /nowhere/x'),
  ]);
  assert.deepEqual(lacks({}), []);
  const closed = lacking('/usr/bin:/bin', folder, ['/usr', '/bin']);
  assert.deepEqual(closed({ program: 'sh' }), []);
  assert.deepEqual(closed({ program: join(folder, 'job.sh'), folder: join(folder, 'sub') }), []);
  const hides = (what: string) => `the sandbox of commands hides the ${what}; put it into the folder of the machine`;
  const job = join(other, 'job.sh');
  assert.deepEqual(closed({ program: job, folder: other }), [hides(`folder ${other}`), hides(`program ${job}`)]);
  // Without a machine, a relative path has no folder.
  assert.deepEqual(lacking('/usr/bin:/bin', undefined)({ program: './job.sh', folder: 'sub' }), []);
});
