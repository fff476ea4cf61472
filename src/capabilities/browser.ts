/**
 * `browser`: Playwright's MCP server with a browser, if both are installed on this computer. The browser uses a profile
 * in memory, not the person's, and all its requests go through {@link startGuardProxy}.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, isAbsolute, join } from 'node:path';
import type { WebAccess } from '../kit/http/web-access.ts';
import { ReveilleError } from '../wire/errors.ts';
import { startGuardProxy } from './guard-proxy.ts';

const SERVER = 'playwright-mcp';
/** Program names of browsers that Playwright can control. */
const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'microsoft-edge'];

/** Disables traffic that bypasses a proxy: DNS lookups, QUIC, and WebRTC candidates. */
const BROWSER_FLAGS = [
  ...['--disable-quic', '--dns-prefetch-disable', '--force-webrtc-ip-handling-policy=disable_non_proxied_udp'],
  ...['--disable-background-networking', '--disable-component-update', '--no-first-run'],
];

function findProgram(names: readonly string[], path: string): string | undefined {
  const folders = path.split(delimiter).filter((folder) => isAbsolute(folder));
  const candidates = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return candidates.find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** @throws ReveilleError `unavailable` naming the missing program */
function findOrRefuse(what: string, names: readonly string[], path: string): string {
  const found = findProgram(names, path);
  if (found !== undefined) return found;
  throw new ReveilleError('unavailable', `there is no ${what} on the PATH (${names.join(', ')})`);
}

export type BrowserOptions = { web: WebAccess; path: string | undefined };

/**
 * Runs Playwright's server on this process's stdin and stdout until it ends.
 *
 * @throws ReveilleError `unavailable` when server or browser is not found
 */
export async function runBrowser({ web, path = '' }: BrowserOptions): Promise<number> {
  const server = findOrRefuse('server', [SERVER], path);
  const executablePath = findOrRefuse('browser', BROWSERS, path);
  const folder = mkdtempSync(join(tmpdir(), 'reveille-browser-'));
  const proxy = await startGuardProxy(web);
  const config = join(folder, 'config.json');
  const isRoot = process.geteuid?.() === 0;
  const launchOptions = {
    ...{ executablePath, headless: true, args: BROWSER_FLAGS, chromiumSandbox: !isRoot },
    // Without `<-loopback>` Chromium bypasses the proxy for loopback addresses.
    proxy: { server: proxy.url, bypass: '<-loopback>' },
  };
  const browser = {
    browserName: 'chromium',
    isolated: true,
    launchOptions,
    contextOptions: { serviceWorkers: 'block' },
  };
  writeFileSync(config, JSON.stringify({ browser, outputDir: join(folder, 'output') }), { mode: 0o600 });
  const args = ['--config', config, '--headless', '--isolated', '--no-webmcp', ...(isRoot ? ['--no-sandbox'] : [])];
  const child = spawn(server, args, {
    cwd: folder,
    env: { PATH: path, HOME: folder, TMPDIR: folder, LANG: 'C.UTF-8' },
    stdio: ['inherit', 'inherit', 'inherit'],
  });
  const end = () => child.kill('SIGTERM');
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code) => resolve(code ?? 1));
    });
  } finally {
    proxy.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
