/**
 * The software bill of materials of the package, in CycloneDX (https://cyclonedx.org): what npm finds in the laid out
 * package, and what it installs beside it on Windows. Equal packages give equal bills: without a serial number and a
 * time.
 */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT, readManifest } from './manifest.ts';

type Hash = { alg: string; content: string };
type Component = { 'bom-ref': string; name: string; version: string; hashes?: Hash[]; [field: string]: unknown };
export type Bill = {
  bomFormat: string;
  specVersion: string;
  metadata: { component: Component; [field: string]: unknown };
  components: Component[];
  dependencies: { ref: string; dependsOn?: string[] }[];
};

/** The digest of each locked package's archive, by `name@version`. */
function lockedDigests(): ReadonlyMap<string, Hash> {
  type Locked = { version?: string; integrity?: string };
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  return new Map(
    Object.entries(packages).flatMap(([path, { version, integrity }]) => {
      const [, base64] = /^sha512-(\S+)$/.exec(integrity ?? '') ?? [];
      if (version === undefined || base64 === undefined) return [];
      const content = Buffer.from(base64, 'base64').toString('hex');
      return [[`${path.slice(path.lastIndexOf('node_modules/') + 13)}@${version}`, { alg: 'SHA-512', content }]];
    }),
  );
}

/**
 * @param folder the laid out package
 * @param tarball the content of its archive
 * @throws Error when the lock file does not have a package
 */
export function billOfMaterials(folder: string, tarball: Buffer): Bill {
  const flags = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application'];
  const text = execFileSync('npm', ['sbom', ...flags], { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
  const { serialNumber: _, metadata, components, dependencies, ...rest } = JSON.parse(text);
  const { timestamp: __, component: root, ...about } = metadata;
  const { name, optionalDependencies = {} } = readManifest(folder);
  const digests = lockedDigests();
  const withDigest = (component: Component): Component => {
    const digest = digests.get(`${component.name}@${component.version}`);
    if (digest === undefined) throw new Error(`package-lock.json does not have ${component['bom-ref']}`);
    return { ...component, hashes: [digest] };
  };
  const beside = Object.entries(optionalDependencies).map(([name, version]) => {
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
    return { 'bom-ref': `${name}@${version}`, type: 'library', name, version, scope: 'optional', purl };
  });
  const ofRoot = (ref: string) => (ref === root['bom-ref'] ? beside.map((one) => one['bom-ref']) : []);
  return {
    ...rest,
    // npm takes the name of the folder.
    metadata: {
      ...about,
      component: { ...root, name, hashes: [{ alg: 'SHA-256', content: hash('sha256', tarball) }] },
    },
    components: [...components, ...beside].map(withDigest),
    dependencies: [
      ...dependencies.map(({ ref, dependsOn = [] }: Bill['dependencies'][number]) => ({
        ref,
        dependsOn: [...new Set([...dependsOn, ...ofRoot(ref)])],
      })),
      ...beside.map((one) => ({ ref: one['bom-ref'], dependsOn: [] })),
    ],
  };
}
