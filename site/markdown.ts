/**
 * The documentation as Markdown files for agents and for `reveille docs`: one file for each page, `llms.txt` with one
 * line for each page. The site also has `llms-full.txt` with all pages in one file; the package has the pages only.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { type Documentation, everyPage, type Page, withLinks } from './pages.ts';

/** The settings share one page, and the decisions have an index: `llms-full.txt` omits their single pages. */
const SINGLE = /^(?:reference\/settings|internals\/decisions)\//;

/** The page as a file of its own, with relative links. */
function fileText({ path, text }: Page): string {
  const from = posix.dirname(path);
  return withLinks(
    text,
    (target) => `${posix.relative(from, target)}.md`,
    (target) => posix.relative(from, target),
  );
}

/** The page as a part of one file: links are paths from the root. */
const partText = ({ text }: Page) =>
  withLinks(
    text,
    (target) => `${target}.md`,
    (target) => target,
  ).trim();

/** The index that https://llmstxt.org describes. */
function indexText({ home, sections }: Documentation, isSite: boolean): string {
  const line = ({ path, title, summary }: Page) => `- [${title}](${path}.md): ${summary}`;
  const part = (title: string, pages: readonly Page[]) => [`## ${title}`, '', ...pages.map(line), ''];
  const optional = ({ pages }: { pages: readonly Page[] }) => pages.every(({ path }) => SINGLE.test(path));
  const groups = sections.flatMap((section) => section.groups);
  return [
    '# Reveille',
    '',
    `> ${home.summary}`,
    '',
    `${isSite ? 'All pages in one file: [llms-full.txt](llms-full.txt). ' : ''}Offline: \`reveille docs [topic]\`.`,
    '',
    ...sections.flatMap(({ title, pages }) => part(title, pages)),
    ...groups.filter((group) => !optional(group)).flatMap(({ title, pages }) => part(title, pages)),
    ...part(
      'Optional',
      groups.filter(optional).flatMap(({ pages }) => pages),
    ),
  ].join('\n');
}

function fullText(documentation: Documentation): string {
  const pages = everyPage(documentation).filter(({ path }) => !SINGLE.test(path) || path.endsWith('/README'));
  return `${pages.map((page) => `<!-- ${page.path}.md -->\n${partText(page)}`).join('\n\n---\n\n')}\n`;
}

/** Writes all files into a folder. @returns the number of pages */
export function writeMarkdown(documentation: Documentation, folder: string, isSite = false): number {
  const pages = everyPage(documentation);
  for (const page of pages) {
    const file = join(folder, `${page.path}.md`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, fileText(page));
  }
  writeFileSync(join(folder, 'llms.txt'), indexText(documentation, isSite));
  if (isSite) writeFileSync(join(folder, 'llms-full.txt'), fullText(documentation));
  return pages.length;
}
