import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientProof, personProof, readAuthorProof } from './person-rights.ts';

const secret = 'operators-token-canary';
const NOW = Date.UTC(2026, 10, 22);
const signed = { method: 'POST', path: '/v1/alarms', body: '{"wake_message":"ü"}' };

test('a proof names the person who made the request, for any name', () => {
  for (const name of ['ada', 'Ada Lovelace', '阿达.1', 'a\n"b']) {
    const proof = personProof(name, signed, { secret, now: NOW });
    assert.match(proof, /^[\x21-\x7e]+$/);
    const read = readAuthorProof(proof, { ...signed, body: Buffer.from(signed.body) }, { secret, now: NOW + 1 });
    assert.deepEqual(read, { kind: 'person', name });
    assert.ok(!proof.includes(secret));
  }
});

test('a proof is invalid for another body, path, time, name or token', () => {
  const proof = personProof('ada', signed, { secret, now: NOW });
  const read = (change: Partial<typeof signed>, now = NOW, given = proof, key = secret) =>
    readAuthorProof(given, { ...signed, ...change }, { secret: key, now })?.name;
  assert.equal(read({}), 'ada');
  assert.equal(read({ body: '{}' }), undefined);
  assert.equal(read({ path: '/v1/alarms/x' }), undefined);
  assert.equal(read({ method: 'PATCH' }), undefined);
  assert.equal(read({}, NOW + 6 * 60_000), undefined);
  assert.equal(read({}, NOW, proof.replace(Buffer.from('ada').toString('base64url'), 'Ym9i')), undefined);
  assert.equal(read({}, NOW, proof, 'another-token-canary'), undefined);
  for (const wrong of ['', 'ada', `${proof}.x`, proof.slice(0, -1), 'person1...']) {
    assert.equal(read({}, NOW, wrong), undefined);
  }
});

test('a proof of a program names its client, and cannot become that of a person', () => {
  const client = { client_id: 'https://chat.example/client.json', name: 'Chat' };
  const key = { secret, now: NOW };
  const proof = clientProof(client, signed, key);
  assert.deepEqual(readAuthorProof(proof, signed, key), { kind: 'client', ...client });
  const unnamed = clientProof({ client_id: 'c1' }, signed, key);
  assert.deepEqual(readAuthorProof(unnamed, signed, key), { kind: 'client', client_id: 'c1' });
  assert.equal(readAuthorProof(proof.replace('client1', 'person1'), signed, key), undefined);
  assert.equal(readAuthorProof(personProof('ada', signed, key).replace('person1', 'client1'), signed, key), undefined);
});
