/** A remote over HTTP on loopback: git's own server, behind Node's. */
import { execFileSync, spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryFolder } from '../../support/temporary.ts';

/** Serves an empty repository `remote.git`; `heads` returns the pushed branches. */
export async function gitSite(t: TestContext) {
  const root = temporaryFolder(t);
  const bare = join(root, 'remote.git');
  const git = (...args: string[]) => execFileSync('git', ['--git-dir', bare, ...args], { encoding: 'utf8' }).trim();
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', bare]);
  git('config', 'http.receivepack', 'true');
  const seen: { authorization: string | undefined; path: string }[] = [];
  const server = createServer((request, response) => {
    const { pathname, search } = new URL(request.url!, 'http://x');
    seen.push({ authorization: request.headers.authorization, path: pathname });
    const child = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env.PATH,
        ...{ GIT_PROJECT_ROOT: root, GIT_HTTP_EXPORT_ALL: '1', PATH_INFO: pathname, QUERY_STRING: search.slice(1) },
        ...{ REQUEST_METHOD: request.method, CONTENT_TYPE: request.headers['content-type'] ?? '', REMOTE_USER: 'test' },
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      },
    });
    request.pipe(child.stdin);
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.once('close', () => {
      const whole = Buffer.concat(chunks);
      const at = whole.indexOf('\r\n\r\n');
      for (const line of whole.subarray(0, at).toString('latin1').split('\r\n')) {
        const [name = '', value = ''] = line.split(/:\s*/, 2);
        if (name === 'Status') response.statusCode = Number.parseInt(value, 10);
        else if (name) response.setHeader(name, value);
      }
      response.end(whole.subarray(at + 4));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/remote.git`, origin: `http://127.0.0.1:${port}/`, seen, git };
}
