/** A real browser: Chromium out of a registry package, so that every machine and CI has the same one. */
import chromium from '@sparticuz/chromium';
import { type Browser, type BrowserContext, chromium as driver, type Page } from 'playwright-core';
import { atEnd, type Owner } from './temporary.ts';

/** What the package would add for its own purposes switches off what the tests are about; these two make it start anywhere. */
const FLAGS = ['--no-sandbox', '--disable-dev-shm-usage', '--font-render-hinting=none'];

export type Look = { readonly width?: number; readonly scheme?: 'light' | 'dark'; readonly script?: boolean };

export type TestBrowser = {
  readonly browser: Browser;
  /** Opens a window of its own, with cookies of its own. */
  open(look?: Look): Promise<{ context: BrowserContext; page: Page }>;
};

/** Starts one; share it within a file. */
export async function startBrowser(owner: Owner): Promise<TestBrowser> {
  const browser = await driver.launch({ executablePath: await chromium.executablePath(), args: FLAGS });
  atEnd(owner, () => browser.close());
  return {
    browser,
    async open({ width = 1440, scheme = 'light', script = true } = {}) {
      const context = await browser.newContext({
        viewport: { width, height: width < 600 ? 780 : 900 },
        colorScheme: scheme,
        javaScriptEnabled: script,
        timezoneId: 'Europe/Berlin',
        locale: 'en-GB',
      });
      context.setDefaultTimeout(15_000);
      return { context, page: await context.newPage() };
    },
  };
}
