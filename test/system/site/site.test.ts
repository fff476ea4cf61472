/** The documentation site in a real browser: pages of each kind, wide and narrow, light and dark, and the search. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import AxeBuilder from '@axe-core/playwright';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { startSite } from './serve.ts';

const PAGES = [
  '/',
  '/reference/wake-targets/',
  '/reference/commands/reveille-alarm-set/',
  '/reference/settings/CHRONOS_ENROLLMENT/',
  '/reference/errors/conflict/',
];
const VIEWS = [
  { width: 1280, scheme: 'light' },
  { width: 360, scheme: 'dark' },
] as const;

describe('the documentation site', () => {
  const owner = sharedOwner();
  let browser: TestBrowser;
  let url: string;

  before(async () => {
    url = await startSite(owner);
    browser = await startBrowser(owner);
  });
  after(() => owner.end());

  for (const view of VIEWS) {
    test(`at ${view.width} pixels, ${view.scheme}: axe finds no violation, and no page scrolls sideways`, async () => {
      const { context, page } = await browser.open(view);
      for (const path of PAGES) {
        await page.goto(url + path);
        const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
        assert.deepEqual(
          violations.map(({ id, nodes }) => `${path} ${id}: ${nodes[0]?.html}`),
          [],
        );
        const wide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
        assert.ok(wide <= 0, `${path} is ${wide} pixels too wide`);
      }
      await context.close();
    });
  }

  test('the search finds a command with the keyboard alone', async () => {
    const { context, page } = await browser.open();
    await page.goto(`${url}/`);
    await page.keyboard.press('/');
    await page.keyboard.type('alarm set');
    await page
      .locator('#found a')
      .filter({ hasText: /^reveille alarm set$/ })
      .waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/(?:start|guides|reference)\/.+/);
    assert.match((await page.textContent('h1')) ?? '', /\S/);
    await context.close();
  });

  test('the navigation has the sections in their order', async () => {
    const { context, page } = await browser.open();
    await page.goto(`${url}/guides/wake-claude-code/`);
    const titles = await page.locator('nav > details > summary').allTextContents();
    assert.deepEqual(titles, ['Start', 'Guides', 'Concepts', 'Reference', 'Operate', 'Internals']);
    assert.equal(await page.locator('nav > details[open] > summary').last().textContent(), 'Guides');
    assert.equal(await page.locator('nav a[aria-current]').textContent(), 'Wake Claude Code at 9 every weekday');
    await context.close();
  });

  test('each page has a Markdown file beside it, and llms.txt one line for each page', async () => {
    const text = async (path: string) => {
      const response = await fetch(url + path);
      assert.equal(response.status, 200, path);
      return response.text();
    };
    const lines = (await text('/llms.txt')).split('\n').filter((line) => line.startsWith('- ['));
    assert.ok(lines.length > 200, `${lines.length} pages`);
    for (const line of lines) assert.match(line, /^- \[[^\]]+\]\([\w/.-]+\.md\): \S.*[.!]$/);
    const paths = lines.map((line) => /\(([^)]+)\)/.exec(line)![1]!);
    for (const path of paths.filter((name) => !/settings\/|commands\//.test(name)))
      assert.match(await text(`/${path}`), /^# \S/, path);
    assert.match(await text('/start/install.md'), /\]\(first-alarm\.md\)/);
    const full = await text('/llms-full.txt');
    for (const path of ['start/install', 'guides/policies', 'reference/commands/reveille-alarm-set'])
      assert.ok(full.includes(`<!-- ${path}.md -->`), path);
  });
});
