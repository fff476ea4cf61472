/** A real browser: Chromium from a registry package, so that every machine and CI has the same one. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, type BrowserContext, chromium as driver, type Page } from 'playwright-core';
import { atEnd, type Owner } from './temporary.ts';

/** The package's default flags would disable features under test; these two make it start anywhere. */
const FLAGS = ['--no-sandbox', '--disable-dev-shm-usage', '--font-render-hinting=none'];

export type PageOptions = { readonly width?: number; readonly scheme?: 'light' | 'dark'; readonly script?: boolean };

export type TestBrowser = {
  readonly browser: Browser;
  /** Opens a separate window with separate cookies. */
  open(look?: PageOptions): Promise<{ context: BrowserContext; page: Page }>;
};

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));
const UNPACKED = join(CACHE, 'chromium');
const PACKAGE = import.meta.resolve('@sparticuz/chromium');
const UNPACK = `import chromium from ${JSON.stringify(PACKAGE)}; await chromium.executablePath();`;

/**
 * The program, unpacked once per checkout. The package would write it into the temporary folder at its final path.
 * Another suite could then start a half-written browser, and an interrupted suite would leave one.
 */
async function executable(): Promise<string> {
  if (!existsSync(UNPACKED)) {
    await mkdir(CACHE, { recursive: true });
    const folder = await mkdtemp(`${UNPACKED}-`);
    const env = { ...process.env, TMPDIR: folder };
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', UNPACK], { cwd: CACHE, env });
    // Another suite may have been first; its copy stays.
    await rename(folder, UNPACKED).catch(async (error: unknown) => {
      await rm(folder, { recursive: true });
      if (!existsSync(UNPACKED)) throw error;
    });
  }
  return join(UNPACKED, 'chromium');
}

/** Starts one; share it within a file. */
export async function startBrowser(owner: Owner): Promise<TestBrowser> {
  const browser = await driver.launch({ executablePath: await executable(), args: FLAGS });
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
