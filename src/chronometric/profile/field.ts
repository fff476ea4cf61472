/** A field of a profile with its position, and the list of problems. */

import type { PositionedYaml } from '../../kit/yaml/strict-yaml.ts';
import { nearestOf } from '../../wire/edit-distance.ts';
import { isObject } from '../../wire/json.ts';
import { showValue } from '../../wire/validate.ts';
import type { ProfileProblem } from './profile.ts';
import { meantTime, readTimeOfDay } from './time-of-day.ts';

type Path = readonly PropertyKey[];

const samePath = (one: Path, other: Path) => one.length === other.length && one.every((part, at) => part === other[at]);

/** Collects problems of one file. */
export class Findings {
  readonly problems: ProfileProblem[] = [];
  readonly yaml: PositionedYaml;

  constructor(yaml: PositionedYaml) {
    this.yaml = yaml;
  }

  add(severity: ProfileProblem['severity'], path: Path, sentence: string, ofName = false): void {
    this.problems.push({ severity, ...this.yaml.position(path, ofName), sentence });
  }
}

/**
 * A value in the file. A reader reports a wrong form and returns `undefined`, so every problem is reported and the other
 * fields are still read.
 */
export class Field {
  readonly path: Path;
  readonly value: unknown;
  readonly #findings: Findings;

  constructor(findings: Findings, path: Path, value: unknown) {
    this.#findings = findings;
    this.path = path;
    this.value = value;
  }

  /** `chronometric.zones.midday` */
  get name(): string {
    return this.path.map(String).join('.');
  }

  /** The line of its name. */
  get line(): number {
    return this.#findings.yaml.position(this.path, true).line;
  }

  /** Reports a wrong value; `remedy` follows the name and states a right one. */
  wrong(remedy: string, severity: ProfileProblem['severity'] = 'error'): undefined {
    this.#findings.add(severity, this.path, `${this.name} ${remedy}`);
    return undefined;
  }

  /** The shortened value, as written where that differs from YAML's result. */
  get shown(): string {
    const { value } = this;
    const source = typeof value === 'number' ? this.#findings.yaml.source(this.path) : undefined;
    return source ?? (value === null ? 'nothing' : showValue(value));
  }

  warn(sentence: string): void {
    this.#findings.add('warning', this.path, sentence, true);
  }

  /** Reports an unknown name. */
  unknownAmong(names: readonly string[]): void {
    const own = String(this.path.at(-1));
    const meant = nearestOf(own.toLowerCase(), names);
    const remedy = meant === undefined ? `must be one of ${names.join(', ')}` : `did you mean ${meant}?`;
    this.#findings.add('error', this.path, `unknown name ${showValue(this.name)}; ${remedy}`, true);
  }

  /** Whether YAML reads this value in an unexpected way. Reports it if so. */
  isDoubtful(severity: ProfileProblem['severity'] = 'error'): boolean {
    const found = this.#findings.yaml.problems.filter(({ path }) => path && samePath(path, this.path));
    for (const { line, column, sentence } of found)
      this.#findings.problems.push({ severity, line, column, sentence: `${this.name}: ${sentence}` });
    return found.length > 0;
  }

  #invalid(form: string): undefined {
    return this.wrong(`must be ${form} (got ${this.shown})`);
  }

  boolean(): boolean | undefined {
    if (this.isDoubtful()) return undefined;
    return typeof this.value === 'boolean' ? this.value : this.#invalid('true or false, without quotes');
  }

  wholeNumber(least: number, most: number): number | undefined {
    if (this.isDoubtful()) return undefined;
    const { value } = this;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    const quoted = typeof value === 'string' && /^\d+$/.test(value) ? ', without quotes' : '';
    return this.#invalid(`a whole number from ${least} to ${most}${quoted}`);
  }

  text(form: string): string | undefined {
    if (this.isDoubtful()) return undefined;
    return typeof this.value === 'string' && this.value.trim() !== '' ? this.value : this.#invalid(form);
  }

  oneOf<T extends string>(names: readonly T[]): T | undefined {
    if (this.isDoubtful()) return undefined;
    const name = names.find((known) => known === this.value);
    if (name !== undefined) return name;
    const meant = typeof this.value === 'string' ? nearestOf(this.value.toLowerCase(), names) : undefined;
    return this.#invalid(`one of ${names.join(', ')}${meant === undefined ? '' : `; ${meant} is probably meant`}`);
  }

  /** @param read a form besides that of a time of day */
  time(read: (text: string) => number | undefined = readTimeOfDay): number | undefined {
    const { value } = this;
    const minute = typeof value === 'string' ? read(value) : undefined;
    // A number has a message of its own: 0500 is not a time, although YAML accepts it.
    if (typeof value !== 'number' && this.isDoubtful()) return undefined;
    if (minute !== undefined) return minute;
    const meant = typeof value === 'string' || typeof value === 'number' ? meantTime(this.written) : undefined;
    const form = 'must be a time of day from 00:00 to 23:59';
    return this.wrong(`${form} (got ${this.shown}); write ${meant === undefined ? 'it as "18:30"' : `"${meant}"`}`);
  }

  /** The text in the file, without quotes. */
  get written(): string {
    return typeof this.value === 'string' ? this.value : (this.#findings.yaml.source(this.path) ?? '');
  }

  items(form: string, most: number): readonly Field[] | undefined {
    if (this.isDoubtful()) return undefined;
    if (!Array.isArray(this.value) || this.value.length === 0) return this.#invalid(form);
    if (this.value.length > most) return this.wrong(`must have at most ${most} entries (it has ${this.value.length})`);
    return this.value.map((item: unknown, at) => new Field(this.#findings, [...this.path, at], item));
  }

  members(form: string): ReadonlyMap<string, Field> | undefined {
    if (this.isDoubtful()) return undefined;
    if (!isObject(this.value)) return this.#invalid(form);
    return this.#inside(this.value);
  }

  /** The fields of a section that other programs also read: it is optional, and foreign fields are ignored. */
  shared(): ReadonlyMap<string, Field> {
    if (this.value === undefined || this.value === null) return new Map();
    this.isDoubtful('warning');
    if (isObject(this.value)) return this.#inside(this.value);
    this.#invalid('fields below it');
    return new Map();
  }

  #inside(mapping: Record<string, unknown>): ReadonlyMap<string, Field> {
    const entries = Object.entries(mapping);
    return new Map(entries.map(([name, value]) => [name, new Field(this.#findings, [...this.path, name], value)]));
  }
}

/** Warns of unknown fields. @param elsewhere fields of other parts, by their names */
export function warnOfUnknown(
  members: ReadonlyMap<string, Field>,
  known: readonly string[],
  elsewhere: ReadonlyMap<string, string> = new Map(),
): void {
  for (const [name, field] of members) {
    if (known.includes(name)) continue;
    const section = elsewhere.get(name);
    const meant = nearestOf(name.toLowerCase(), known);
    const remedy =
      section !== undefined
        ? `it belongs under ${section}`
        : meant !== undefined
          ? `did you mean ${meant}?`
          : 'this field does not exist';
    field.warn(`unknown field ${showValue(field.name)}; ${remedy}`);
  }
}
