/** A real browser: Chromium out of a registry package, so that every machine and CI has the same one. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
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

const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));
const UNPACKED = join(CACHE, 'chromium');
const PACKAGE = import.meta.resolve('@sparticuz/chromium');
const UNPACK = `import chromium from ${JSON.stringify(PACKAGE)}; await chromium.executablePath();`;

/**
 * The program, unpacked once for each checkout. The package would write it into the folder for temporary files where it
 * shall lie: a suite that begins meanwhile starts half a browser, and one that was cut off leaves half a browser to all.
 */
async function executable(): Promise<string> {
  if (!existsSync(UNPACKED)) {
    await mkdir(CACHE, { recursive: true });
    const folder = await mkdtemp(`${UNPACKED}-`);
    const env = { ...process.env, TMPDIR: folder };
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', UNPACK], { cwd: CACHE, env });
    // Another suite may have been first, and then its copy stays.
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
