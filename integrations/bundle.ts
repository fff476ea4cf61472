/**
 * `npm run bundles`: makes `dist/reveille-<server>-<version>.mcpb`, bundles that desktop clients install with a click.
 * A bundle has a manifest and the package of `npm run package`. Equal sources give equal bytes. It also writes
 * `dist/server.json`, the entry of the MCP registry, with the name of the package.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { strToU8, type Zippable, zipSync } from 'fflate';
import { ROOT } from '../packaging/manifest.ts';
import { BUNDLES, bundleManifest, registryEntry } from './generate.ts';

/** Zip has no time zone and begins in 1980; the same for every file. */
const WRITTEN = new Date(1980, 0, 2);

/**
 * @param folder the package, laid out
 * @returns the paths of the bundles
 */
export function makeBundles(folder: string, target: string): string[] {
  if (!existsSync(join(folder, 'package.json')))
    throw new Error(`there is no package in ${folder}; run "npm run package" first`);
  const files: Zippable = {};
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    files[`server/${relative(folder, path).split(sep).join('/')}`] = readFileSync(path);
  }
  return BUNDLES.map((bundle) => {
    const manifest = bundleManifest(bundle);
    const text = `${JSON.stringify(manifest, null, 2)}\n`;
    const path = join(target, `${manifest.name}-${manifest.version}.mcpb`);
    writeFileSync(path, zipSync({ 'manifest.json': strToU8(text), ...files }, { mtime: WRITTEN, level: 6 }));
    return path;
  });
}

if (import.meta.main) {
  const dist = join(ROOT, 'dist');
  const { REVEILLE_REPOSITORY: address, REVEILLE_WEBSITE: website } = process.env;
  const entry = `${JSON.stringify(registryEntry(address, website || undefined), null, 2)}\n`;
  writeFileSync(join(dist, 'server.json'), entry);
  for (const path of [...makeBundles(join(dist, 'package'), dist), join(dist, 'server.json')])
    console.log(relative(ROOT, path));
}
