/**
 * Adds our entries to a JSON file of another program, and removes them. The rest is unchanged, byte for byte, including
 * comments and trailing commas. Pure.
 */

import {
  applyEdits,
  type FormattingOptions,
  findNodeAtLocation,
  type JSONPath,
  modify,
  type Node,
  type ParseError,
  parse,
  parseTree,
  printParseErrorCode,
} from 'jsonc-parser';
import { ReveilleError } from '../../wire/errors.ts';
import { isObject } from '../../wire/json.ts';
import type { HookPart, ServersPart } from './clients.ts';
import { type Entries, isOurHook, isOurServer, PLACE_NAMES, SERVERS, type ServerName } from './entries.ts';

type Fields = Record<string, unknown>;

const kindOf = (value: unknown) => (Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`);

const malformed = (message: string) => new ReveilleError('invalid_request', message);

/** The position of an offset in editor style: line and column from 1. */
function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n');
  return `line ${before.length}, column ${before.at(-1)!.length + 1}`;
}

/** `PropertyNameExpected` as words. */
const wordsOf = (code: string) => code.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').toLowerCase();

/** Programs disagree about which of two fields with one name counts. */
function refuseTwice(text: string, node: Node): void {
  const names = new Set<string>();
  for (const child of node.children ?? []) {
    const [name] = child.type === 'property' ? child.children! : [];
    if (name !== undefined && names.has(name.value))
      throw malformed(`${placeOf(text, name.offset)}: the field "${name.value}" is a duplicate`);
    if (name !== undefined) names.add(name.value);
    refuseTwice(text, child);
  }
}

/**
 * @param text an empty one counts as an empty object
 * @throws ReveilleError `invalid_request` with the position of a syntax error
 */
export function readJson(text: string): Fields {
  if (text.trim() === '') return {};
  const errors: ParseError[] = [];
  const value: unknown = parse(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first) throw malformed(`${placeOf(text, first.offset)}: ${wordsOf(printParseErrorCode(first.error))}`);
  refuseTwice(text, parseTree(text, [], { allowTrailingComma: true })!);
  if (!isObject(value)) throw malformed(`line 1, column 1: must be an object (it is ${kindOf(value)})`);
  return value;
}

/** An object field; absent counts as empty. */
function fieldsAt(parent: Fields, name: string, path: string): Fields {
  const value = parent[name] ?? {};
  if (!isObject(value)) throw malformed(`"${path}" must be an object (it is ${kindOf(value)})`);
  return value;
}

/** The style of the file: its first indentation, and its line ends. */
function formattingOf(text: string): FormattingOptions {
  const [, indent = '  '] = /^[{[]?[ \t]*\r?\n([ \t]+)/m.exec(text) ?? [];
  const isTab = indent.startsWith('\t');
  return { insertSpaces: !isTab, tabSize: isTab ? 1 : indent.length, eol: text.includes('\r\n') ? '\r\n' : '\n' };
}

/** Sets the value at a path; -1 at its end is a new last item of a list. */
function put(text: string, path: JSONPath, value: unknown): string {
  const isArrayInsertion = path.at(-1) === -1;
  return applyEdits(text, modify(text, path, value, { formattingOptions: formattingOf(text), isArrayInsertion }));
}

const BLANKS_AND_COMMENTS = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;

/** The offset of a comma right after an offset, if there is one. */
function commaAfter(text: string, offset: number): number | undefined {
  BLANKS_AND_COMMENTS.lastIndex = offset;
  const at = offset + (BLANKS_AND_COMMENTS.exec(text)?.[0].length ?? 0);
  return text[at] === ',' ? at : undefined;
}

/** Removes the field or item at a path, with its comma; other comments stay. */
function take(text: string, path: JSONPath): string {
  const tree = parseTree(text, [], { allowTrailingComma: true });
  const value = tree && findNodeAtLocation(tree, path);
  if (!value) return text;
  const node = value.parent?.type === 'property' ? value.parent : value;
  const siblings = node.parent!.children!;
  const before = siblings[siblings.indexOf(node) - 1];
  const end = node.offset + node.length;
  const comma = commaAfter(text, end);
  const rest = text.slice(comma === undefined ? end : comma + 1);
  // A line of its own is removed whole; otherwise a comment before it might swallow the next text.
  const start = /^[ \t]*\r?\n/.test(rest) ? text.slice(0, node.offset).trimEnd().length : node.offset;
  const spare = comma === undefined && before ? commaAfter(text, before.offset + before.length) : undefined;
  if (spare === undefined || spare >= start) return text.slice(0, Math.min(start, spare ?? start)) + rest;
  return text.slice(0, spare) + text.slice(spare + 1, start) + rest;
}

const same = (left: unknown, right: unknown) => JSON.stringify(left) === JSON.stringify(right);

/** Our servers in a file, and the first foreign server with a name of ours. */
function serversIn(text: string, { field }: ServersPart): { ours: Fields; foreign: string | undefined } {
  const all = fieldsAt(readJson(text), field, field);
  const named = (Object.keys(SERVERS) as ServerName[]).filter((name) => all[name] !== undefined);
  const isOurs = (name: ServerName) => isOurServer(name, all[name]);
  const ours = Object.fromEntries(named.filter(isOurs).map((name) => [name, all[name]]));
  return { ours, foreign: named.find((name) => !isOurs(name)) };
}

export const nameTaken = (field: string, name: string) =>
  new ReveilleError(
    'conflict',
    `"${field}.${name}" is a server of another program; rename or remove it, and connect again`,
  );

/** Sets the start of a server; other fields of its entry stay. */
function putServer(text: string, path: JSONPath, was: Fields, wanted: Fields): string {
  let changed = text;
  const { env: wantedPlaces = {}, ...start } = wanted as { env?: Fields } & Fields;
  for (const [name, value] of Object.entries(start))
    if (!same(was[name], value)) changed = put(changed, [...path, name], value);
  const had = isObject(was.env) ? was.env : {};
  for (const name of PLACE_NAMES) {
    const place = [...path, 'env', name];
    if (wantedPlaces[name] === undefined) changed = take(changed, place);
    else if (had[name] !== wantedPlaces[name]) changed = put(changed, place, wantedPlaces[name]);
  }
  return changed;
}

function connectServers(text: string, part: ServersPart, { servers }: Entries): string {
  let changed = text;
  const { ours, foreign } = serversIn(text, part);
  if (foreign !== undefined && foreign in servers) throw nameTaken(part.field, foreign);
  for (const [name, server] of Object.entries(servers)) {
    const wanted = { ...part.extra, ...server };
    const path = [part.field, name];
    const was = ours[name];
    changed = isObject(was) ? putServer(changed, path, was, wanted) : put(changed, path, wanted);
  }
  return changed;
}

function removeServers(text: string, part: ServersPart): string {
  let changed = text;
  for (const name of Object.keys(serversIn(text, part).ours)) changed = take(changed, [part.field, name]);
  const left = readJson(changed)[part.field];
  return changed !== text && isObject(left) && Object.keys(left).length === 0 ? take(changed, [part.field]) : changed;
}

type HookPosition = { readonly group: number; readonly at: number; readonly command: string };

/** The index of our hook among those of an event. */
function hooksIn(text: string, event: string): HookPosition[] {
  const groups = fieldsAt(readJson(text), 'hooks', 'hooks')[event] ?? [];
  if (!Array.isArray(groups)) throw malformed(`"hooks.${event}" must be a list (it is ${kindOf(groups)})`);
  return groups.flatMap((entry: unknown, group) => {
    const hooks = isObject(entry) && Array.isArray(entry.hooks) ? entry.hooks : [];
    return hooks.flatMap((hook: unknown, at) =>
      isObject(hook) && isOurHook(hook.command) ? [{ group, at, command: hook.command }] : [],
    );
  });
}

function connectHook(text: string, { event, flags, timeout }: HookPart, { hook }: Entries): string {
  if (hook === undefined) return text;
  const command = `${hook.join(' ')}${flags}`;
  const [found] = hooksIn(text, event);
  if (found?.command === command) return text;
  if (found) return put(text, ['hooks', event, found.group, 'hooks', found.at, 'command'], command);
  const group = { hooks: [{ type: 'command', command, timeout }] };
  const hasList = fieldsAt(readJson(text), 'hooks', 'hooks')[event] !== undefined;
  return hasList ? put(text, ['hooks', event, -1], group) : put(text, ['hooks', event], [group]);
}

function removeHook(text: string, { event }: HookPart): string {
  let changed = text;
  for (const { group, at } of hooksIn(text, event).reverse()) {
    const path = ['hooks', event, group];
    changed = take(changed, [...path, 'hooks', at]);
    const { [event]: groups } = fieldsAt(readJson(changed), 'hooks', 'hooks') as Record<string, Fields[]>;
    if ((groups![group]!.hooks as unknown[]).length === 0) changed = take(changed, path);
  }
  for (const path of [['hooks', event], ['hooks']]) {
    const left = path.reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), readJson(changed));
    const isEmpty = Array.isArray(left) ? left.length === 0 : isObject(left) && Object.keys(left).length === 0;
    if (isEmpty && changed !== text) changed = take(changed, path);
  }
  return changed;
}

/**
 * @returns the text with our entries, unchanged when they are in it
 * @throws ReveilleError `conflict` when another server has a name of ours
 */
export function connectJson(text: string, part: ServersPart | HookPart, entries: Entries): string {
  return part.kind === 'servers' ? connectServers(text, part, entries) : connectHook(text, part, entries);
}

/** @returns the text without our entries, unchanged when there are none */
export function removeJson(text: string, part: ServersPart | HookPart): string {
  return part.kind === 'servers' ? removeServers(text, part) : removeHook(text, part);
}
