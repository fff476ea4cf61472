import assert from 'node:assert/strict';
import { test } from 'node:test';
import pg from 'pg';
import { ReveilleError } from '../../../wire/errors.ts';
import { isConnectionLost, storeError } from './postgres-error.ts';

function serverError(code: string, severity = 'ERROR'): Error {
  return Object.assign(new pg.DatabaseError(`said ${code}`, 10, 'error'), { code, severity });
}

const VERDICTS: [what: string, thrown: Error, code: string, retryable: boolean, lost: boolean][] = [
  [
    'a refused connection',
    Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' }),
    'unavailable',
    true,
    true,
  ],
  ['a cut connection', new Error('Connection terminated unexpectedly'), 'unavailable', true, true],
  ['a silent connection', new Error('Query read timeout'), 'unavailable', true, true],
  ['a server that is shutting down', serverError('57P01', 'FATAL'), 'unavailable', true, true],
  ['a server that is starting', serverError('57P03', 'FATAL'), 'unavailable', true, true],
  ['a primary that was demoted', serverError('25006'), 'unavailable', true, true],
  ['a full disk', serverError('53100'), 'unavailable', true, false],
  ['an I/O error', serverError('58030'), 'unavailable', true, false],
  ['a statement that took too long', serverError('57014'), 'unavailable', true, false],
  ['a deadlock', serverError('40P01'), 'unavailable', true, false],
  ['a failure to serialize', serverError('40001'), 'unavailable', true, false],
  ['too many connections', serverError('53300', 'FATAL'), 'unavailable', true, true],
  ['a wrong password', serverError('28P01', 'FATAL'), 'unavailable', false, true],
  ['a missing database', serverError('3D000', 'FATAL'), 'unavailable', false, true],
  ['a missing right', serverError('42501'), 'unavailable', false, false],
  ['damage', serverError('XX001'), 'unavailable', false, false],
  ['a wrong statement of this service', serverError('42601'), 'internal', true, false],
];

for (const [what, thrown, code, retryable, lost] of VERDICTS) {
  test(`${what} is ${code}, ${retryable ? '' : 'not '}retryable; the connection is ${lost ? 'lost' : 'kept'}`, () => {
    const error = storeError(thrown);
    assert.deepEqual([error.code, error.retryable, isConnectionLost(thrown)], [code, retryable, lost]);
    assert.equal(error.cause, thrown);
  });
}

test('an error of this service stays unchanged', () => {
  const ours = new ReveilleError('conflict', 'no');
  assert.equal(storeError(ours), ours);
});

test('a host with several addresses reports each failure once', () => {
  const failed = new AggregateError([new Error('refused'), new Error('refused'), new Error('no route')]);
  assert.match(storeError(failed).message, /\(refused, no route\)/);
});
