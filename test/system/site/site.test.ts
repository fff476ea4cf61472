/** The documentation site in a real browser: pages of each kind, wide and narrow, light and dark, and the search. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import AxeBuilder from '@axe-core/playwright';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { SHOTS, startSite } from './serve.ts';

const PAGES = [
  '/',
  '/wake-targets/',
  '/commands/reveille-alarm-set/',
  '/settings/CHRONOS_ENROLLMENT/',
  '/errors/conflict/',
];
const LOOKS = [
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

  for (const look of LOOKS) {
    test(`at ${look.width} pixels, ${look.scheme}: nothing that axe finds, nothing to be scrolled sideways`, async () => {
      const { context, page } = await browser.open(look);
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

  test('the search finds a command by its words, with the keyboard alone', async () => {
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
    await page.waitForURL(/\/(?:commands|settings)\/.+/);
    assert.match((await page.textContent('h1')) ?? '', /\S/);
    await context.close();
  });

  test('docs/site.md has the pictures that are made of it', () => {
    const docs = join(import.meta.dirname, '..', '..', '..', 'docs');
    const shown = [...readFileSync(join(docs, 'site.md'), 'utf8').matchAll(/\]\(site\/(.*)\.png\)/g)].map(
      ([, name]) => name,
    );
    assert.deepEqual(
      shown,
      SHOTS.map(({ name }) => name),
    );
    for (const name of shown)
      assert.equal(readFileSync(join(docs, 'site', `${name}.png`)).toString('latin1', 1, 4), 'PNG');
  });
});
