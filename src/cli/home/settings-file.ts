/** `$REVEILLE_HOME/config.yaml`: variables by name (docs/reference/settings.md), one per line. The environment has precedence. */
import { readFileSync } from 'node:fs';
import { ReveilleError } from '../../wire/errors.ts';
import { ORIGINS, type Origins, type Settings } from '../../wire/settings.ts';
import { showValue } from '../../wire/validate.ts';

function problem(file: string, line: number | undefined, what: string): ReveilleError {
  return new ReveilleError('invalid_request', `${file}${line === undefined ? '' : `:${line}`}: ${what}`);
}

/**
 * Reads the file; a missing one is empty.
 *
 * @throws ReveilleError `invalid_request` with file and line for a line that is not `NAME: value`, or an unknown name
 */
export async function readSettingsFile(file: string): Promise<Settings> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw problem(file, undefined, `it cannot be read: ${(cause as Error).message}`);
  }
  const { isMap, isScalar, LineCounter, parseDocument } = await import('yaml');
  // The names come from the configuration of every daemon; without this file they need not be loaded.
  const { isKnownName, nearestName, RETIRED } = await import('./settings-names.ts');
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  const [error] = document.errors;
  if (error) throw problem(file, lines.linePos(error.pos[0]).line, error.message.split('\n')[0]!);
  if (document.contents === null) return {};
  if (!isMap(document.contents)) throw problem(file, 1, 'write one "NAME: value" per line, such as CHRONOS_PORT: 9096');

  const settings: Record<string, string> = {};
  const origins: Map<string, { value: string; place: string }> = new Map();
  for (const { key, value } of document.contents.items) {
    const at = isScalar(key) && key.range ? lines.linePos(key.range[0]).line : undefined;
    const name = isScalar(key) ? String(key.value) : '';
    if (RETIRED.has(name)) continue;
    if (!isKnownName(name)) {
      const meant = nearestName(name);
      const remedy = meant === undefined ? 'names look like CHRONOS_PORT' : `did you mean ${meant}?`;
      throw problem(file, at, `${showValue(name)} is not a setting of Reveille; ${remedy}`);
    }
    if (!isScalar(value) || value.value === null) throw problem(file, at, `${name} must have a plain value`);
    // The source text keeps digits that a YAML number would lose, and `yes` stays `yes`.
    settings[name] = typeof value.value === 'string' ? value.value : (value.source ?? String(value.value));
    origins.set(name, { value: settings[name], place: at === undefined ? file : `${file}:${at}` });
  }
  return { ...settings, [ORIGINS]: origins satisfies Origins };
}
