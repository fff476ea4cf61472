import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { ReveilleError } from '../../../wire/errors.ts';
import { parseAddress, withoutPassword } from './address.ts';

test('one host is one server', () => {
  const [server, ...others] = parseAddress('postgres://ann:s3cret@db.example:6543/chronos');
  assert.deepEqual(others, []);
  assert.equal(server?.name, 'db.example:6543/chronos');
  const client = new pg.Client(server.connection);
  assert.deepEqual(
    [client.user, client.password, client.host, client.port, client.database],
    ['ann', 's3cret', 'db.example', 6543, 'chronos'],
  );
});

test('several hosts are tried in order, each with its own port and the same other parts', () => {
  const servers = parseAddress(
    'postgresql://ann:p%40ss%2C@h1:1111,h2,[::1]:3333/chronos?target_session_attrs=read-write',
  );
  assert.deepEqual(
    servers.map(({ name }) => name),
    ['h1:1111/chronos', 'h2:5432/chronos', '::1:3333/chronos'],
  );
  for (const { connection } of servers) assert.equal(new pg.Client(connection).password, 'p@ss,');
});

test('parameters of the client library reach it, and parameters that only libpq has do not', () => {
  const [server] = parseAddress(
    'postgres://h/db?application_name=mine&target_session_attrs=primary&load_balance_hosts=random',
  );
  assert.match(server?.connection.connectionString ?? '', /\?application_name=mine$/);
});

const REFUSED: [uri: string, message: RegExp][] = [
  ['', /is not a PostgreSQL address/],
  ['mysql://ann:s3cret@h/db', /is not a PostgreSQL address/],
  ['postgres://ann:s3cret@h1,,h2/db', /names an empty host/],
  ['postgres://ann:s3cret@h1:99999/db', /CHRONOS_POSTGRES_URI/],
  ['postgres://ann:s3cret@h1:x/db', /CHRONOS_POSTGRES_URI/],
  ['postgres://ann:s3#cret@h1/db', /is not a PostgreSQL address/],
  [
    'postgres://ann:s3cret@h/db?target_session_attrs=standby',
    /target_session_attrs=standby, but alarms have to be written/,
  ],
  ['postgres://ann:s3cret@h/db?sslrootcert=/no/such/file', /\/no\/such\/file/],
];

for (const [uri, message] of REFUSED) {
  test(`the address ${JSON.stringify(uri.replace('s3cret', '…'))} is rejected without showing the password`, () => {
    assert.throws(
      () => parseAddress(uri),
      (error) => {
        assert.ok(error instanceof ReveilleError);
        assert.equal(error.code, 'invalid_request');
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /s3|cret/);
        return true;
      },
    );
  });
}

test('a displayed address has a placeholder for the password', () => {
  const cases: [uri: string, shown: string][] = [
    ['postgres://ann:s3cret@db/chronos', 'postgres://ann:<password>@db/chronos'],
    ['postgresql://ann:s:3%40cret@h1:1,h2:2/c?a=b', 'postgresql://ann:<password>@h1:1,h2:2/c?a=b'],
    ['postgres://:s3cret@db/chronos', 'postgres://:<password>@db/chronos'],
    ['postgres://ann@db/c?sslmode=require&password=s3cret', 'postgres://ann@db/c?sslmode=require&password=<password>'],
    ['postgres://ann@db/c?sslpassword=s3cret#x', 'postgres://ann@db/c?sslpassword=<password>#x'],
    ['postgres://ann@db:5432/chronos', 'postgres://ann@db:5432/chronos'],
    ['postgres://db:5432/a@b', 'postgres://db:5432/a@b'],
  ];
  for (const [uri, shown] of cases) assert.equal(withoutPassword(uri), shown);
});
