import { openSqliteUnderTest } from './sqlite-under-test.ts';
import { describeStore } from './suite.ts';

describeStore('SQLite', openSqliteUnderTest);
