/**
 * `npm run check:prose [-- PATH...]`: checks the language of pages, comments, docstrings, messages and test names with textlint. The rules
 * are two: no word of the table "Words that are not used" in CONTRIBUTING.md, and no sentence over 30 words' length. Exits with 1 on a hit.
 */
import { createHash } from 'node:crypto';
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, matchesGlob, relative, resolve } from 'node:path';
import { TextlintKernel, type TextlintKernelOptions } from '@textlint/kernel';
import { parseSync } from 'oxc-parser';

/** Rules and plugins of textlint are CommonJS; some of them export their value as `default`. */
const pluginOf = (loaded: { default: unknown }) => {
  const { default: exported } = loaded as { default: { default?: unknown } };
  return (exported.default ?? exported) as never;
};

const ROOT = join(import.meta.dirname, '..');
/** Characters of one sentence: about 30 words. */
const SENTENCE_MAX = 200;
/** Words from which on a string in the source is a sentence for a reader. */
const MESSAGE_WORDS = 4;
const SOURCES = [
  '{src,test,scripts,site,packaging,bench,schemas,integrations,examples,clients,bin}/**/*.{ts,mts,mjs,js}',
];
const PAGES = ['*.md', '{docs,bench,examples,clients,integrations,deploy,skills,packaging,src,test,.github}/**/*.md'];
const EXEMPT = ['CHANGELOG.md', '**/node_modules/**', '**/dist/**', '**/*.d.ts'];

/** A piece of prose and the line on which it begins. */
type Piece = { readonly line: number; readonly text: string };
type Node = { readonly type: string; readonly start: number; readonly [key: string]: unknown };

/** The words of the table in CONTRIBUTING.md, each with its remedy. */
function bannedTerms(): [string, string][] {
  const table =
    readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8')
      .split(/^## /m)
      .find((part) => part.startsWith('Words that')) ?? '';
  return table.split('\n').flatMap((line) => {
    const [, words, remedy] = line.split('|').map((cell) => cell.trim());
    return [...(words ?? '').matchAll(/`([^`]+)`/g)].map(([, word]): [string, string] => [word!, remedy ?? '']);
  });
}

const isCode = (text: string) =>
  /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH|BEGIN|PRAGMA|LOCK|SET|FROM|WHERE|AND|ORDER|JOIN|RETURNING|ON|VALUES|EXISTS|UNION|GRANT|TRUNCATE)\b/.test(
    text,
  ) || /[;{}]\s*$|=>|\$\(|&&|\|\||^\s*[.#][\w-]+|:\s*\w+;|\bfunction\b.*\{|^\s*(?:end|fi|esac|done)$/m.test(text);

/** Comments without their marks, and without directives for tools. Adjacent line comments are one piece. */
function commentsOf(
  source: string,
  lineOf: (offset: number) => number,
  comments: readonly { type: string; value: string; start: number }[],
): Piece[] {
  const pieces: { line: number; last: number; text: string; type: string }[] = [];
  for (const { type, value, start } of comments) {
    if (/^\s*(?:biome-ignore|@ts-|eslint|prettier|#region|v8 ignore|\/?\s*<reference|oxlint)/.test(value)) continue;
    const text = type === 'Line' ? value : value.replace(/^\*/, '').replace(/^[ \t]*\*[ \t]?/gm, '');
    const line = lineOf(start);
    const before = pieces.at(-1);
    const ownLine = /^[ \t]*$/.test(source.slice(source.lastIndexOf('\n', start - 1) + 1, start));
    if (type === 'Line' && ownLine && before?.type === 'Line' && before.last === line - 1) {
      before.text += `\n${text}`;
      before.last = line;
    } else pieces.push({ line, last: line, text, type: ownLine ? type : 'Trailing' });
  }
  return pieces.map(({ line, text }) => ({
    line,
    text: text
      .replace(/\{@link(?:code|plain)? ([^}]+)\}/g, '`$1`')
      // Every tag begins its own sentence, without the name that it documents.
      .replace(/^[ \t]*@(?:param|property|template)\s+(?:\[?[\w.$]+[^\s\]]*\]?\s+-?\s*)?/gm, '\n')
      .replace(/^[ \t]*@\w+[ \t]*/gm, '\n')
      .replace(/[ \t]@(?:param|returns|throws|see|default)\b\s*/g, '\n\n'),
  }));
}

/** Messages: strings and templates of the code that read as sentences; of tests, their names. */
function messagesOf(program: unknown, lineOf: (offset: number) => number, isTest: boolean): Piece[] {
  const pieces: Piece[] = [];
  const add = (start: number, text: string) => {
    const plain = text.replace(/<[^>]*>/g, '\n\n').replace(/&\w+;/g, ' ');
    if (
      isCode(text) ||
      (plain.match(/(?<![\w/.$-])[A-Za-z][a-z’']*(?![\w/$=(])/g) ?? []).length < MESSAGE_WORDS ||
      !/[a-z] [a-z]/.test(plain)
    )
      return;
    pieces.push({ line: lineOf(start), text: plain });
  };
  const textOf = (node: Node | undefined): string | undefined => {
    if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
    if (node?.type === 'TemplateLiteral')
      return (node.quasis as { value: { cooked: string | null } }[]).map(({ value }) => value.cooked ?? '').join('`x`');
    if (node?.type === 'BinaryExpression' && node.operator === '+') {
      const parts = [textOf(node.left as Node), textOf(node.right as Node)];
      return parts.every((part) => part === undefined) ? undefined : parts.map((part) => part ?? '`x`').join('');
    }
    return undefined;
  };
  const walk = (node: unknown): void => {
    if (Array.isArray(node)) {
      node.forEach(walk);
      return;
    }
    if (node === null || typeof node !== 'object') return;
    const one = node as Node;
    if (one.type === 'ImportDeclaration' || one.type === 'ExportAllDeclaration' || one.type?.startsWith('TS')) {
      if (one.type === 'TSAsExpression' || one.type === 'TSSatisfiesExpression' || one.type === 'TSNonNullExpression')
        walk(one.expression);
      return;
    }
    if (isTest) {
      const callee = one.callee as Node | undefined;
      const name = (callee?.name ?? (callee?.property as Node | undefined)?.name) as string | undefined;
      if (one.type === 'CallExpression' && name !== undefined && /^(?:test|describe|it|suite|group)$/.test(name)) {
        const text = textOf((one.arguments as Node[])[0]);
        if (text !== undefined) add(one.start, text);
      }
    } else {
      const text = textOf(one);
      if (text !== undefined) {
        add(one.start, text);
        if (one.type === 'TemplateLiteral') walk(one.expressions);
        return;
      }
    }
    for (const value of Object.values(one)) if (typeof value === 'object') walk(value);
  };
  walk(program);
  return pieces;
}

function piecesOf(file: string, source: string): Piece[] {
  if (file.endsWith('.md')) {
    // Front matter is data.
    return [{ line: 1, text: source.replace(/^---\n[\s\S]*?\n---\n/, (matter) => matter.replace(/[^\n]/g, '')) }];
  }
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  const lineOf = (offset: number) => {
    let [low, high] = [0, starts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
  const { program, comments } = parseSync(file, source);
  const isTest = /\.test\.ts$|^test\/|\/testing\/|\.fixture\./.test(file);
  return [...commentsOf(source, lineOf, comments), ...messagesOf(program, lineOf, isTest)];
}

const terms = bannedTerms();
const options: TextlintKernelOptions = {
  ext: '.md',
  plugins: [{ pluginId: 'markdown', plugin: pluginOf(await import('@textlint/textlint-plugin-markdown')) }],
  rules: [
    {
      ruleId: 'terminology',
      rule: pluginOf(await import('textlint-rule-terminology')),
      options: { defaultTerms: false, skip: ['Code', 'CodeBlock', 'Html'], terms },
    },
    {
      ruleId: 'sentence-length',
      rule: pluginOf(await import('textlint-rule-sentence-length')),
      options: { max: SENTENCE_MAX },
    },
  ],
};

type Hit = { readonly line: number; readonly text: string };
const kernel = new TextlintKernel();

async function hitsIn(file: string, source: string): Promise<Hit[]> {
  const pieces = piecesOf(file, source);
  const lines: string[] = [];
  const origin: number[] = [];
  for (const { line, text } of pieces) {
    const own = text.split('\n');
    own.forEach((one, index) => {
      // Indentation is layout of the comment, not a code block.
      lines.push(file.endsWith('.md') ? one : one.trim());
      origin.push(line + index);
    });
    lines.push('');
    origin.push(line);
  }
  const text = lines.join('\n');
  if (text.trim() === '') return [];
  const { messages } = await kernel.lintText(text, options);
  return messages.map(({ line, message }) => ({
    line: origin[line - 1] ?? 1,
    text: message
      .split('\n')[0]!
      .replace(/^Incorrect (?:term|usage of the term): /, '')
      .replace(/^Line \d+ sentence length\((\d+)\).*/, `a sentence of $1 characters; at most ${SENTENCE_MAX}`),
  }));
}

const named = process.argv.slice(2).map((path) => relative(ROOT, resolve(path)).replaceAll('\\', '/'));
const files = globSync([...PAGES, ...SOURCES], { cwd: ROOT, exclude: EXEMPT })
  .filter((file) => !EXEMPT.some((pattern) => matchesGlob(file, pattern)))
  .filter(
    (file) => named.length === 0 || named.some((name) => name === '' || file === name || file.startsWith(`${name}/`)),
  )
  .toSorted();

// A file that passed before, under the same rules, is not read again.
const cachePath = join(ROOT, 'node_modules', '.cache', 'reveille-prose.json');
const rules = createHash('sha256')
  .update(readFileSync(import.meta.filename))
  .update(JSON.stringify(terms))
  .digest('hex');
let passed: Record<string, string> = {};
try {
  const cache = JSON.parse(readFileSync(cachePath, 'utf8')) as { rules: string; passed: Record<string, string> };
  if (cache.rules === rules) passed = cache.passed;
} catch {
  // Without a cache, all files are read.
}

let hits = 0;
for (const file of files) {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const digest = createHash('sha256').update(source).digest('base64');
  if (passed[file] === digest) continue;
  const found = await hitsIn(file, source);
  for (const { line, text } of found) console.error(`${file}:${line}: ${text}`);
  hits += found.length;
  if (found.length === 0) passed[file] = digest;
  else delete passed[file];
}
mkdirSync(join(ROOT, 'node_modules', '.cache'), { recursive: true });
writeFileSync(cachePath, JSON.stringify({ rules, passed }));
console.log(`prose: ${files.length} files, ${hits} ${hits === 1 ? 'hit' : 'hits'}`);
process.exitCode = hits > 0 ? 1 : 0;
