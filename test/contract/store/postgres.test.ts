import { after, before, test } from 'node:test';
import { rounds } from '../../support/random/random.ts';
import { type PostgresUnderTest, startPostgresUnderTest } from './postgres-under-test.ts';
import { walkRandomly } from './random-walk.ts';
import { describeStore } from './suite.ts';

let postgres: PostgresUnderTest;
before(async () => {
  postgres = await startPostgresUnderTest();
});
after(() => postgres.close());

const open = () => postgres.openUnderTest();

describeStore('PostgreSQL', open);

test('after any sequence of operations, the store on PostgreSQL answers as the model does', () =>
  walkRandomly(open, Number(process.argv[2] ?? rounds(4, 25))));
