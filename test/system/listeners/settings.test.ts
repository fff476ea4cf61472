import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseNeoConfig } from '../../../src/agents/neo/config.ts';
import { parseChronosConfig } from '../../../src/chronos/config.ts';
import { parseExecutorConfig } from '../../../src/executor/config.ts';
import { parseRouterConfig } from '../../../src/router/config.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { Settings } from '../../../src/wire/settings.ts';

const secret = (name: string) => `a long secret ${name}`;
const tokens = (...names: string[]) =>
  Object.fromEntries(names.map((name) => [name, secret(name).replaceAll(' ', '-')]));

const DAEMONS: Record<string, (settings: Settings) => unknown> = {
  CHRONOS: (settings) =>
    parseChronosConfig({
      ...tokens('CHRONOS_TOKEN', 'CHRONOS_AGENT_AUTH_SECRET', 'CHRONOS_ADMIN_TOKEN', 'CHRONOS_WAKE_TOKEN'),
      ...{ CHRONOS_DATA_DIR: '/d', CHRONOS_ENROLLMENT: 'required', ...settings },
    }),
  ROUTER: (settings) =>
    parseRouterConfig({ ...tokens('ROUTER_WAKE_TOKEN', 'ROUTER_ADMIN_TOKEN'), ROUTER_DATA_DIR: '/d', ...settings }),
  ROUTER_PUBLIC: (settings) => DAEMONS.ROUTER!(settings),
  EXECUTOR: (settings) =>
    parseExecutorConfig({ ...tokens('EXECUTOR_TOKEN', 'EXECUTOR_ADMIN_TOKEN'), EXECUTOR_DATA_DIR: '/d', ...settings }),
  NEO: (settings) => parseNeoConfig({ ...tokens('NEO_DAEMON_TOKEN'), NEO_DATA_DIR: '/d', ...settings }),
};

for (const [prefix, parse] of Object.entries(DAEMONS)) {
  const refusal = (settings: Settings): string => {
    try {
      parse(settings);
    } catch (error) {
      assert.ok(error instanceof ReveilleError);
      return error.message;
    }
    return assert.fail('it was accepted');
  };

  test(`${prefix}: beyond loopback it starts with TLS or with a declared TLS proxy, and logs which`, () => {
    for (const host of ['0.0.0.0', '::', '192.0.2.1', 'reveille.internal']) {
      const beyond = { [`${prefix}_HOST`]: host };
      const message = refusal(beyond);
      assert.ok(
        message.startsWith(`${prefix}_HOST is "${host}", which other machines can reach; without TLS`),
        message,
      );
      for (const way of [
        `${prefix}_TLS_CERT and ${prefix}_TLS_KEY`,
        `${prefix}_TLS=terminated-in-front`,
        `${prefix}_HOST=127.0.0.1`,
      ])
        assert.ok(message.includes(way), message);
      parse({ ...beyond, [`${prefix}_TLS`]: 'terminated-in-front' });
      parse({ ...beyond, [`${prefix}_TLS_CERT`]: '/cert.pem', [`${prefix}_TLS_KEY`]: '/key.pem' });
    }
    for (const host of ['127.0.0.1', '127.1.2.3', '::1', 'localhost']) parse({ [`${prefix}_HOST`]: host });
  });

  test(`${prefix}: half a certificate, or two contradictory TLS settings, stop the start`, () => {
    const [cert, key] = [{ [`${prefix}_TLS_CERT`]: '/c' }, { [`${prefix}_TLS_KEY`]: '/k' }];
    assert.match(refusal(cert), /_TLS_KEY is not set, but .*_TLS_CERT is/);
    assert.match(refusal(key), /_TLS_CERT is not set, but .*_TLS_KEY is/);
    assert.match(refusal({ ...cert, ...key, [`${prefix}_TLS`]: 'terminated-in-front' }), /remove one of the two/);
    assert.match(refusal({ [`${prefix}_TLS`]: 'yes' }), /_TLS must be terminated-in-front/);
    assert.match(refusal({ [`${prefix}_MAX_CONNECTIONS`]: '3' }), /_MAX_CONNECTIONS must be a whole number from 16/);
  });
}
