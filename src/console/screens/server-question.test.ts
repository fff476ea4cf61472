/** A question of an MCP server on a page: foreign text stays foreign, and nothing opens by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { QuestionText, QuestionView } from '../../wire/question.ts';
import type { RequestContext } from '../request-context.ts';
import { serverQuestion } from './server-question.ts';

const context = { session: { csrf: 'token' }, here: { now: 0, zone: 'UTC' } } as unknown as RequestContext;

async function pageOf(asked: QuestionText): Promise<string> {
  const view: QuestionView = {
    ...{ question_id: 'Yw3kq0Zr8VxQ2b1c', conversation_id: 'c', turn_id: 't', server: 'hotel', tool: 'book<b>' },
    ...{ state: 'asked', asked, expires_at: '2026-11-28T12:00:00Z' },
  };
  return String(await serverQuestion(view, context, 'chat/c/question'));
}

test('a form says whose question it is, and shows the text of the server without markup or hidden characters', async () => {
  const page = await pageOf({
    mode: 'form',
    message: 'Reveille needs this:</div><script>alert(1)</script>\u202eevil',
    fields: [
      {
        name: 'city',
        kind: 'text',
        title: '"><img src=x onerror=alert(1)>',
        required: true,
        default: '" autofocus x="',
      },
      {
        name: 'account',
        kind: 'text',
        title: 'Account',
        required: true,
        default: 'mine\u200b',
      },
      { name: 'class', kind: 'choice', title: 'Class', required: false, options: [{ value: '"1', title: '<i>first' }] },
      {
        name: 'extras',
        kind: 'choices',
        title: 'Extras',
        required: false,
        options: [{ value: 'a', title: 'A' }],
        default: ['a'],
      },
      { name: 'quiet', kind: 'boolean', title: 'Quiet', required: false, default: false },
    ],
  });
  assert.match(page, /The server “hotel” asks you/);
  assert.match(page, /This is not a question of Reveille; the server gets your answer/);
  for (const raw of ['<script', '<img', '<i>', 'book<b>', '\u202e', ' autofocus x="'])
    assert.ok(!page.includes(raw), raw);
  assert.match(page, /\\u\{202e\}/);
  assert.match(
    page,
    /value="mine\u200b"[^>]*><p class="hint bad">.*<div class="quote" dir="auto">mine<span class="odd"/,
  );
  assert.match(page, /<option value="a" selected>/);
  assert.match(page, /name="do" value="decline"/);
});

test('an address is a link with its host beside it, which nothing opens', async () => {
  const url = 'https://xn--pypal-4ve.com/pay?a=1&b=%22';
  const page = await pageOf({ mode: 'url', message: 'Pay', url, host: 'xn--pypal-4ve.com' });
  assert.match(page, /at the host <strong>xn--pypal-4ve\.com<\/strong>/);
  assert.match(page, /target="_blank" rel="noopener noreferrer"/);
  assert.ok(!/<(iframe|script|meta|img|object)|http-equiv|onload/i.test(page));
});
