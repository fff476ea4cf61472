/**
 * The pages of the documentation by section: those of `docs/`, and one generated page for each command and setting.
 *
 * `docs/index.md` has the order of the pages. A page that it does not name is an error, except in the groups that list
 * themselves: commands, settings, error codes and decisions.
 */
import { globSync, readFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';
import { everyCommand, type OutlineCommand, outlineOf, usageOf } from '../src/cli/outline/outline.ts';
import { buildProgram } from '../src/cli/tree/program.ts';
import { brokenLinks, replaceLinks } from './links.ts';

const ROOT = join(import.meta.dirname, '..');
const DOCS = join(ROOT, 'docs');

/** A page in Markdown. Links to other pages are written `page:PATH#ANCHOR`. */
export type Page = {
  /** The address without an ending, `start/install`; the first page has `index`. */
  readonly path: string;
  readonly title: string;
  /** The first sentence. */
  readonly summary: string;
  readonly text: string;
};

/** Pages under one heading of the navigation. */
export type Group = { readonly title: string; readonly pages: readonly Page[] };
export type Section = Group & { readonly groups: readonly Group[] };
export type Documentation = { readonly home: Page; readonly sections: readonly Section[] };

/** The sections in the order of the navigation, with their folders. */
const SECTIONS = [
  { title: 'Start', folder: 'start' },
  { title: 'Guides', folder: 'guides' },
  { title: 'Concepts', folder: 'concepts' },
  { title: 'Reference', folder: 'reference' },
  { title: 'Operate', folder: 'operate' },
  { title: 'Internals', folder: 'internals' },
] as const;

/** Pages outside of the folder of their section. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ['glossary', 'concepts'],
  ['benchmarks', 'operate'],
  ['internals/architecture', 'internals'],
]);

/** Folders that form a group by themselves. */
const ERRORS = 'reference/errors/';
const DECISIONS = 'internals/decisions/';

/** A page of the root of the repository. */
const ARCHITECTURE = 'ARCHITECTURE.md';

const pathOfFile = (file: string) =>
  file === join(ROOT, ARCHITECTURE) ? 'internals/architecture' : relative(DOCS, file).replace(/\.md$/, '');

/** The text without the marks of Markdown. */
const plainText = (text: string) =>
  text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*`]/g, '')
    .replace(/\s+/g, ' ')
    .trim();

/** The first sentence of the first paragraph. */
function summaryOf(text: string): string {
  const paragraph = text.split(/\n{2,}/).find((part) => !/^(?:#|```|\||!\[|- |<|$)/.test(part)) ?? '';
  const plain = plainText(paragraph);
  const sentence = /^.*?[.!?](?= \p{Lu}| `|$)/u.exec(plain)?.[0] ?? plain;
  return sentence.replace(/[:,;]?$/, (end) => (end === '' && /[.!?]$/.test(sentence) ? '' : '.'));
}

export function pageOf(path: string, text: string): Page {
  return { path, title: plainText(/^# (.*)$/m.exec(text)?.[1] ?? path), summary: summaryOf(text), text };
}

/** A page of the repository. Links to files outside of the documentation lead to the repository host, if one is set. */
function writtenPage(name: string, repository: string | undefined): Page {
  const file = join(ROOT, name);
  const path = pathOfFile(file);
  const linked = replaceLinks(file, readFileSync(file, 'utf8'), ({ label, file: target, anchor }) => {
    const hash = anchor === undefined ? '' : `#${anchor}`;
    if (target === file) return `[${label}](${hash})`;
    if ((target.startsWith(`${DOCS}/`) && target.endsWith('.md')) || target === join(ROOT, ARCHITECTURE))
      return `[${label}](page:${pathOfFile(target)}${hash})`;
    return repository === undefined ? label : `[${label}](${repository}/${relative(ROOT, target)})`;
  });
  // Pictures have addresses from the root of the documentation.
  const folder = posix.dirname(path);
  const text = linked.replace(/(!\[[^\]]*\]\()(?!https?:)([^)\s]+)/g, (_, before: string, picture: string) => {
    return `${before}file:${posix.normalize(posix.join(folder, picture))}`;
  });
  return pageOf(path, text);
}

const escaped = (text: string) => text.replace(/[<>|]/g, (sign) => ({ '<': '&lt;', '>': '&gt;', '|': '\\|' })[sign]!);
const code = (text: string) => `\`${text}\``;
const commandPath = ({ words }: OutlineCommand) => `reference/commands/${words.join('-')}`;

function commandPage(command: OutlineCommand): Page {
  const { words, summary, options, commands, after } = command;
  const rows = options.map(
    ({ names, value, summary: meaning }) =>
      `| ${code([...names].join(', ') + (value === undefined ? '' : ` ${value}`)).replaceAll('|', '\\|')} | ${escaped(meaning)} |`,
  );
  const text = [
    `# ${words.join(' ')}`,
    `${escaped(summary.replace(/^./, (letter) => letter.toUpperCase()))}.`,
    `\`\`\`sh\n${usageOf(command)}\n\`\`\``,
    ...(rows.length > 0 ? [['| Option | Meaning |', '|---|---|', ...rows].join('\n')] : []),
    ...(commands.length > 0
      ? [
          commands
            .map((one) => `- [${one.words.join(' ')}](page:${commandPath(one)}): ${escaped(one.summary)}`)
            .join('\n'),
        ]
      : []),
    ...(after === '' ? [] : [`\`\`\`text\n${after}\n\`\`\``]),
    ...(words.length > 1 ? ['[All commands](page:reference/commands/reveille)'] : []),
  ];
  return pageOf(commandPath(command), `${text.join('\n\n')}\n`);
}

/** The variables of `docs/reference/settings.md`, with the part that reads each. */
function settings(): { name: string; part: string; cells: readonly string[] }[] {
  let part = '';
  return readFileSync(join(DOCS, 'reference', 'settings.md'), 'utf8')
    .split('\n')
    .flatMap((line) => {
      if (line.startsWith('## ')) part = line.slice(3);
      const name = /^\| `([A-Z][A-Z0-9_]*)` \|/.exec(line)?.[1];
      const cells = line.split(/(?<!\\)\|/).map((cell) => cell.trim());
      return name === undefined ? [] : [{ name, part, cells: cells.slice(2, -1) }];
    });
}

function settingPage({ name, part, cells }: ReturnType<typeof settings>[number]): Page {
  const [unset = '', allowed = '', meaning = ''] = cells;
  const text = [
    `# ${name}`,
    meaning,
    `- **Read by**: ${part}\n- **Default**: ${unset || 'none'}${allowed ? `\n- **Allowed**: ${allowed}` : ''}`,
    `\`\`\`yaml\n# config.yaml in REVEILLE_HOME, or the environment\n${name}: …\n\`\`\``,
    '[All settings](page:reference/settings)',
  ];
  return pageOf(`reference/settings/${name}`, `${text.join('\n\n')}\n`);
}

/** The links of `docs/index.md` in their order. */
function namedPaths(): string[] {
  const paths: string[] = [];
  const file = join(DOCS, 'index.md');
  replaceLinks(file, readFileSync(file, 'utf8'), ({ file: target }, whole) => {
    paths.push(pathOfFile(target));
    return whole;
  });
  return [...new Set(paths)];
}

const sectionOf = (path: string) => ELSEWHERE.get(path) ?? path.slice(0, path.indexOf('/'));

/**
 * Reads all pages.
 *
 * @param repository where files of the repository are shown, without a slash at the end
 * @throws with a line for each broken link and each page that `docs/index.md` does not name
 */
export async function readDocumentation(repository?: string): Promise<Documentation> {
  const names = [ARCHITECTURE, ...globSync('docs/**/*.md', { cwd: ROOT }).toSorted()];
  const written = names.map((name) => writtenPage(name, repository));
  const byPath = new Map(written.map((page) => [page.path, page]));
  const listing = (folder: string) => written.filter(({ path }) => path.startsWith(folder));
  const errors = listing(ERRORS);
  const decisions = listing(DECISIONS).filter(({ path }) => !path.endsWith('/README'));
  const order = namedPaths();
  const listed = new Set([...order, 'index', ...[...errors, ...decisions].map(({ path }) => path)]);
  const faults = [
    ...['README.md', ...names].flatMap((name) => brokenLinks(ROOT, name)),
    ...written.filter(({ path }) => !listed.has(path)).map(({ path }) => `docs/index.md does not name ${path}.md`),
  ];
  if (faults.length > 0) throw new Error(faults.join('\n'));

  const commands = everyCommand(await outlineOf(buildProgram(process))).map(commandPage);
  const groups: Readonly<Record<string, readonly Group[]>> = {
    reference: [
      { title: 'Commands', pages: commands },
      { title: 'Each setting', pages: settings().map(settingPage) },
      { title: 'Error codes', pages: errors },
    ],
    internals: [{ title: 'Each decision', pages: decisions }],
  };
  const sections = SECTIONS.map(({ title, folder }) => ({
    title,
    pages: order.filter((path) => sectionOf(path) === folder).flatMap((path) => byPath.get(path) ?? []),
    groups: groups[folder] ?? [],
  }));
  return { home: byPath.get('index')!, sections };
}

/** All pages in the order of the navigation. */
export function everyPage({ home, sections }: Documentation): Page[] {
  return [home, ...sections.flatMap(({ pages, groups }) => [...pages, ...groups.flatMap((group) => group.pages)])];
}

/** Replaces the links of a page, except in code. */
export function withLinks(
  text: string,
  pageLink: (path: string) => string,
  fileLink: (path: string) => string,
): string {
  return text
    .replace(/\]\(page:([^)#]*)/g, (_, path: string) => `](${pageLink(path)}`)
    .replace(/\]\(file:([^)]*)/g, (_, path: string) => `](${fileLink(path)}`);
}
