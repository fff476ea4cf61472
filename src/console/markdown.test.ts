/** Markdown of an agent is untrusted input of a page. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { markdown } from './markdown.ts';

const rendered = (text: string) => String(markdown(text));

test('headings, lists, tables and code become elements', () => {
  assert.match(
    rendered('# Builds\n\n- **orders** failed\n- mail'),
    /<h3>Builds<\/h3>\s*<ul>\s*<li><strong>orders<\/strong>/,
  );
  assert.match(rendered('| a | b |\n|---|---|\n| 1 | 2 |'), /<table>[\s\S]*<td>2<\/td>/);
  assert.match(rendered('```\nnpm test\n```'), /<pre tabindex="0" aria-label="Code"><code>npm test\n<\/code><\/pre>/);
});

test('markup, images and links to scripts stay text', () => {
  for (const text of [
    '<script>window.hit=1</script>',
    '<img src=x onerror="window.hit=1">',
    'a <b onclick="window.hit=1">b</b>',
    '[x](javascript:window.hit=1)',
    '[x](data:text/html,<script>1</script>)',
    '[x](sign-out)',
    '[x](//evil.example/)',
    '![x](https://evil.example/beacon.png)',
    '<javascript:window.hit=1>',
    '`<script>1</script>`',
    '```<script>\n<script>1</script>\n```',
    '[x]: javascript:window.hit=1\n\n[x]',
    '# <svg/onload=window.hit=1>',
    '[x](https://example.com/ "\\"><script>1</script>")',
  ]) {
    const page = rendered(text);
    assert.doesNotMatch(page, /<(?:script|img|b|svg)\b|href="(?!https:\/\/(?:example\.com|evil\.example)\/)/, page);
  }
});

test('a link names its window and withholds the address of the page', () => {
  assert.match(
    rendered('[docs](https://example.com/)'),
    /<a href="https:\/\/example\.com\/" rel="noopener noreferrer nofollow" target="_blank">docs<\/a>/,
  );
});

test('misleading characters are marked in text and in code', () => {
  assert.match(rendered('pay\u202e bob'), /<span class="odd"[^>]*>\\u\{202e\}<\/span>/);
  assert.match(rendered('`pay\u200b`'), /<code>pay<span class="odd"/);
});
