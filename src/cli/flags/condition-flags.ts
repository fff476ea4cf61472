/** The flags of checks, events, chains and commands, by `kit/phrase/condition-parts.ts`. Without zod, as all flags. */
import {
  type GivenParts,
  PART_NAMES,
  type Part,
  type PartName,
  type PartType,
  partOf,
  partsOf,
} from '../../kit/phrase/condition-parts.ts';
import { type MemberOf, memberOf } from '../../wire/alarm-fields.ts';
import type { ObjectField } from '../../wire/conditions.ts';

/** Given flags, by the names that commander has for them. */
export type ConditionFlags = { [N in PartName as MemberOf<N>]?: string | boolean };

/** The flag of a part, as it is typed. */
export const partFlag = (name: PartName): string => `--${name}`;

const PLACEHOLDERS: Partial<Record<PartType, string>> = {
  text: '<text>',
  duration: '<duration>',
  count: '<n>',
  choice: '<word>',
  names: '<names>',
  command: '<command>',
  value: '<value>',
  json: '<json>',
};

/** The groups of flags in the help. */
export const CONDITION_GROUPS: readonly (readonly [title: string, fields: readonly ObjectField[]])[] = [
  ['Instead of a time:', ['event', 'after', 'expect']],
  ['Check before each wake:', ['check']],
  ['Work without a model:', ['run']],
];

/** Options of commander for the parts of some fields. */
export const partOptions = (fields: readonly ObjectField[]): [flags: string, help: string][] =>
  partsOf(...fields).map((name) => {
    const { type, placeholder = PLACEHOLDERS[type], help }: Part = partOf(name);
    return [placeholder === undefined ? partFlag(name) : `${partFlag(name)} ${placeholder}`, help];
  });

/** The parts that some flags give. */
export function partsIn(flags: ConditionFlags): GivenParts {
  const given = flags as Readonly<Record<string, string | boolean | undefined>>;
  const texts: { [N in PartName]?: string } = {};
  for (const name of PART_NAMES) {
    const value = given[memberOf(name)];
    if (value !== undefined) texts[name] = value === true ? 'on' : String(value);
  }
  return texts;
}
