/**
 * An npm registry, as far as npm uses one (its "package metadata" and tarballs): for tests in their own process, and as
 * a program for tests behind namespaces, `registry.ts FOLDER`.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { basename, join } from 'node:path';
import { listening, type Owner } from '../temporary.ts';

type Manifest = { readonly name: string; readonly version: string };

const manifestOf = (tarball: string): Manifest =>
  JSON.parse(execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' }));

/** The checksum that npm compares a tarball with. */
const integrityOf = (bytes: Buffer | string) => `sha512-${createHash('sha512').update(bytes).digest('base64')}`;

/**
 * Serves the tarballs of a folder, the one with the highest version as `latest`. If `x.tgz.wrong` is beside `x.tgz`,
 * the announced integrity is that of another file. With `x.tgz.slow` half of it is sent, then nothing, and
 * `x.tgz.begun` reports that.
 */
function registryServer(folder: string): Server {
  return createServer((request, response) => {
    const address = `http://${request.headers.host}`;
    const path = new URL(request.url ?? '/', address).pathname;
    if (path.endsWith('.tgz')) {
      const file = join(folder, basename(path));
      const bytes = readFileSync(file);
      if (!existsSync(`${file}.slow`)) return void response.end(bytes);
      response.writeHead(200, { 'content-length': bytes.length }).write(bytes.subarray(0, bytes.length / 2));
      return writeFileSync(`${file}.begun`, '');
    }
    const versions = globSync('*.tgz', { cwd: folder }).map((file) => {
      const manifest = manifestOf(join(folder, file));
      const isWrong = existsSync(join(folder, `${file}.wrong`));
      const integrity = integrityOf(isWrong ? 'something else' : readFileSync(join(folder, file)));
      return { ...manifest, dist: { tarball: `${address}/${file}`, integrity } };
    });
    const named = versions.filter(({ name }) => path === `/${name}`);
    const latest = named
      .map(({ version }) => version)
      .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
      .at(-1);
    if (latest === undefined) return void response.writeHead(404).end('{}');
    const all = Object.fromEntries(named.map((version) => [version.version, version]));
    return void response.end(JSON.stringify({ name: path.slice(1), 'dist-tags': { latest }, versions: all }));
  });
}

/** @returns its address */
export const startRegistry = (owner: Owner, folder: string): Promise<string> =>
  listening(owner, registryServer(folder));

if (import.meta.main) {
  const [folder, port] = process.argv.slice(2);
  registryServer(folder!).listen(Number(port), '127.0.0.1', () => writeFileSync(join(folder!, 'listening'), ''));
}
