/** `reveille config`: shows and changes the settings of this installation in `config.yaml`. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { withoutPassword } from '../../chronos/store/postgres/address.ts';
import { replacePrivateFile } from '../../kit/identity/private-file.ts';
import { ReveilleError, systemCodeOf } from '../../wire/errors.ts';
import { isSecretName, parseSettings } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { readRun, readSecrets } from '../home/home.ts';
import { readSettingsFile } from '../home/settings-file.ts';
import { isKnownName, knownNames, nearestName, SETTINGS_OF } from '../home/settings-names.ts';
import { columns } from '../screens/columns.ts';

export type ConfigFlags = { unset?: boolean };

type Source = 'environment' | 'config.yaml' | 'generated' | 'default';
type Setting = { readonly name: string; readonly value: string; readonly source: Source };

/** A value for display: secrets are hidden, database addresses lose their password. */
function shown(name: string, value: string): string {
  if (/URI$/.test(name)) return withoutPassword(value);
  return isSecretName(name) ? '(hidden)' : value;
}

/** The settings that have a value, by name. */
async function settingsOf({ home, settings, environment }: CliContext): Promise<Setting[]> {
  const file = await readSettingsFile(home.configFile);
  const generated = readSecrets(home) ?? {};
  return knownNames()
    .flatMap((name): Setting[] => {
      const value = settings[name];
      if (value === undefined || value === '') return [];
      const source: Source = environment[name]
        ? 'environment'
        : file[name] !== undefined
          ? 'config.yaml'
          : name in generated
            ? 'generated'
            : 'default';
      return [{ name, value: shown(name, value), source }];
    })
    .toSorted((a, b) => a.name.localeCompare(b.name));
}

function checkName(name: string): void {
  if (isKnownName(name)) return;
  const near = nearestName(name);
  throw new UsageError(
    `${JSON.stringify(name)} is not a setting; ${near === undefined ? 'list settings with: reveille docs settings' : `did you mean ${near}?`}`,
  );
}

/** Checks one value with the schema of the part that reads it. */
function checkValue(name: string, value: string): void {
  for (const schema of Object.values(SETTINGS_OF).flat()) {
    const field = (schema.shape as Record<string, z.ZodType>)[name];
    if (field !== undefined) parseSettings(z.object({ [name]: field.optional() }), { [name]: value });
  }
}

/** Writes or removes one value and keeps all else in the file, comments included. */
async function write(context: CliContext, name: string, value: string | undefined): Promise<void> {
  const { home } = context;
  // Reports a damaged file before anything is written.
  await readSettingsFile(home.configFile);
  const { parseDocument } = await import('yaml');
  let text = '';
  try {
    text = readFileSync(home.configFile, 'utf8');
  } catch (cause) {
    if (systemCodeOf(cause) !== 'ENOENT') throw cause;
  }
  const document = parseDocument(text);
  if (value === undefined) document.delete(name);
  else if (document.contents === null) document.contents = document.createNode({ [name]: value }) as never;
  else document.set(name, value);
  replacePrivateFile(home.configFile, String(document));
}

export async function config(
  context: CliContext,
  { unset = false }: ConfigFlags,
  name: string | undefined,
  value: string | undefined,
): Promise<void> {
  const { out, home, environment, settings } = context;
  if (name === undefined) {
    if (unset) throw new UsageError('--unset needs the name of a setting');
    const list = await settingsOf(context);
    if (out.json) return out.result(list);
    const rows = list.map(({ name: one, value: what, source }) => [one, source, what]);
    for (const line of columns(rows, out.columns)) out.line(line);
    return out.line(`\n${out.paint('dim', `Change one with: reveille config NAME VALUE (file ${home.configFile})`)}`);
  }
  checkName(name);
  if (value === undefined && !unset) {
    const found = (await settingsOf(context)).find((one) => one.name === name);
    if (found === undefined) throw new ReveilleError('not_found', `${name} is not set; see: reveille docs settings`);
    return out.result(found, found.value);
  }
  if (value !== undefined && unset) throw new UsageError('give a value or --unset, not both');
  if (value !== undefined) checkValue(name, value);
  await write(context, name, value);
  out.result(
    { name, value: value === undefined ? null : shown(name, value), file: home.configFile },
    value === undefined ? `Removed ${name} from ${home.configFile}.` : `Set ${name} in ${home.configFile}.`,
  );
  if (environment[name] && environment[name] !== value)
    out.remark(`The environment also sets ${name}; the environment has precedence.`);
  if (readRun(home) !== undefined && settings.REVEILLE_HOME !== undefined)
    out.remark('Restart to apply it: reveille service restart, or stop and start reveille up.');
}
