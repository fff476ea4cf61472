import { test } from 'node:test';
import { rounds } from '../../support/random/random.ts';
import { walkRandomly } from './random-walk.ts';
import { openSqliteUnderTest } from './sqlite-under-test.ts';
import { describeStore } from './suite.ts';

describeStore('SQLite', openSqliteUnderTest);

test('whatever is done to the store on SQLite, it answers as the model does', () =>
  walkRandomly(openSqliteUnderTest, rounds(15, 100)));
