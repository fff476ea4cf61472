/** Loads presets: the user's own folder first, then the included ones. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { presetNameSchema } from '../router/providers/command.ts';
import { DAEMON_PROVIDERS } from '../router/providers/descriptors.ts';
import { nearestOf } from '../wire/edit-distance.ts';
import { ReveilleError } from '../wire/errors.ts';
import { type Preset, parsePreset } from './preset.ts';

const SHIPPED = fileURLToPath(new URL('./presets', import.meta.url));
const ENDING = '.json';

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (thrown) {
    const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw new ReveilleError('unavailable', `the preset ${path} cannot be read: ${code ?? thrown}`, { cause: thrown });
  }
}

function namesIn(folder: string): string[] {
  try {
    const files = readdirSync(folder).filter((file) => file.endsWith(ENDING));
    return files.map((file) => file.slice(0, -ENDING.length));
  } catch {
    // The user's folder need not exist.
    return [];
  }
}

export class Presets {
  readonly #own: string;

  /** @param own the user's folder; its files are read again for each use, so that a change applies at once */
  constructor(own: string) {
    this.#own = own;
  }

  /** In order of name. */
  names(): string[] {
    const found = [...namesIn(SHIPPED), ...namesIn(this.#own)];
    return [...new Set(found)].filter((name) => presetNameSchema.safeParse(name).success).sort();
  }

  /**
   * @param name matches `presetNameSchema`, so that it cannot leave the folders
   * @throws ReveilleError `invalid_request` when none has this name, or when its file is invalid
   */
  get(name: string): Preset {
    for (const folder of [this.#own, SHIPPED]) {
      const path = join(folder, `${name}${ENDING}`);
      const text = textOf(path);
      if (text !== undefined) return parsePreset(name, text, path);
    }
    const [presets, providers] = [this.names(), DAEMON_PROVIDERS.map((one) => one.name)];
    const nearest = nearestOf(name, [...providers, ...presets]);
    const meant = nearest === undefined ? '' : `; did you mean ${nearest}?`;
    throw new ReveilleError(
      'invalid_request',
      `spec.preset must be one of ${presets.join(', ')}, or the name of a file in ${this.#own} (got ${JSON.stringify(name)}); providers are ${providers.join(', ')}${meant}`,
    );
  }
}
