import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { publishedSchemas } from '../../schemas/generate.ts';

test('the published schemas match src/wire; "npm run schemas" writes them anew', () => {
  for (const [name, text] of publishedSchemas()) {
    const checkedIn = readFileSync(join(import.meta.dirname, '..', '..', 'schemas', name), 'utf8');
    assert.equal(checkedIn, text, `schemas/${name}`);
  }
});
