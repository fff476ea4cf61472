/** `npm run site-screenshots`: the pictures of docs/site.md. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startBrowser } from '../../support/browser.ts';
import { sharedOwner } from '../../support/temporary.ts';
import { SHOTS, startSite } from './serve.ts';

const FOLDER = join(import.meta.dirname, '../../../docs/site');

const owner = sharedOwner();
try {
  mkdirSync(FOLDER, { recursive: true });
  const url = await startSite(owner);
  const browser = await startBrowser(owner);
  for (const { name, path, width, scheme } of SHOTS) {
    const { context, page } = await browser.open({ width, scheme });
    await page.goto(url + path);
    const { length } = await page.screenshot({ path: join(FOLDER, `${name}.png`) });
    console.log(`${name}.png: ${Math.round(length / 1000)} kB`);
    await context.close();
  }
} finally {
  await owner.end();
}
