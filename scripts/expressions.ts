/**
 * `npm run check:expressions`: reports regular expressions of the product whose time grows faster than the length of the
 * text, such as `/x+$/` on a text of many `x`. Exits with 1 on a hit. Read each character once, use `withoutTrailing` of
 * `src/wire/text.ts`, or add the expression to {@link BOUNDED}.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';
import { analyse } from 'scslre';

const ROOT = join(import.meta.dirname, '..');
const PRODUCT = '{src,bin}/**/*.{ts,mjs}';
const OTHERS = /\.test\.ts$|\/testing\//;
/** An expression without an open repetition reads each character a limited number of times. */
const REPETITION = /[*+]|\{\d+,\}/;

/** Accepted expressions, with the bound of their texts. */
const BOUNDED: Readonly<Record<string, string>> = {
  '^(\\S+?) *- *(\\S+)$': 'a member of a profile file, which has a size limit',
  '^;?\\s*[A-Z]': 'a migration of the product',
  '[<[].*[\\]>]': 'flags of the product',
  '(\\d+ \\w+) \\d+ \\w+': 'a duration of the product',
  'an ISO 8601 duration from (\\S+) to (\\S+),.*$': 'a message of the product',
  '(\\d+) \\(got \\S+\\)$': 'a message of the product',
  ',?\\s+(?:in\\s+)?((?:UTC|GMT|Etc\\/[\\w+-]+|[A-Z][A-Za-z]+(?:\\/[A-Z][\\w+-]+){1,2}))(?:\\s+time)?$':
    'a phrase of at most 200 characters',
  '(\\.\\d\\d\\d*?)0+$': 'a number with at most nine decimals',
};

type Found = { readonly place: string; readonly pattern: string; readonly flags: string };

function expressionsOf(file: string): Found[] {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const found: Found[] = [];
  new Visitor({
    Literal(node) {
      if (!('regex' in node)) return;
      const line = source.slice(0, node.start).split('\n').length;
      found.push({ place: `${file}:${line}`, ...node.regex });
    },
  }).visit(parseSync(file, source).program);
  return found;
}

const isSuperLinear = ({ pattern, flags }: Found) =>
  REPETITION.test(pattern) && analyse({ source: pattern, flags }, { maxReports: 1 }).reports.length > 0;

const files = globSync(PRODUCT, { cwd: ROOT }).filter((file) => !OTHERS.test(file));
const slow = files.toSorted().flatMap(expressionsOf).filter(isSuperLinear);
const wrong = slow.filter(({ pattern }) => BOUNDED[pattern] === undefined);
for (const { place, pattern, flags } of wrong)
  process.stderr.write(`${place}: /${pattern}/${flags} can take more than linear time\n`);
const unused = Object.keys(BOUNDED).filter((pattern) => !slow.some((one) => one.pattern === pattern));
for (const pattern of unused)
  process.stderr.write(`scripts/expressions.ts: /${pattern}/ is in no file, or is linear\n`);
if (wrong.length + unused.length > 0) process.exitCode = 1;
