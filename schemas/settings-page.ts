/**
 * `docs/settings.md`: every variable, what it means, what it may be and what counts unless it is told. All of that stands
 * where the variable is declared: the meaning is the comment before it, the rest is asked of its schema.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { z } from 'zod';
import { COMMON, OF_THE_PERSON, SETTINGS_OF } from '../src/cli/home/settings-names.ts';
import { code, table } from './contracts-page.ts';

const SOURCES = join(import.meta.dirname, '..', 'src');
/** Where settings are declared. Parts that several daemons have stand there without the daemon's prefix. */
const DECLARED_IN = [
  '**/*config.ts',
  '**/settings.ts',
  '**/mcp-settings.ts',
  'mcp-host/limits.ts',
  'kit/http/door.ts',
  'cli/home/settings-names.ts',
];

/** A member of an object with the comment before it. */
const DECLARATION = /\/\*\*((?:[^*]|\*(?!\/))*)\*\/\s*(\w+):/g;

/** The first comment that each member has in some files below `src`, in one line. */
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

/** Of a name as it stands, or of its end, where the prefix is the daemon's. */
function meaningOf(name: string, known: ReadonlyMap<string, string>): string {
  const ends = name.split('_').map((_, at, words) => words.slice(at).join('_'));
  const meaning = ends.map((end) => known.get(end)).find((text) => text !== undefined);
  if (meaning === undefined) throw new Error(`${name} has no comment where it is declared, which says what it means`);
  return meaning;
}

/** What counts when a variable is not set, as it would be written. */
function defaultOf(schema: z.ZodType): string {
  const { data } = schema.safeParse(undefined);
  if (data === undefined || (Array.isArray(data) && data.length === 0)) return '';
  return code(typeof data === 'boolean' ? String(Number(data)) : String(data));
}

/** What its own error says of a value that nothing takes. */
function allowedOf(schema: z.ZodType): string {
  const { error } = schema.safeParse('\u0000');
  const said = error?.issues[0];
  if (said === undefined) return '';
  if (said.code === 'invalid_value' && said.message.startsWith('Invalid'))
    return said.values.map((word) => code(String(word))).join(', ');
  return said.message.replace(/^must (?:be|have|begin)\b ?/, (words) =>
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
 * The page as it should be.
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
  const told = new Set(Object.keys(COMMON));
  const parts = Object.entries(TITLES).map(([part, title]) => {
    const members = SETTINGS_OF[part as keyof typeof SETTINGS_OF].flatMap(({ shape }) =>
      Object.entries<z.ZodType>(shape),
    );
    const own = members.filter(([name]) => !told.has(name));
    for (const [name] of own) told.add(name);
    return section(
      title,
      own.map(([name, schema]) => row(name, schema)),
    );
  });
  const plain = (all: Readonly<Record<string, string>>) =>
    Object.entries(all).map(([name, value]) => [code(name), value && code(value), '', meaningOf(name, known)]);
  return [
    '# Settings',
    'Flags go before the environment, that before `config.yaml` in `REVEILLE_HOME`, that before the default. An empty value counts as not set. A wrong value stops the start with its name, its value and what is allowed, and `reveille doctor` says so beforehand.',
    'A variable stands under the first part that reads it. This page is made of the code (`npm run schemas`), and a test holds it to it.',
    section('Every part', plain(COMMON)),
    ...parts,
    section('The person at the keyboard', [...plain(OF_THE_PERSON)]) +
      '\nThese are read from the environment alone: no file of an installation may decide them.\n',
  ]
    .join('\n\n')
    .replace(/\n{3,}/g, '\n\n');
}
