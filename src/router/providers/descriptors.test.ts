import assert from 'node:assert/strict';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { temporaryFolder } from '../../../test/support/temporary.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { startBench } from '../testing/bench.ts';
import { descriptorOf, PROVIDERS, shownSpec, specOfTombstone, type Target } from './descriptors.ts';
import { HIDDEN } from './redaction.ts';

const CANARY = 'canary-of-a-member-that-nobody-knows';
const SECRETS = { later: CANARY, later_group: { name: CANARY }, later_list: [CANARY], later_number: 4_711_474_711 };

const NAMES = PROVIDERS.map(({ name }) => name);
const LIST = NAMES.join(', ');

const saysCanary = (text: string) => text.includes('canary-of-a-member') || text.includes('4711474711');

describe('an unknown member of a specification', () => {
  test('is hidden whatever its value, and a tombstone does not keep it', () => {
    for (const { name: provider } of PROVIDERS) {
      const target = { provider, spec: SECRETS };
      const shown = shownSpec(target);
      for (const member of Object.keys(SECRETS)) assert.equal(shown[member], HIDDEN, `${provider} ${member}`);
      assert.ok(!saysCanary(JSON.stringify(specOfTombstone(target as unknown as Target))));
    }
  });

  test('is not repeated when a machine is registered with it', async (t) => {
    const router = await startBench(t);
    for (const { name: provider } of PROVIDERS) {
      for (const [member, value] of Object.entries(SECRETS)) {
        const answer = await router.admin('PUT', '/alice', { provider, spec: { [member]: value } });
        assert.equal(answer.status, 400);
        assert.match(answer.json.error.message, new RegExp(`unknown field "spec.${member}"`));
        assert.ok(!saysCanary(answer.text), answer.text);
      }
      for (const spec of [CANARY, [CANARY], { env: CANARY, url: CANARY, lease_nonce: `${CANARY} ` }]) {
        const answer = await router.admin('PUT', '/alice', { provider, spec });
        assert.equal(answer.status, 400);
        assert.ok(!saysCanary(answer.text), answer.text);
      }
    }
    const answer = await router.admin('PUT', '/alice', { provider: 'moon', spec: { anything: CANARY } });
    assert.match(answer.json.error.message, new RegExp(`^provider must be one of ${LIST} \\(got "moon"\\)`));
    assert.ok(!saysCanary(answer.text), answer.text);
  });

  test('is shown by no route when the registry contains it, nor is an unknown provider', async (t) => {
    const settings = { ROUTER_DATA_DIR: temporaryFolder(t) };
    const before = await startBench(t, { settings });
    for (const user of [...NAMES, 'moon'])
      await before.put(user, { provider: 'http', spec: { url: 'http://127.0.0.1:9' }, token: 'a-token-of-sixteen' });
    await before.close();
    const db = new DatabaseSync(join(settings.ROUTER_DATA_DIR, 'router.db'));
    const change = db.prepare('UPDATE machines SET provider = ?, spec = ? WHERE user_id = ?');
    for (const name of NAMES) change.run(name, JSON.stringify(SECRETS), name);
    change.run('moon', JSON.stringify(SECRETS), 'moon');
    db.close();
    const router = await startBench(t, { settings });
    const texts: string[] = [(await router.admin('GET', '')).text, (await router.admin('GET', '?state=deleted')).text];
    for (const user of [...NAMES, 'moon']) {
      const requests: [method: string, path: string, body?: unknown][] = [
        ['GET', ''],
        ['GET', '/turns'],
        ['GET', '/changes'],
        ['POST', '/suspend'],
        ['POST', '/restore'],
        ['POST', '/rotate-token'],
        ['PUT', '/budget', { wakes_per_hour: 1 }],
        ['DELETE', '/budget'],
        ['PUT', '', { provider: 'http', spec: { url: 'http://127.0.0.1:9' } }],
        ['DELETE', ''],
        ['GET', ''],
      ];
      texts.push((await router.wake(user)).text);
      for (const [method, path, body] of requests)
        texts.push((await router.admin(method, `/${user}${path}`, body)).text);
    }
    assert.ok(texts.some((text) => text.includes(`provider must be one of ${LIST}`)));
    for (const text of texts) assert.ok(!saysCanary(text), text);
  });
});

test('an unknown provider is an error that names all providers', () => {
  assert.throws(
    () => descriptorOf('moon'),
    (error) => error instanceof ReveilleError && error.message === `provider must be one of ${LIST} (got "moon")`,
  );
});

test('a required flag sets a required member, and each flag sets an existing one', () => {
  for (const { name } of PROVIDERS) {
    const { flags, schema } = descriptorOf(name);
    const shape = (schema as unknown as { shape: Record<string, { isOptional(): boolean }> }).shape;
    for (const { member, needed } of flags) {
      const [top = ''] = member.split('.');
      assert.ok(shape[top], `${name} ${member}`);
      assert.equal(needed !== undefined, !shape[top].isOptional(), `${name} ${member}`);
    }
  }
});
