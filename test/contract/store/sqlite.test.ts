import { test } from 'node:test';
import { rounds } from '../../support/random/random.ts';
import { walkRandomly } from './random-walk.ts';
import { openSqliteUnderTest } from './sqlite-under-test.ts';
import { describeStore } from './suite.ts';

describeStore('SQLite', openSqliteUnderTest);

test('after any sequence of operations, the store on SQLite answers as the model does', () =>
  walkRandomly(openSqliteUnderTest, rounds(15, 100)));
