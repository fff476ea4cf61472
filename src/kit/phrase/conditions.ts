/** Reads the parts of `condition-parts.ts` into the fields of an alarm, and writes the fields as parts. Pure. */
import type { z } from 'zod';
import { HOOK_SCHEMES, OBJECT_SCHEMAS, type ObjectField } from '../../wire/conditions.ts';
import { readIsoDuration } from '../../wire/iso-duration.ts';
import { isExact, isNumberLiteral, isObject } from '../../wire/json.ts';
import { checkInput, showValue } from '../../wire/validate.ts';
import { isoDuration, parseDuration } from '../clock/duration.ts';
import { CommandLineError, joinCommand, shellCharacterIn, splitCommand } from './command-line.ts';
import { type GivenParts, PART_NAMES, type PartName, partOf, partsOf } from './condition-parts.ts';

/** The fields, as a request has them. */
export type Conditions = { [N in ObjectField]?: z.input<(typeof OBJECT_SCHEMAS)[N]> | undefined };

const FIELDS = Object.keys(OBJECT_SCHEMAS) as ObjectField[];

type ReadOptions = {
  /** The name of a part in an error: its flag, or the title of its control. */
  readonly nameOf: (part: PartName) => string;
  readonly refuse: (message: string) => Error;
  /** The fields before an edit. Members that have no part stay, as long as the source or the address does. */
  readonly earlier?: Conditions | undefined;
};

const UNITS = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
] as const;

/** Seconds in all their units: `1 d 2 h 30 min`. {@link conditionsOf} reads it back. */
export function secondsText(seconds: number): string {
  let rest = Math.round(seconds);
  const parts = UNITS.flatMap(([size, unit]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? [] : [`${count} ${unit}`];
  });
  return parts.join(' ') || '0 s';
}

/** A duration of ISO 8601 in all its units. */
export const durationText = (iso: string): string => secondsText((readIsoDuration(iso) ?? 0) / 1000);

const isSeconds = (member: string) => member.endsWith('_seconds');

/** A value as a person types it: a number, `true`, `false` and `null` as in JSON, other text as it is, or in quotes. */
function scalarIn(text: string): string | number | boolean | null {
  if (text === 'null') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  if (isNumberLiteral(text) && isExact(text)) return Number(text);
  if (!/^".*"$/s.test(text)) return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : text;
  } catch {
    return text;
  }
}

export const scalarText = (value: unknown): string =>
  typeof value === 'string' && scalarIn(value) === value ? value : JSON.stringify(value);

type Filter = { readonly pointer: string; readonly equals?: string | number | boolean | null | undefined };

/** `/action=opened`; without a value, `/action`. */
function filterIn(text: string): Filter | undefined {
  const [, pointer, equals] = /^((?:\/[^=]*)?)(?:=(.*))?$/s.exec(text) ?? [];
  if (pointer === undefined) return undefined;
  return equals === undefined ? { pointer } : { pointer, equals: scalarIn(equals) };
}

const filterText = ({ pointer, equals }: Filter) =>
  equals === undefined ? pointer : `${pointer}=${scalarText(equals)}`;

/** The source of events that a text names. */
function sourceIn(text: string): Record<string, unknown> | undefined {
  const [, word = '', rest] = /^([a-z]+)(?::(.*))?$/s.exec(text) ?? [];
  const scheme = HOOK_SCHEMES.find((one) => one === (word === 'webhook' ? rest : word));
  if (word === 'webhook' && rest === undefined) return { source: 'webhook' };
  if (scheme !== undefined && (word === 'webhook' || (word === 'github' && rest === undefined)))
    return { source: 'webhook', verify: scheme };
  if (!rest) return undefined;
  if (word === 'file') return { source: 'file', path: rest };
  if (word === 'process') return /^\d{1,9}$/.test(rest) ? { source: 'process', pid: Number(rest) } : undefined;
  if (word === 'alarm') return { source: 'alarm', alarm: rest };
  const [, server, name] = /^([^/]+)\/(.+)$/s.exec(rest) ?? [];
  return word === 'mcp' && server !== undefined ? { source: 'mcp', server, name } : undefined;
}

/** The source of events as `--on` has it. */
function sourceText(event: Readonly<Record<string, unknown>>): string {
  const { source, verify, path, pid, alarm, server, name } = event;
  if (source === 'webhook') return verify === undefined ? 'webhook' : `webhook:${String(verify)}`;
  if (source === 'mcp') return `mcp:${String(server)}/${String(name)}`;
  return `${String(source)}:${String(path ?? pid ?? alarm)}`;
}

/** Members that have no part, by field. */
const WITHOUT_PART: Readonly<Record<string, readonly string[]>> = {
  http: ['method', 'headers'],
  event: ['look_every', 'arguments', 'delivery', 'secret', 'on'],
};

const picked = (from: unknown, names: readonly string[] = []) =>
  isObject(from)
    ? Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])))
    : {};

/** A part of a wrong member: the one with its path, else the one that the field begins with. */
function partAt(field: ObjectField, path: readonly PropertyKey[]): PartName {
  const at = path.join('.');
  const parts = partsOf(field);
  const found = parts.find((name) => {
    const { member } = partOf(name);
    return member !== undefined && (at === member || at.startsWith(`${member}.`));
  });
  return found ?? parts[0]!;
}

/** The sentence of a schema about a value that was typed as a duration, without the value. */
const typedSentence = (sentence: string) =>
  sentence
    .replace(
      /an ISO 8601 duration from (\S+) to (\S+),.*$/,
      (_, least: string, most: string) => `a duration from ${durationText(least)} to ${durationText(most)}`,
    )
    .replace(/(\d+) \(got \S+\)$/, (_, seconds: string) => secondsText(Number(seconds)));

class Reader {
  readonly #given: GivenParts;
  readonly #options: ReadOptions;

  constructor(given: GivenParts, options: ReadOptions) {
    this.#given = given;
    this.#options = options;
  }

  has(name: PartName): boolean {
    return this.#given[name] !== undefined;
  }

  fail(message: string): never {
    throw this.#options.refuse(message);
  }

  name(part: PartName): string {
    return this.#options.nameOf(part);
  }

  exclude(...names: PartName[]): void {
    const [one, other] = names.filter((name) => this.has(name));
    if (one !== undefined && other !== undefined)
      this.fail(`${this.name(one)} and ${this.name(other)} exclude each other; give one of them`);
  }

  /** Refuses a part whose counterparts are missing. */
  checkNeeds(): void {
    for (const name of PART_NAMES) {
      const { needs } = partOf(name) as { needs?: readonly PartName[] };
      if (!this.has(name) || needs === undefined || needs.some((needed) => this.has(needed))) continue;
      this.fail(
        `${this.name(name)} needs ${needs.map((needed) => this.name(needed)).join(' or ')}; give it, or omit it`,
      );
    }
  }

  /** The value of a part. @throws naming part, value and remedy */
  value(name: PartName): unknown {
    const { type, member = '', choices = [], least = 0, most = Number.MAX_SAFE_INTEGER } = partOf(name);
    const text = this.#given[name]!;
    const must = (what: string): never => this.fail(`${this.name(name)} must be ${what} (got ${showValue(text)})`);
    switch (type) {
      case 'switch':
        return true;
      case 'count': {
        const count = /^\d{1,9}$/.test(text.trim()) ? Number(text) : Number.NaN;
        return count >= least && count <= most ? count : must(`a whole number from ${least} to ${most}`);
      }
      case 'choice':
        return choices.includes(text) ? text : must(`one of ${choices.join(', ')}`);
      case 'duration': {
        const ms = parseDuration(text.replace(/\s+/g, '')) ?? Number.NaN;
        if (!(ms % 1000 === 0)) return must('a duration in whole seconds, such as 30s, 10m, 2h or 1d');
        return isSeconds(member) ? ms / 1000 : isoDuration(ms);
      }
      case 'names':
        return text.split(',').flatMap((one) => one.trim() || []);
      case 'command':
        return this.#command(name, text);
      case 'filter':
        return filterIn(text) ?? must('a JSON Pointer with a value, such as /action=opened');
      case 'value':
        return scalarIn(text);
      case 'json':
        return this.#json(name, text);
      default:
        return text;
    }
  }

  #command(name: PartName, text: string): string[] {
    try {
      const words = splitCommand(text);
      const found = shellCharacterIn(text);
      if (found === undefined) return words;
    } catch (thrown) {
      if (!(thrown instanceof CommandLineError)) throw thrown;
      return this.fail(`${this.name(name)} ${thrown.message} (got ${showValue(text)})`);
    }
    return this.fail(
      `${this.name(name)} is run without a shell, so ${shellCharacterIn(text)} has no meaning: put it in quotes, or write sh -c '…' (got ${showValue(text)})`,
    );
  }

  #json(name: PartName, text: string): Record<string, unknown> {
    try {
      const value: unknown = JSON.parse(text);
      if (isObject(value)) return value;
    } catch {
      // The sentence below says what is expected.
    }
    return this.fail(`${this.name(name)} must be a JSON object (got ${showValue(text)})`);
  }

  /** The members of a field that its parts give. */
  members(field: ObjectField): Record<string, unknown> {
    const members: Record<string, unknown> = {};
    for (const name of partsOf(field)) {
      const { member } = partOf(name);
      if (!this.has(name) || member === undefined) continue;
      const [outer, inner] = member.split('.') as [string, string | undefined];
      if (inner === undefined) members[outer] = this.value(name);
      else members[outer] = { ...(members[outer] as object), [inner]: this.value(name) };
    }
    return members;
  }

  check(): Record<string, unknown> {
    if (this.has('check')) return this.value('check') as Record<string, unknown>;
    const members = this.members('check');
    if (!isObject(members.http)) return members;
    const { earlier } = this.#options;
    const before = earlier?.check?.http;
    const kept = before?.url === members.http.url ? picked(before, WITHOUT_PART.http) : {};
    const changed = this.has('check-changed') && (this.has('check-pointer') ? { changed: true } : { etag: 'changed' });
    return { ...members, http: { ...members.http, ...kept, ...changed } };
  }

  event(): Record<string, unknown> {
    const text = this.#given.on!;
    const source = text.startsWith('{') ? this.#json('on', text) : sourceIn(text.trim());
    if (source === undefined)
      return this.fail(
        `${this.name('on')} must be webhook, github, file:PATH, process:PID or mcp:SERVER/EVENT (got ${showValue(text)})`,
      );
    const before = this.#options.earlier?.event;
    const isSame = before !== undefined && sourceText(before) === sourceText(source);
    return {
      ...source,
      ...(isSame && picked(before, WITHOUT_PART.event)),
      ...this.members('event'),
      ...(this.has('repeat') && { repeat: 'always' }),
    };
  }

  read(field: ObjectField): unknown {
    if (!partsOf(field).some((name) => this.has(name))) return undefined;
    const value = field === 'check' ? this.check() : field === 'event' ? this.event() : this.members(field);
    const checked = checkInput(OBJECT_SCHEMAS[field], value);
    if ('value' in checked) return value;
    const { path, sentence } = checked.problems[0]!;
    const at = path.join('.');
    const name = field === 'check' && this.has('check') ? 'check' : partAt(field, path);
    if (at === '' || !sentence.startsWith(`${at} `)) return this.fail(`${this.name(name)}: ${sentence}`);
    const rest = sentence.slice(at.length + 1);
    if (at !== partOf(name).member) return this.fail(`${this.name(name)}: ${at} ${rest}`);
    if (partOf(name).type !== 'duration') return this.fail(`${this.name(name)} ${rest}`);
    return this.fail(`${this.name(name)} ${typedSentence(rest)} (got ${showValue(this.#given[name])})`);
  }
}

/**
 * The fields that some parts give.
 *
 * @throws what `refuse` makes of a message that names part, value and remedy
 */
export function conditionsOf(given: GivenParts, options: ReadOptions): Conditions {
  const reader = new Reader(given, options);
  for (const name of partsOf('check')) if (name !== 'check') reader.exclude('check', name);
  reader.exclude('check-url', 'check-command', 'check-path');
  reader.exclude('check-equals', 'check-changed');
  reader.exclude('on', 'after');
  reader.exclude('deadline', 'expect-every');
  reader.checkNeeds();
  if (reader.has('check-pointer') && !reader.has('check-equals') && !reader.has('check-changed'))
    reader.fail(
      `${reader.name('check-pointer')} needs ${reader.name('check-equals')} or ${reader.name('check-changed')}, which judges the value`,
    );
  const read = FIELDS.map((field) => [field, reader.read(field)] as const);
  return Object.fromEntries(read.filter(([, value]) => value !== undefined)) as Conditions;
}

function textOf(name: PartName, value: unknown): string {
  const { type, member = '' } = partOf(name);
  switch (type) {
    case 'duration':
      return isSeconds(member) ? secondsText(value as number) : durationText(value as string);
    case 'names':
      return (value as readonly string[]).join(', ');
    case 'command':
      return joinCommand(value as readonly string[]);
    case 'filter':
      return filterText(value as Filter);
    case 'value':
      return scalarText(value);
    default:
      return type === 'switch' ? 'on' : String(value);
  }
}

const valueAt = (value: unknown, path: readonly string[]): unknown =>
  path.reduce((inner: unknown, name) => (isObject(inner) ? inner[name] : undefined), value);

/** The parts of the fields of an alarm. */
export function givenPartsOf(alarm: Conditions): GivenParts {
  const texts: { [N in PartName]?: string } = {};
  for (const name of PART_NAMES) {
    const { of, member, type } = partOf(name);
    const value = member === undefined ? undefined : valueAt(alarm[of], member.split('.'));
    if (value !== undefined && !(type === 'switch' && value === false)) texts[name] = textOf(name, value);
  }
  const { check, event } = alarm;
  if (check?.http?.etag !== undefined || check?.http?.changed) texts['check-changed'] = 'on';
  if (event !== undefined) texts.on = sourceText(event);
  if (event?.repeat === 'always') texts.repeat = 'on';
  return texts;
}
