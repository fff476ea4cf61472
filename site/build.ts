/**
 * `npm run site` builds the documentation as a site in `dist/site`: the pages of `docs/`, and one page for each command,
 * setting and error code. It adds a search, one Markdown file for each page, and `llms.txt`. A broken link ends it with
 * status 1.
 */
import { cpSync, globSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { Eleventy } from '@11ty/eleventy';
import MiniSearch from 'minisearch';
import { VERSION } from '../src/wire/version.ts';
import { slugOf } from './links.ts';
import { writeMarkdown } from './markdown.ts';
import { type Documentation, everyPage, type Page, readDocumentation, withLinks } from './pages.ts';

const ROOT = join(import.meta.dirname, '..');
const DOCS = join(ROOT, 'docs');
/** The folder of the site; `npm run site -- FOLDER` names another. */
const OUT = resolve(process.argv[2] ?? join(ROOT, 'dist', 'site'));
const STAGE = `${OUT}-pages`;

/** The address at which files of the repository are shown, if there is one. */
const REPOSITORY = process.env.REVEILLE_REPOSITORY?.replace(/\/$/, '');

const urlOf = (path: string) => (path === 'index' ? '/' : `/${path}/`);

const documentation = await readDocumentation(REPOSITORY).catch((error: Error): never => {
  console.error(error.message);
  process.exit(1);
});
const pages = everyPage(documentation);

/** The navigation as the template reads it. */
function navigation({ sections }: Documentation): object[] {
  const links = (members: readonly Page[]) => members.map(({ path, title }) => ({ url: urlOf(path), title }));
  return sections.map(({ title, pages: members, groups }) => ({
    title,
    pages: links(members),
    groups: groups.map((group) => ({ title: group.title, pages: links(group.pages) })),
  }));
}

rmSync(STAGE, { recursive: true, force: true });
rmSync(OUT, { recursive: true, force: true });
mkdirSync(join(STAGE, '_includes'), { recursive: true });
cpSync(join(import.meta.dirname, 'page.njk'), join(STAGE, '_includes', 'page.njk'));
for (const { path, title, summary, text } of pages) {
  const file = join(STAGE, `${path}.md`);
  mkdirSync(dirname(file), { recursive: true });
  const head = { layout: 'page.njk', title, summary, markdown: `/${path}.md`, permalink: urlOf(path) };
  const linked = withLinks(text, urlOf, (target) => `/${target}`);
  writeFileSync(file, `---\n${JSON.stringify(head)}\n---\n${linked}`);
}

const site = new Eleventy(STAGE, OUT, {
  quietMode: true,
  configPath: false,
  config(eleventy) {
    eleventy.setUseGitIgnore(false);
    eleventy.addGlobalData('version', VERSION);
    eleventy.addGlobalData('sections', navigation(documentation));
    // Angle brackets and braces stay text, as on the repository host.
    eleventy.amendLibrary('md', (markdown) => {
      markdown.set({ html: false, linkify: false });
      // Blocks that scroll sideways must be reachable with the keyboard.
      const { fence } = markdown.renderer.rules;
      markdown.renderer.rules.fence = (...given) => fence!(...given).replace('<pre>', '<pre tabindex="0">');
      markdown.renderer.rules.table_open = () => '<table tabindex="0">';
      // An empty header cell is no header.
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

const index = new MiniSearch<{ id: number; title: string; url: string; text: string }>({
  fields: ['title', 'text'],
  storeFields: ['title', 'url'],
});
index.addAll(pages.map(({ path, title, text }, id) => ({ id, title, url: urlOf(path), text })));
writeFileSync(join(OUT, 'search.json'), JSON.stringify(index));
writeMarkdown(documentation, OUT, true);
for (const name of ['site.css', 'search.js']) cpSync(join(import.meta.dirname, name), join(OUT, name));
cpSync(join(ROOT, 'node_modules', 'minisearch', 'dist', 'es', 'index.js'), join(OUT, 'minisearch.js'));
for (const name of globSync('**/*.{png,svg,json,yml}', { cwd: DOCS })) cpSync(join(DOCS, name), join(OUT, name));
rmSync(STAGE, { recursive: true, force: true });
console.log(`${pages.length} pages in ${relative(process.cwd(), OUT)}, without broken links`);
