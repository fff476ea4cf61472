import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../test/support/temporary.ts';
import { hostOfClient, mayBeDocument, normaliseMetadata } from './client-metadata.ts';
import { parseOauthServerConfig } from './config.ts';
import { type ClientMetadata, LIBRARY_VERSION, locateLibrary } from './library.ts';

const HOME = { REVEILLE_HOME: '/home/of/it', ROUTER_OAUTH: '1' };

test('it is off by default, and a public address must be one that clients can use', () => {
  assert.equal(parseOauthServerConfig({ ...HOME, ROUTER_OAUTH: '' }), undefined);
  assert.equal(parseOauthServerConfig(HOME)?.dataDir, '/home/of/it/router');
  const at = (more: Record<string, string>) => () => parseOauthServerConfig({ ...HOME, ...more });
  assert.throws(at({ ROUTER_PUBLIC_HOST: '0.0.0.0' }), /set ROUTER_PUBLIC_URL/);
  assert.throws(at({ ROUTER_PUBLIC_TLS: 'terminated-in-front' }), /set ROUTER_PUBLIC_URL/);
  assert.throws(at({ ROUTER_PUBLIC_URL: 'http://reveille.example' }), /must begin with https/);
  assert.throws(at({ ROUTER_PUBLIC_URL: 'https://example.com/reveille' }), /must have no path/);
  assert.ok(at({ ROUTER_PUBLIC_URL: 'https://example.com', ROUTER_PUBLIC_HOST: '0.0.0.0' })());
  assert.ok(at({ ROUTER_PUBLIC_URL: 'http://localhost:8087' })());
});

test('a missing library, or one of another version, is named with the command that installs it', (t) => {
  assert.match(locateLibrary(undefined), /oidc-provider/, 'it is installed for these tests');
  const home = temporaryFolder(t);
  const at = join(home, 'node_modules', 'oidc-provider');
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'package.json'), `{"name":"oidc-provider","version":"1.0.0","main":"index.js"}`);
  writeFileSync(join(at, 'index.js'), '');
  const elsewhere = temporaryFolder(t);
  assert.throws(
    () => locateLibrary(home, elsewhere),
    (error: Error) =>
      error.message.includes('but 1.0.0 is installed') &&
      error.message.includes(`npm install --prefix ${home} oidc-provider@${LIBRARY_VERSION}`),
  );
  assert.throws(() => locateLibrary(undefined, elsewhere), /which is not installed/);
});

test('a client with an address on the computer of the user is a program there', () => {
  const kindOf = (...redirect_uris: unknown[]) => {
    const metadata: ClientMetadata = {
      redirect_uris,
      application_type: 'web',
      scope: 'openid',
      id_token_signed_response_alg: 'RS256',
    };
    normaliseMetadata(metadata, (why) => new Error(why));
    assert.ok(!('scope' in metadata) && !('id_token_signed_response_alg' in metadata));
    return metadata.application_type;
  };
  assert.equal(kindOf('https://app.example.com/cb'), 'web');
  assert.equal(kindOf('https://vscode.dev/redirect', 'http://127.0.0.1:33418/'), 'native');
  assert.equal(kindOf('com.example.app:/callback'), 'native');
  assert.equal(kindOf(), 'web');
  for (const uri of ['http://192.168.0.2/cb', 'javascript:x', 'ftp://a/b', 'x:/y', 'not a uri', 3, null])
    assert.throws(() => kindOf(uri), /redirect_uris/, String(uri));
});

test('the host of a client id is that of its document', () => {
  assert.equal(hostOfClient('https://claude.ai/oauth/client.json'), 'claude.ai');
  assert.equal(hostOfClient('https://claude.ai@evil.example/client.json'), 'evil.example');
  assert.equal(hostOfClient('https://cläude.ai/client.json'), 'xn--clude-hra.ai');
  assert.equal(hostOfClient('a-registered-client'), undefined);
  assert.deepEqual(
    [mayBeDocument('https://a.example'), mayBeDocument('https://a.example/'), mayBeDocument('https://a.example/c')],
    [...[false, false, true]],
  );
});
