/**
 * `npm run site`: the documentation as a site, in `dist/site`: the pages of `docs/` as they stand, one page for each
 * command, setting and error code, and a search over all of them. A link that leads nowhere ends it with status 1.
 */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { Eleventy } from '@11ty/eleventy';
import MiniSearch from 'minisearch';
import { VERSION } from '../src/wire/version.ts';
import { brokenLinks, replaceLinks, slugOf } from './links.ts';
import { generatedPages, type Page } from './pages.ts';

const ROOT = join(import.meta.dirname, '..');
const DOCS = join(ROOT, 'docs');
/** Where the site goes; `npm run site -- FOLDER` names another. */
const OUT = resolve(process.argv[2] ?? join(ROOT, 'dist', 'site'));
const STAGE = `${OUT}-pages`;

/** Where the files of the repository are shown, if anywhere: links that lead out of the documentation go there. */
const REPOSITORY = process.env.REVEILLE_REPOSITORY?.replace(/\/$/, '');

/** A page of the repository with links as the site has them. */
function pageOf(name: string, path: string): Page {
  const text = readFileSync(join(ROOT, name), 'utf8');
  const linked = replaceLinks(join(ROOT, name), text, ({ label, file, anchor }) => {
    const hash = anchor === undefined ? '' : `#${anchor}`;
    if (file.startsWith(`${DOCS}/`) && file.endsWith('.md'))
      return `[${label}](/${relative(DOCS, file).replace(/\.md$/, '')}/${hash})`;
    if (file === join(ROOT, name)) return `[${label}](${hash})`;
    if (file === join(ROOT, 'README.md')) return `[${label}](/${hash})`;
    return REPOSITORY === undefined ? label : `[${label}](${REPOSITORY}/${relative(ROOT, file)})`;
  });
  return {
    path,
    title: /^# (.*)$/m.exec(text)?.[1] ?? path,
    text: linked.replace(/(!\[[^\]]*\]\()(?!\/|https?:)/g, '$1/'),
  };
}

const names = ['README.md', ...globSync('docs/**/*.md', { cwd: ROOT }).toSorted()];
const broken = names.flatMap((name) => brokenLinks(ROOT, name));
if (broken.length > 0) {
  console.error(broken.join('\n'));
  process.exit(1);
}

const written = names.slice(1).map((name) => pageOf(name, relative('docs', name).replace(/\.md$/, '')));
const groups = new Map<string, readonly Page[]>([
  ['Guide', written.filter(({ path }) => !path.includes('/'))],
  ...(await generatedPages(DOCS)),
  ['Error codes', written.filter(({ path }) => path.startsWith('errors/'))],
  ['Decisions', written.filter(({ path }) => path.startsWith('decisions/'))],
]);
const home = { ...pageOf('README.md', ''), title: 'Reveille' };
const pages = [home, ...[...groups.values()].flat()];
const groupOf = new Map([...groups].flatMap(([title, members]) => members.map((page) => [page, title] as const)));

rmSync(STAGE, { recursive: true, force: true });
rmSync(OUT, { recursive: true, force: true });
mkdirSync(join(STAGE, '_includes'), { recursive: true });
cpSync(join(import.meta.dirname, 'page.njk'), join(STAGE, '_includes', 'page.njk'));
for (const page of pages) {
  const { path, title, text } = page;
  const file = join(STAGE, `${path || 'index'}.md`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(
    file,
    `---\n${JSON.stringify({ layout: 'page.njk', title, here: groupOf.get(page), permalink: `/${path && `${path}/`}` })}\n---\n${text}`,
  );
}

const site = new Eleventy(STAGE, OUT, {
  quietMode: true,
  configPath: false,
  config(eleventy) {
    eleventy.setUseGitIgnore(false);
    eleventy.addGlobalData('version', VERSION);
    eleventy.addGlobalData(
      'groups',
      [...groups].map(([title, members]) => ({ title, pages: members })),
    );
    // Text in angle brackets is text, and braces are braces: the same pages are read in the repository.
    eleventy.amendLibrary('md', (markdown) => {
      markdown.set({ html: false, linkify: false });
      // What is scrolled sideways must be reached with the keyboard.
      const { fence } = markdown.renderer.rules;
      markdown.renderer.rules.fence = (...given) => fence!(...given).replace('<pre>', '<pre tabindex="0">');
      markdown.renderer.rules.table_open = () => '<table tabindex="0">';
      // A head without words heads nothing.
      markdown.renderer.rules.th_open = (tokens, index) => (tokens[index + 1]!.content === '' ? '<td>' : '<th>');
      markdown.renderer.rules.th_close = (tokens, index) => (tokens[index - 1]!.content === '' ? '</td>' : '</th>');
      const plain = markdown.renderer.rules.heading_open;
      markdown.renderer.rules.heading_open = (tokens, index, options, env, self) => {
        tokens[index]!.attrSet('id', slugOf(tokens[index + 1]!.content));
        return plain ? plain(tokens, index, options, env, self) : self.renderToken(tokens, index, options);
      };
    });
    return { markdownTemplateEngine: false };
  },
});
await site.write();

const index = new MiniSearch<Page & { id: number }>({ fields: ['title', 'text'], storeFields: ['title', 'path'] });
index.addAll(pages.map((page, id) => ({ ...page, id })));
writeFileSync(join(OUT, 'search.json'), JSON.stringify(index));
for (const name of ['site.css', 'search.js']) cpSync(join(import.meta.dirname, name), join(OUT, name));
cpSync(join(ROOT, 'node_modules', 'minisearch', 'dist', 'es', 'index.js'), join(OUT, 'minisearch.js'));
for (const name of globSync('**/*.{png,svg,json,yml}', { cwd: DOCS })) cpSync(join(DOCS, name), join(OUT, name));
rmSync(STAGE, { recursive: true, force: true });
console.log(`${pages.length} pages in ${relative(process.cwd(), OUT)}, no link leads nowhere`);
