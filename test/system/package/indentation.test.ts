import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withTabs } from '../../../packaging/indentation.ts';

test('code is indented with tabs, and the text of template literals is unchanged', () => {
  const source = ['if (a) {', '    b = `', '        text', '    ${', '        c}`;', '      d();', '}', ''].join('\n');
  const expected = ['if (a) {', '\tb = `', '        text', '    ${', '\t\tc}`;', '\t  d();', '}', ''].join('\n');
  assert.equal(withTabs('a.js', source), expected);
});
