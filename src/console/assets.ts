/** Files of the console: style sheet, scripts and icon. Their names contain a digest, so browsers cache them forever. */
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Assets } from './page.ts';
import { HEADERS } from './request-guard.ts';

const FOLDER = join(import.meta.dirname, 'assets');
const require = createRequire(import.meta.url);
const FILES = {
  css: { file: 'console.css', type: 'text/css; charset=utf-8' },
  script: { file: 'console.js', type: 'text/javascript; charset=utf-8' },
  // Applies the differences of a new page to an open one: https://github.com/bigskysoftware/idiomorph
  morph: { file: 'idiomorph.min.js', type: 'text/javascript; charset=utf-8' },
  push: { file: 'push.js', type: 'text/javascript; charset=utf-8' },
  worker: { file: 'worker.js', type: 'text/javascript; charset=utf-8' },
  icon: { file: 'icon.svg', type: 'image/svg+xml' },
  manifest: { file: 'manifest.webmanifest', type: 'application/manifest+json' },
} as const;

export type LoadedAssets = Assets & { serve(name: string): Response | undefined };

export function loadAssets(): LoadedAssets {
  const loaded = Object.values(FILES).map(({ file, type }) => {
    const path = file === 'idiomorph.min.js' ? require.resolve('idiomorph/dist/idiomorph.min.js') : join(FOLDER, file);
    const text = readFileSync(path, 'utf8');
    return { file, type, text, name: file.replace('.', `.${hash('sha256', text).slice(0, 12)}.`) };
  });
  const addressOf = (file: string) => `/assets/${loaded.find((one) => one.file === file)!.name}`;
  return {
    css: addressOf('console.css'),
    script: addressOf('console.js'),
    morph: addressOf('idiomorph.min.js'),
    icon: addressOf('icon.svg'),
    serve(name) {
      const found = loaded.find((one) => one.name === name || one.file === name);
      if (!found) return undefined;
      const kept = found.name === name ? 'public, max-age=31536000, immutable' : 'no-cache';
      return new Response(found.text, {
        headers: { ...HEADERS, 'content-type': found.type, 'cache-control': kept },
      });
    },
  };
}
