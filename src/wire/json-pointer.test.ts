import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isScalar, normalText, textAt } from './json-pointer.ts';

const DOCUMENT = '{"a/b": {"~x": [10, {"n": 9007199254740993}]}, "": 1, "list": [], "text": "9007199254740993"}';

test('a pointer finds the source text of members and elements', () => {
  assert.equal(textAt(DOCUMENT, ''), DOCUMENT);
  assert.equal(textAt(DOCUMENT, '/'), '1');
  assert.equal(textAt(DOCUMENT, '/a~1b/~0x/0'), '10');
  assert.equal(textAt(DOCUMENT, '/a~1b/~0x/1/n'), '9007199254740993');
  for (const pointer of ['/none', '/list/0', '/list/-', '/a~1b/~0x/01', '/text/0', '/list/length', '/__proto__'])
    assert.equal(textAt(DOCUMENT, pointer), undefined, pointer);
});

test('numbers are compared with all their digits', () => {
  assert.ok(isScalar('1.50', 1.5));
  assert.ok(isScalar('15e-1', 1.5));
  assert.ok(!isScalar('9007199254740993', 9007199254740992));
  assert.ok(!isScalar('"1"', 1));
  assert.ok(isScalar('"gr\\u00fcn"', 'grün'));
  assert.ok(isScalar('null', null));
  assert.ok(!isScalar('0', false));
  assert.equal(normalText('{ "a b" : [ 1.0 , "x  y" ,true ] }'), normalText('{"a b":[1,"x  y",true]}'));
  assert.notEqual(normalText('[12345678901234567890]'), normalText('[12345678901234567891]'));
});
