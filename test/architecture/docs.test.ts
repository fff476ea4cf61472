/** The pages for people: links, commands, length and line width. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { brokenLinks } from '../../site/links.ts';
import { everyCommand, type OutlineCommand, outlineOf } from '../../src/cli/outline/outline.ts';
import { buildProgram } from '../../src/cli/tree/program.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGES = globSync(['*.md', 'bench/*.md', '{docs,examples,clients,test,deploy,integrations}/**/*.md'], {
  cwd: ROOT,
}).toSorted();

/** Generated pages, and the decisions, which have no limit of words. */
const GENERATED = /^docs\/(?:benchmarks|reference\/(?:routes|settings|errors\/.*)|internals\/decisions\/.*)\.md$/;
const WRITTEN = PAGES.filter((name) => /^(?:docs\/.*|README)\.md$/.test(name) && !GENERATED.test(name));
const WORDS_MAX = 30_000;
const README_WORDS_MAX = 900;
const COLUMNS = 100;

/** The page without the text of code blocks; the lines stay. */
const proseOf = (name: string) =>
  readFileSync(join(ROOT, name), 'utf8').replace(/^ *```[\s\S]*?^ *```/gm, (code) => code.replaceAll(/[^\n]/g, ''));
const wordCount = (name: string) =>
  proseOf(name)
    .split(/\s+/)
    .filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

test('no link is broken', () => {
  assert.deepEqual(
    PAGES.flatMap((name) => brokenLinks(ROOT, name)),
    [],
  );
});

test(`docs/ has at most ${WORDS_MAX} words without generated pages and decisions, README.md ${README_WORDS_MAX}`, () => {
  const docs = WRITTEN.filter((name) => name.startsWith('docs/'));
  const args = docs.reduce((sum, name) => sum + wordCount(name), 0);
  assert.ok(args <= WORDS_MAX, `${args} words`);
  assert.ok(wordCount('README.md') <= README_WORDS_MAX, `${wordCount('README.md')} words`);
});

test(`prose wraps at ${COLUMNS} columns; tables, code and single links may be longer`, () => {
  const long = WRITTEN.flatMap((name) =>
    proseOf(name)
      .split('\n')
      .map((line, index) => ({ line, at: `${name}:${index + 1}` }))
      .filter(({ line }) => [...line].length > COLUMNS && !/^ *\||^#|^!\[|^\S+$/.test(line))
      .map(({ at }) => at),
  );
  assert.deepEqual(long, []);
});

/**
 * The arguments of a shell line, as far as this test needs them: a quoted argument is one, and parts for other programs
 * are omitted.
 */
function wordsOf(line: string): string[] {
  const args = line.match(/"[^"]*"|'[^']*'|\$\([^)]*\)|[^\s"']+/g) ?? [];
  const end = args.findIndex((word) => /^(?:\||&&|;|>|>>|<|#.*)$/.test(word));
  return end === -1 ? args : args.slice(0, end);
}

/** The commands in the examples of a page: `reveille …` at the beginning of a line, alone or through npx. */
function commandsOn(name: string): { line: string; words: string[] }[] {
  const text = readFileSync(join(ROOT, name), 'utf8');
  const inline = [...text.matchAll(/(?<!`)`(?:npx )?reveille ([a-z][^`\n|…]*)`/g)].map(([line, args]) => ({
    line,
    words: wordsOf(args!),
  }));
  const blocks = [...text.matchAll(/^ *```(?:sh|bash|shell|console)?\n([\s\S]*?)^ *```/gm)].flatMap(([, block]) =>
    block!
      .replace(/\\\n\s*/g, ' ')
      .split('\n')
      .flatMap((line) => {
        const shown = /^\s*(?:\$ )?(?:[A-Z_]+=\S* )*(?:npx |node bin\/)?reveille (.*)$/.exec(line)?.[1];
        return shown === undefined ? [] : [{ line: line.trim(), words: wordsOf(shown) }];
      }),
  );
  return [...inline, ...blocks];
}

function faultOf(program: OutlineCommand, args: readonly string[]): string | undefined {
  let command = program;
  let at = 0;
  for (; at < args.length; at++) {
    const below = command.commands.find(({ words: path }) => path.at(-1) === args[at]);
    if (!below) break;
    command = below;
  }
  if (command === program && !args[0]?.startsWith('-')) return `there is no command "${args[0]}"`;
  if (
    command.commands.length > 0 &&
    args[at] !== undefined &&
    !args[at]!.startsWith('-') &&
    command.values.length === 0
  )
    return `"${command.words.join(' ')}" has no command "${args[at]}"`;
  // Arguments after "--" belong to another program.
  const own = args.slice(at, args.includes('--') ? args.indexOf('--') : undefined);
  const known = new Set([...program.options, ...command.options].flatMap(({ names }) => names).concat('--help', '-h'));
  const unknown = own.filter((word) => /^--?[a-z]/.test(word)).find((word) => !known.has(word.split('=')[0]!));
  return unknown && `"${command.words.join(' ')}" has no ${unknown}`;
}

test('the commands in the pages exist, with their flags', async () => {
  const program = await outlineOf(buildProgram(process));
  assert.ok(everyCommand(program).length > 50);
  // Decisions and the changelog describe earlier versions.
  const shown = PAGES.filter((name) => !/^CHANGELOG|decisions\//.test(name)).flatMap((name) =>
    commandsOn(name).map(({ line, words: args }) => ({ name, line, fault: faultOf(program, args) })),
  );
  assert.ok(shown.length > 100, `${shown.length} commands`);
  assert.deepEqual(
    shown.filter(({ fault }) => fault !== undefined),
    [],
  );
});

test('the ids in examples are as long as in lists: the first 8 characters are the same for a minute', () => {
  const short = PAGES.filter((name) => name !== 'CHANGELOG.md').flatMap((name) =>
    [...readFileSync(join(ROOT, name), 'utf8').matchAll(/reveille [a-z ]+(01[0-9a-f]{6})(?![0-9a-f-])/g)].map(
      ([line]) => `${name}: ${line}`,
    ),
  );
  assert.deepEqual(short, []);
});
