import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { z } from 'zod';
import { inheritedVariables, isWithheld, isWithheldFromServers } from '../../kit/process/inherited-variables.ts';
import { isSecretName, isSecretType } from '../../wire/settings.ts';
import { COMMON, OF_THE_PERSON, SETTINGS_OF } from './settings-names.ts';

const fields = Object.values(SETTINGS_OF)
  .flat()
  .flatMap(({ shape }) => Object.entries(shape as Record<string, z.ZodType>));
const others = [...Object.keys(COMMON), ...Object.keys(OF_THE_PERSON)];

/** Secrets of an agent's own daemon. Its machine gets them by name. */
const OF_AGENTS = /^(?:NEO|MATRIX)_/;
/** Credentials whose purpose is an MCP server. */
const FOR_SERVERS = new Set(['EXECUTOR_GIT_TOKEN', 'NEO_SEARCH_KEY', 'MATRIX_CHRONOS_TOKEN']);
/** Numbers. */
const IS_NUMBER = /_(?:TOKENS|SECONDS)$/;
/** Paths of secrets. */
const IS_PATH = /_(?:TLS_KEY|KEYFILE|KEYS|PASSPHRASE_FILE)$/;

test('every setting whose type is secret is withheld from machines and MCP servers', () => {
  const secret = fields.filter(([, schema]) => isSecretType(schema)).map(([name]) => name);
  assert.ok(secret.length >= 20, `${secret.length}`);
  const ofDaemons = secret.filter((name) => !OF_AGENTS.test(name));
  assert.deepEqual(
    ofDaemons.filter((name) => !isWithheld(name)),
    [],
  );
  assert.deepEqual(
    secret.filter((name) => !isWithheldFromServers(name) && !FOR_SERVERS.has(name)),
    [],
  );
});

test('every setting that is secret by its name has a secret type, or is withheld as a path', () => {
  const named = fields.filter(([name]) => isSecretName(name) && !IS_PATH.test(name) && !IS_NUMBER.test(name));
  assert.deepEqual(
    named.filter(([, schema]) => !isSecretType(schema)).map(([name]) => name),
    [],
  );
  const further = [...fields.map(([name]) => name), ...others].filter((name) => !OF_AGENTS.test(name));
  assert.deepEqual(
    further.filter((name) => (isSecretName(name) || name === 'REVEILLE_HOME') && !isWithheld(name)),
    [],
  );
});

test('a child inherits none of them', () => {
  const names = [...fields.map(([name]) => name), ...others];
  const own = Object.fromEntries(names.map((name) => [name, `value of ${name}`]));
  assert.deepEqual(Object.keys(inheritedVariables(own)).toSorted(), ['REVEILLE_LOG', 'REVEILLE_TLS_CA']);
});
