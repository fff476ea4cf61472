/** The flags of an alarm's fields, by `wire/alarm-fields.ts`. Without zod, so that the command starts fast. */
import {
  type ALARM_FIELDS,
  type FieldsWith,
  type FieldType,
  fieldOf,
  type MemberOf,
  OWNER_FIELDS,
  type OwnerField,
  ordered,
} from '../../wire/alarm-fields.ts';

/** Fields with one flag whose value is read by the type of the field. */
export type FlaggedField = FieldsWith<{ flag: { help: string } }>;

type Fields = typeof ALARM_FIELDS;

/** Given flags, by the names that commander has for them. */
export type FieldFlags = {
  [N in FlaggedField as MemberOf<Fields[N]['flag']['name']>]?: Fields[N]['type'] extends 'switch' ? boolean : string;
};

/** In the order in which an error names them. */
const FLAGGED = ordered<OwnerField>(
  [
    ...(['label', 'conversation_id', 'timezone', 'ends_at', 'max_fires'] as const),
    ...(['max_failures', 'max_lateness_seconds', 'jitter_seconds'] as const),
  ],
  OWNER_FIELDS.filter((name) => fieldOf(name).flag !== undefined),
);

export const FLAGGED_FIELDS = FLAGGED.filter((name): name is FlaggedField => fieldOf(name).flag?.help !== undefined);

/** The flag of a field, as it is typed. */
export const flagOf = (name: OwnerField): string => `--${fieldOf(name).flag?.name ?? name}`;

/** The fields that `--clear` removes, by its names for them. */
export const CLEARABLE: ReadonlyMap<string, OwnerField> = new Map(
  FLAGGED.filter((name) => fieldOf(name).edit === undefined).map((name) => [fieldOf(name).flag!.name, name]),
);

const PLACEHOLDERS: Partial<Record<FieldType, string>> = {
  choice: ' <word>',
  list: ' <names>',
  text: ' <text>',
  string: ' <text>',
  identifier: ' <id>',
  instant: ' <instant>',
  seconds: ' <duration>',
  count: ' <n>',
};

/** Placeholders that say more than the type. */
const NAMED: Partial<Record<OwnerField, string>> = { holidays: ' <name>', model: ' <name>' };

/** Options of commander for some fields: the flag with its placeholder, and its help. */
export const fieldOptions = (names: readonly FlaggedField[]): [flags: string, help: string][] =>
  names.map((name) => {
    const { type, flag } = fieldOf(name);
    return [`${flagOf(name)}${NAMED[name] ?? PLACEHOLDERS[type] ?? ''}`, flag?.help ?? ''];
  });
