import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { packageAt } from './lasting-copy.ts';

test('a package whose name, version or dependency would lead out of its folder is refused', (t) => {
  const folder = temporaryFolder(t);
  const read = (fields: object) => {
    const whole = { name: 'reveille', version: '1.2.3', ...fields };
    writeFileSync(join(folder, 'package.json'), JSON.stringify(whole));
    return packageAt(folder);
  };
  for (const version of ['..', '../../x', '/x', '1.2', '1.2.3/../../x', '1.2.3-..\\x', ''])
    assert.throws(() => read({ version }), /must be a version/, version);
  for (const name of ['..', '../x', 'a/b', '@a/../b', '@/b', '/x', '']) {
    assert.throws(() => read({ name }), /must be the name of a package/, name);
    assert.throws(() => read({ dependencies: { [name]: '1' } }), /name of a package|Invalid key/, name);
  }
  const fine = { name: '@scope/pack.age', version: '1.2.3-rc.1+build', dependencies: { JSONStream: '^1' } };
  assert.deepEqual(read(fine), { ...fine, optionalDependencies: {} });
});
