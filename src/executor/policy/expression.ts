/**
 * Regular expressions with bounded matching time: RE2 (https://github.com/le0pard/re2js) needs at most the expression's
 * size times the text's length, without backtracking. Pure.
 *
 * The language is smaller than RE2's, because a policy is evidence: syntax that other dialects read differently is
 * refused. It has characters, `.` for any one (line ends too), `[a-z]`, `[^a-z]`, `\d` (0-9), `\w` (A-Z a-z 0-9 _), a
 * backslash before punctuation, `( )`, `|`, `? * + {n} {n,} {n,m}`. An expression always stands for the whole text.
 */
import { createRequire } from 'node:module';

/** The problem of an expression; `message` completes "the expression …". */
export class ExpressionError extends Error {}

const INSTRUCTIONS_MAX = 1000;
const DEPTH_MAX = 32;

const TOKEN = /\\.?|\[\^?(?:\\.|[^\\\]])*\]?|\{[^}]*\}?|\(\??|./gsu;
const ESCAPE = /^\\[dw!-/:-@[-`{-~]$/;

function checkEscapes(text: string): void {
  for (const [pair] of text.matchAll(/\\.?/gsu)) {
    if (ESCAPE.test(pair)) continue;
    throw new ExpressionError(`has ${pair} at a place where only \\d, \\w and punctuation may follow the backslash`);
  }
}

function checkClass(token: string): void {
  checkEscapes(token);
  const members = /^\[\^?((?:\\.|[^\\\]])*)\]$/su.exec(token)?.[1];
  if (members === undefined) throw new ExpressionError('has a [ without its ]');
  if (members === '') throw new ExpressionError('has an empty [ ]');
  if (members.replaceAll(/\\./gsu, '').includes('['))
    throw new ExpressionError('has a [ within [ ]; write \\[ for the character');
}

/** Refuses syntax outside the language, token by token. */
function checkLanguage(source: string): void {
  let depth = 0;
  let before: 'nothing' | 'atom' | 'repetition' = 'nothing';
  for (const [token] of source.matchAll(TOKEN)) {
    const first = token[0]!;
    if ('?*+{'.includes(first)) {
      if (before === 'nothing')
        throw new ExpressionError(`has a ${first} with nothing before it; write \\${first} for the character`);
      if (before === 'repetition') throw new ExpressionError(`repeats a repetition at ${first}; put it into ( )`);
      if (first === '{' && !/^\{\d{1,4}(?:,\d{0,4})?\}$/.test(token))
        throw new ExpressionError('has a { that is not {n}, {n,} or {n,m}; write \\{ for the character');
      before = 'repetition';
      continue;
    }
    before = first === '(' || first === '|' ? 'nothing' : 'atom';
    if (token === '(?') throw new ExpressionError('has a (? group; only plain ( ) are supported');
    if (first === '(' && ++depth > DEPTH_MAX) throw new ExpressionError(`has more than ${DEPTH_MAX} nested groups`);
    if (first === ')' && --depth < 0) throw new ExpressionError('has a ) without its (');
    if (first === '^' || first === '$')
      throw new ExpressionError(
        `has a ${first}; an expression always matches the whole text, write \\${first} for the character`,
      );
    if (first === ']' || first === '}')
      throw new ExpressionError(`has a ${first} with nothing before it; write \\${first} for the character`);
    if (first === '\\') checkEscapes(token);
    if (first === '[') checkClass(token);
  }
  if (depth > 0) throw new ExpressionError('has a ( without its )');
}

/**
 * Loaded with the first expression: most policies have none, and loading takes longer than reading the rest of the
 * policy.
 */
const require = createRequire(import.meta.url);

/**
 * Makes a matcher for whole texts.
 *
 * @throws ExpressionError for syntax outside the language, or an expression that is too large
 */
export function compileExpression(source: string): (text: string) => boolean {
  checkLanguage(source);
  const { RE2JS } = require('re2js') as typeof import('re2js');
  let compiled: ReturnType<typeof RE2JS.compile>;
  try {
    compiled = RE2JS.compile(source, RE2JS.DOTALL);
  } catch (cause) {
    throw new ExpressionError(`cannot be read by RE2 (${cause instanceof Error ? cause.message : cause})`, { cause });
  }
  if (compiled.programSize() > INSTRUCTIONS_MAX)
    throw new ExpressionError(`is too large: it takes more than ${INSTRUCTIONS_MAX} instructions`);
  return (text) => compiled.matches(text);
}
