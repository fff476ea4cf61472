/** The documentation site in a real browser: pages of each kind, wide and narrow, light and dark, and the search. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import AxeBuilder from '@axe-core/playwright';
import { startBrowser, type TestBrowser } from '../../support/browser.ts';
import { listening, sharedOwner, temporaryFolder } from '../../support/temporary.ts';

const BUILD = join(import.meta.dirname, '..', '..', '..', 'site', 'build.ts');
const TYPES: Readonly<Record<string, string>> = {
  ...{ '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json' },
  ...{ '.png': 'image/png', '.svg': 'image/svg+xml' },
};
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
  let folder: string;

  before(async () => {
    folder = join(temporaryFolder(owner), 'site');
    await promisify(execFile)(process.execPath, [BUILD, folder]);
    const server = createServer((request, response) => {
      const path = new URL(request.url!, 'http://site').pathname;
      const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
      if (!existsSync(file)) return void response.writeHead(404).end();
      response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream').end(readFileSync(file));
    });
    url = await listening(owner, server);
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
});
