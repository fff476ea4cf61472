/** `reveille docs`: the documentation that the package contains, offline. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { columns } from '../screens/columns.ts';

/** Sections in reading order; each is a folder of `docs/`. */
const SECTIONS = ['start', 'guides', 'concepts', 'reference', 'operate', 'internals'] as const;

/** Pages for each command and setting, which the package contains: found by topic, but not listed. */
const GENERATED = /^reference\/(?:commands|settings)\//;

type Page = { readonly path: string; readonly title: string; readonly text: string };

function readPages(): Page[] {
  const folder = join(PACKAGE_ROOT, 'docs');
  const order = (path: string) => {
    const at = SECTIONS.findIndex((section) => path.startsWith(`${section}/`));
    return at < 0 ? SECTIONS.length : at;
  };
  return globSync('**/*.md', { cwd: folder })
    .map((name) => name.replaceAll('\\', '/'))
    .map((name) => {
      const text = readFileSync(join(folder, name), 'utf8');
      const path = name.replace(/\.md$/, '');
      return { path, title: /^# (.*)$/m.exec(text)?.[1] ?? path, text };
    })
    .toSorted((a, b) => order(a.path) - order(b.path) || a.path.localeCompare(b.path));
}

/** Pages by path, then by file name, then by words in title or text; best matches only. */
function findPages(pages: readonly Page[], topic: string): readonly Page[] {
  const wanted = topic.toLowerCase().replace(/\.md$/, '');
  const words = wanted.split(/[\s-]+/).filter((word) => word !== '');
  const tests: ((page: Page) => boolean)[] = [
    ({ path }) => path.toLowerCase() === wanted,
    ({ path }) => basename(path).toLowerCase() === wanted.replaceAll(' ', '-'),
    ({ title, path }) => words.every((word) => `${title} ${path}`.toLowerCase().includes(word)),
    ({ text }) => words.every((word) => text.toLowerCase().includes(word)),
  ];
  for (const isMatch of tests) {
    const found = pages.filter(isMatch);
    if (found.length > 0) return found;
  }
  return [];
}

export async function docs({ out }: CliContext, words: readonly string[]): Promise<void> {
  const pages = readPages();
  const topic = words.join(' ').trim();
  const found = topic === '' ? pages.filter(({ path }) => !GENERATED.test(path)) : findPages(pages, topic);
  if (found.length === 0)
    throw new ReveilleError('not_found', `no page about ${JSON.stringify(topic)}; list all pages with: reveille docs`);
  const [page] = found;
  if (topic !== '' && found.length === 1) return out.result(page, page!.text.trimEnd().split('\n'));
  if (out.json) return out.result(found.map(({ path, title }) => ({ path, title })));
  for (const line of columns(
    found.map(({ path, title }) => [path, title]),
    out.columns,
  ))
    out.line(line);
  out.line(`\n${out.paint('dim', 'Read one with: reveille docs PAGE')}`);
}
