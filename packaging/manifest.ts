/** The `package.json` of the package, derived from that of the repository. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const ROOT = join(import.meta.dirname, '..');

export type Manifest = {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  [field: string]: unknown;
};

export const readManifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;

/** The exports of the package: name after the package's name, and source. */
export const EXPORTS: Readonly<Record<string, string>> = {
  '.': 'src/exports/index.ts',
  './client': 'src/exports/client.ts',
  './verify': 'src/exports/verify.ts',
  './tools': 'src/exports/tools.ts',
};

/** Written when the package is made, from the command tree. */
export const MAN_PAGE = 'man/reveille.1';

/**
 * The name in the MCP registry, which proves the owner of the package: `io.github.<owner>/…` belongs to the accounts that
 * can push to the owner's repositories.
 *
 * @param address of the repository; without one, or elsewhere than at GitHub, it is the name in `package.json`
 */
export function registryName(address: string | undefined): string {
  const { name, mcpName } = readManifest(ROOT);
  const [, owner] = /^(?:git\+)?https:\/\/github\.com\/([\w-]+)\//.exec(address ?? '') ?? [];
  return owner === undefined ? String(mcpName) : `io.github.${owner}/${name}`;
}

/** Fields that are about working on the repository. */
const OF_THE_REPOSITORY = ['private', 'scripts', 'devDependencies', 'allowScripts', 'overrides'];

/** The system that calls into native code is Windows alone (`idle/windows.ts`): npm installs its binary there. */
function platformBinaries(): Record<string, string> {
  const { optionalDependencies = {} } = readManifest(join(ROOT, 'node_modules', 'koffi'));
  return Object.fromEntries(Object.entries(optionalDependencies).filter(([name]) => name.includes('-win32-')));
}

/**
 * @param bundled the direct dependencies that the package includes
 * @param address the repository's, which the registry holds a signed provenance against; omitted when unknown
 */
export function packageManifest(bundled: readonly string[], address: string | undefined): Manifest {
  const own = readManifest(ROOT);
  const { dependencies, optionalDependencies } = own;
  const kept = Object.fromEntries(Object.entries(own).filter(([field]) => !OF_THE_REPOSITORY.includes(field)));
  const exports = Object.entries(EXPORTS).map(([name, source]) => {
    const compiled = `./${source.replace(/\.ts$/, '')}`;
    return [name, { types: `${compiled}.d.ts`, default: `${compiled}.js` }];
  });
  return {
    ...(kept as Manifest),
    ...(address === undefined ? {} : { repository: { type: 'git', url: address } }),
    mcpName: registryName(address),
    dependencies: { ...dependencies, ...optionalDependencies },
    optionalDependencies: platformBinaries(),
    man: [MAN_PAGE],
    exports: { ...Object.fromEntries(exports), './package.json': './package.json' },
    bundleDependencies: [...bundled],
    publishConfig: { access: 'public', provenance: true },
  };
}

/** What installing a dependency is about, not running it. */
const OF_INSTALLING = ['scripts', 'devDependencies', 'bin', 'man'];

/** The `package.json` of an included dependency: it requires only included packages. */
export function carriedManifest(text: string, isCarried: (name: string) => boolean): string {
  const manifest = JSON.parse(text) as Manifest;
  for (const field of OF_INSTALLING) delete manifest[field];
  for (const field of ['dependencies', 'optionalDependencies', 'peerDependencies', 'peerDependenciesMeta']) {
    const wanted = manifest[field] as Record<string, unknown> | undefined;
    if (wanted) manifest[field] = Object.fromEntries(Object.entries(wanted).filter(([name]) => isCarried(name)));
  }
  return `${JSON.stringify(manifest, null, 2)}\n`;
}
