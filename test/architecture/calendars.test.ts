/** A schedule is computed with the calendars of its daemon: no caller in the program forgets to pass them. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '..', '..');

const SOURCES = globSync('src/chronos/{alarm,dispatch,http,store}/**/*.ts', { cwd: ROOT })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => !path.endsWith('.test.ts') && !path.includes('/testing/'))
  .map((path) => [path, readFileSync(join(ROOT, path), 'utf8')] as const);

/** The text between the parenthesis at an index and its partner. */
function argumentsAt(text: string, open: number): string {
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')' && --depth === 0) return text.slice(open + 1, at);
  }
  throw new Error('the parenthesis has no partner');
}

/** Each place where one of some functions is called or declared, with its arguments. */
function placesOf(names: string, [path, text]: (typeof SOURCES)[number]) {
  return [...text.matchAll(new RegExp(`(?<![.#\\w])(function\\*? )?(${names})\\(`, 'g'))].map((found) => ({
    ...{ path, name: found[2]!, isDeclaration: found[1] !== undefined },
    given: argumentsAt(text, found.index + found[0].length - 1),
  }));
}

const DECLARED = SOURCES.filter(([path]) => path.startsWith('src/chronos/alarm/'))
  .flatMap((source) => placesOf('\\w+', source))
  .filter(({ isDeclaration, given }) => isDeclaration && /\bcalendars(?: =|\?:)/.test(given))
  .map(({ name }) => name);

test('every computation of a schedule gets the calendars of its daemon', () => {
  assert.ok(DECLARED.includes('nextOccurrence') && DECLARED.includes('settleDelivered'), DECLARED.join(' '));
  const forgetful = SOURCES.flatMap((source) => placesOf(DECLARED.join('|'), source))
    .filter(({ given, isDeclaration }) => !isDeclaration && !/\b(?:calendars|NO_CALENDARS)\b/.test(given))
    .map(({ path, name, given }) => `${path}: ${name}(${given})`);
  assert.deepEqual(forgetful, []);
});
