import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkTarget, isForPages, matchRoute, PROXIED_ROUTES } from './routes.ts';

const at = (target: string, method = 'GET') => {
  checkTarget(target);
  return matchRoute(PROXIED_ROUTES, method, target);
};

test('a target of the table is rebuilt from the table, with its query unchanged', () => {
  assert.deepEqual(at('/conversations/a.b:c-d_e?limit=3'), {
    route: PROXIED_ROUTES.getConversation,
    path: '/conversations/a.b%3Ac-d_e',
    query: 'limit=3',
  });
  assert.equal(at('/conversations/a%3Ab%3ac')?.path, '/conversations/a%3Ab%3Ac');
  assert.equal(at('/intents/i/gates/n/answer', 'POST')?.path, '/intents/i/gates/n/answer');
  assert.equal(at('/chat', 'POST')?.route, PROXIED_ROUTES.chat);
});

test('a target outside the table matches no route, and no target is corrected', () => {
  const none = [
    '/',
    '/chats',
    '/Chat',
    '/chat/',
    '/conversations/',
    '/conversations/a/turns',
    '/internal/wake',
    '/ch%61t',
  ];
  for (const target of [...none, '/conversations/a%20b', '/conversations/ä'.replace('ä', '%C3%A4')]) {
    assert.equal(at(target), undefined, target);
    assert.equal(at(target, 'POST'), undefined, target);
  }
  for (const method of ['PUT', 'DELETE', 'HEAD', 'OPTIONS', 'get', 'TRACE'])
    assert.equal(at('/conversations', method), undefined);
});

test('an ambiguous target is rejected', () => {
  const twofold = [
    ...['', 'chat', '*', 'http://x/chat', '//chat', '/chat//', '/a/./b', '/a/../b', '/..', '/.', '/a/%2e%2e/b'],
    ...[
      '/a%2fb',
      '/a%2Fb',
      '/a%5cb',
      '/a\\b',
      '/a%252fb',
      '/a%00',
      '/a%0d%0ab',
      '/a%',
      '/a%2',
      '/a%zz',
      '/a b',
      '/a#b',
    ],
    ...['/a\u0000b', '/\u00e4', '/a?b c', '/a;/../b', '/a%7f'],
  ];
  for (const target of twofold) assert.throws(() => checkTarget(target), { code: 'invalid_request' }, target);
  for (const target of ['/', '/a/b', '/a/b/?x=%2f..', '/a.b/..c', '/@a/;b=1,2']) checkTarget(target);
});

test('pages have every path except those of the daemon and the internal ones', () => {
  for (const target of ['/', '/?x', '/alarms', '/talk/1', '/assets/app.js']) assert.equal(isForPages(target), true);
  for (const target of [
    '/chat',
    '/events?x',
    '/conversations/1',
    '/internal/wake',
    '/admin',
    '/ADMIN/x',
    '/metrics',
    '/healthz',
  ])
    assert.equal(isForPages(target), false, target);
});
