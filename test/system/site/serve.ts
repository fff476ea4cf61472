/** The documentation site, built and served. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { listening, type Owner, temporaryFolder } from '../../support/temporary.ts';

const BUILD = join(import.meta.dirname, '..', '..', '..', 'site', 'build.ts');
const TYPES: Readonly<Record<string, string>> = {
  ...{ '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json' },
  ...{ '.png': 'image/png', '.svg': 'image/svg+xml' },
  ...{ '.md': 'text/markdown; charset=utf-8', '.txt': 'text/plain; charset=utf-8' },
};

/** @returns its address */
export async function startSite(owner: Owner): Promise<string> {
  const folder = join(temporaryFolder(owner), 'site');
  await promisify(execFile)(process.execPath, [BUILD, folder]);
  const server = createServer((request, response) => {
    const path = new URL(request.url!, 'http://site').pathname;
    const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
    if (!existsSync(file)) return void response.writeHead(404).end();
    response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream').end(readFileSync(file));
  });
  return listening(owner, server);
}
