/**
 * `docs/reference/settings.md`: every variable with its default, its allowed values and its meaning. The meaning is the
 * comment of the declaration; default and allowed values come from the schema.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { COMMON, OF_THE_PERSON, SETTINGS_OF } from '../src/cli/home/settings-names.ts';
import { code, table } from './routes-page.ts';

const SOURCES = join(import.meta.dirname, '..', 'src');
/** The files that declare settings. Settings that several daemons share are declared without the prefix of the daemon. */
const DECLARED_IN = [
  '**/*config.ts',
  '**/settings.ts',
  '**/mcp-settings.ts',
  'mcp-host/limits.ts',
  'kit/http/listener-settings.ts',
  'kit/model/endpoint.ts',
  'cli/home/settings-names.ts',
];

/** A member of an object with the comment before it. */
const DECLARATION = /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*(\w+):/g;

/** The first comment of each member in the given files below `src`, as one line. */
export function meanings(files: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const file of globSync(files, { cwd: SOURCES, exclude: ['**/*.test.ts'] }).sort()) {
    for (const [, comment, name] of readFileSync(join(SOURCES, file), 'utf8').matchAll(DECLARATION)) {
      const text = comment!.replace(/\n\s*\* ?/g, ' ').trim();
      if (!found.has(name!)) found.set(name!, text);
    }
  }
  return found;
}

/** The meaning of the name, or of the name without the prefix of its daemon. */
function meaningOf(name: string, known: ReadonlyMap<string, string>): string {
  const ends = name.split('_').map((_, at, words) => words.slice(at).join('_'));
  const meaning = ends.map((end) => known.get(end)).find((text) => text !== undefined);
  if (meaning === undefined) throw new Error(`${name} has no comment at its declaration`);
  return meaning;
}

/** The default, as a user would write it. */
function defaultOf(schema: z.ZodType): string {
  const { data } = schema.safeParse(undefined);
  if (data === undefined || (Array.isArray(data) && data.length === 0)) return '';
  return code(typeof data === 'boolean' ? String(Number(data)) : String(data));
}

/** The allowed values, taken from the error for a value that no schema accepts. */
function allowedOf(schema: z.ZodType): string {
  const { error } = schema.safeParse('\u0000');
  const issue = error?.issues[0];
  if (issue === undefined) return '';
  if (issue.code === 'invalid_value' && issue.message.startsWith('Invalid'))
    return issue.values.map((word) => code(String(word))).join(', ');
  return issue.message.replace(/^must (?:be|have|begin)\b ?/, (words) =>
    words.startsWith('must begin') ? 'begins ' : '',
  );
}

const HEAD = ['Variable', 'Default', 'Allowed', 'Meaning'];

function section(title: string, rows: readonly (readonly string[])[]): string {
  return `## ${title}\n\n${table(HEAD, rows)}\n`;
}

const TITLES: Readonly<Record<keyof typeof SETTINGS_OF, string>> = {
  chronosd: 'chronosd',
  router: 'Router',
  neo: 'Neo',
  executor: 'Executor',
  notifier: 'Notifier',
  mcp: 'Alarm tools (`reveille mcp`)',
};

/**
 * The generated page.
 *
 * @throws Error for a variable without a comment
 */
export function settingsPage(): string {
  const known = meanings(DECLARED_IN);
  const row = (name: string, schema: z.ZodType) => [
    code(name),
    defaultOf(schema),
    allowedOf(schema),
    meaningOf(name, known),
  ];
  const listed = new Set(Object.keys(COMMON));
  const parts = Object.entries(TITLES).map(([part, title]) => {
    const members = SETTINGS_OF[part as keyof typeof SETTINGS_OF].flatMap(({ shape }) =>
      Object.entries<z.ZodType>(shape),
    );
    const own = members.filter(([name]) => !listed.has(name));
    for (const [name] of own) listed.add(name);
    return section(
      title,
      own.map(([name, schema]) => row(name, schema)),
    );
  });
  const plain = (all: Readonly<Record<string, string>>) =>
    Object.entries(all).map(([name, value]) => [code(name), value && code(value), '', meaningOf(name, known)]);
  return [
    '# Settings',
    'Every environment variable with its default, its allowed values and its meaning. This page is generated (`npm run schemas`).',
    'A flag overrides the environment. The environment overrides `config.yaml` in `REVEILLE_HOME`. An empty value counts as not set. A wrong value stops the start; the error names the variable, the value and the allowed values. `reveille doctor` reports it beforehand. A variable is listed under the first part that reads it.',
    section('All parts', plain(COMMON)),
    ...parts,
    section('Environment only', [...plain(OF_THE_PERSON)]) +
      '\nThese are read from the environment only. No file of an installation can set them.\n',
  ]
    .join('\n\n')
    .replace(/\n{3,}/g, '\n\n');
}
