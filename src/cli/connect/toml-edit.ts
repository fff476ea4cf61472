/** Adds our entries to a TOML file of another program, and removes them; comments, order and spelling of the rest stay. Pure. */
import { parse, patch } from '@decimalturn/toml-patch';
import { ReveilleError } from '../../wire/errors.ts';
import { type Entries, isOurServer, PLACE_NAMES, SERVERS, type ServerEntry, type ServerName } from './entries.ts';
import { nameTaken } from './json-edit.ts';

type Table = Record<string, unknown>;

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);

/** @throws ReveilleError `invalid_request` with the position of a syntax error */
export function readToml(text: string): Table {
  try {
    return parse(text) as Table;
  } catch (cause) {
    const { message } = cause as Error;
    // "Error parsing TOML (2, 1):", the line, a mark below it, and the problem.
    const [, line, column] = /\((\d+), (\d+)\)/.exec(message) ?? [];
    const what = message.split('\n').at(-1) ?? message;
    const place = line === undefined ? '' : `line ${line}, column ${column}: `;
    throw new ReveilleError('invalid_request', `${place}${what}`, { cause });
  }
}

function serversOf(document: Table, field: string): Table {
  const value = document[field] ?? {};
  if (!isTable(value)) throw new ReveilleError('invalid_request', `"${field}" must be a table`);
  return value;
}

const ourNames = (servers: Table): ServerName[] =>
  (Object.keys(SERVERS) as ServerName[]).filter((name) => isOurServer(name, servers[name]));

/** A table in common style. TOML's basic strings use the escapes of JSON. */
function tableOf(field: string, name: string, { command, args, env }: ServerEntry, eol: string): string {
  const lines = [
    `[${field}.${name}]`,
    `command = ${JSON.stringify(command)}`,
    `args = [${args.map((word) => JSON.stringify(word)).join(', ')}]`,
    ...(env
      ? [
          `env = { ${Object.entries(env)
            .map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
            .join(', ')} }`,
        ]
      : []),
  ];
  return `${lines.join(eol)}${eol}`;
}

/** The entry with our start; its other fields stay. */
function renewed(was: Table, { command, args, env }: ServerEntry): Table {
  const places = isTable(was.env) ? was.env : {};
  const others = Object.entries(places).filter(([name]) => !PLACE_NAMES.includes(name));
  const all = Object.fromEntries([...others, ...Object.entries(env ?? {})]);
  const { env: _, ...rest } = was;
  return { ...rest, command, args: [...args], ...(Object.keys(all).length === 0 ? {} : { env: all }) };
}

const same = (left: unknown, right: unknown) => JSON.stringify(left) === JSON.stringify(right);

/**
 * @returns the text with our servers, unchanged when they are in it
 * @throws ReveilleError `conflict` when another server has a name of ours
 */
export function connectToml(text: string, field: string, { servers }: Entries): string {
  const document = readToml(text);
  const present = serversOf(document, field);
  const ours = ourNames(present);
  const wanted = Object.entries(servers) as [ServerName, ServerEntry][];
  const foreign = wanted.find(([name]) => present[name] !== undefined && !ours.includes(name));
  if (foreign) throw nameTaken(field, foreign[0]);
  const changed = wanted.flatMap(([name, server]) => {
    if (!ours.includes(name)) return [];
    const next = renewed(present[name] as Table, server);
    return same(sorted(next), sorted(present[name])) ? [] : [[name, next] as const];
  });
  const renewedText =
    changed.length === 0 ? text : patch(text, { ...document, [field]: { ...present, ...Object.fromEntries(changed) } });
  const missing = wanted.filter(([name]) => !ours.includes(name));
  if (missing.length === 0) return renewedText;

  const eol = text.includes('\r\n') ? '\r\n' : '\n';
  const tables = missing.map(([name, server]) => tableOf(field, name, server, eol));
  const start = renewedText === '' || renewedText.endsWith('\n') ? renewedText : `${renewedText}${eol}`;
  const appended = [start, ...tables].filter((part) => part !== '').join(eol);
  try {
    parse(appended);
    return appended;
  } catch {
    // Servers in an inline table have no tables of their own.
    const now = readToml(renewedText);
    const added = missing.map(([name, { command, args, env }]) => [
      name,
      { command, args: [...args], ...(env && { env }) },
    ]);
    return patch(renewedText, { ...now, [field]: { ...serversOf(now, field), ...Object.fromEntries(added) } });
  }
}

const sorted = (value: unknown): unknown =>
  isTable(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;

/** @returns the text without our servers, unchanged when there are none */
export function removeToml(text: string, field: string): string {
  const document = readToml(text);
  const present = serversOf(document, field);
  const ours = ourNames(present);
  if (ours.length === 0) return text;
  const left = Object.fromEntries(Object.entries(present).filter(([name]) => !ours.includes(name as ServerName)));
  const { [field]: _, ...others } = document;
  return patch(text, Object.keys(left).length === 0 ? others : { ...others, [field]: left });
}
