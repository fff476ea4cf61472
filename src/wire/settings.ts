/** Parses environment settings (docs/reference/settings.md) into a typed object, once, at the edge. */
import { z } from 'zod';
import { ReveilleError } from './errors.ts';
import { withoutTrailing } from './text.ts';
import { showValue, standardMessage } from './validate.ts';

/** Names and values, already merged by the process: flags over environment over file. */
export type Settings = Readonly<Record<string, string | undefined>> & { readonly [ORIGINS]?: Origins };

/** Positions of values in a settings file, by name, for error messages. An overriding value has no position. */
export type Origins = ReadonlyMap<string, { readonly value: string; readonly place: string }>;
export const ORIGINS = Symbol('positions of settings');

/** A whole number in decimal, within bounds. */
export function wholeNumber(min: number, max: number) {
  const error = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^-?\d{1,15}$/, error)
    .transform(Number)
    .pipe(z.int().min(min, error).max(max, error));
}

export const INVALID_CURSOR = 'must be the next_cursor of an earlier answer, unchanged';
/** The cursor of a list whose entries have increasing numbers: the number of the last entry shown. */
export const positionCursor = z
  .string()
  .regex(/^\d{1,15}$/, INVALID_CURSOR)
  .transform(Number);

/** Retention in days, fractions allowed: `30`, `0.5`. 0 keeps the data without limit. */
export const retentionDays = z
  .string()
  .regex(/^\d{1,5}(\.\d{1,6})?$/, 'must be a number of days from 0 to 36500, such as 30 or 0.5')
  .transform(Number)
  .refine((days) => days <= 36_500, 'must be a number of days from 0 to 36500, such as 30 or 0.5');

/** A TCP port; 0 lets the operating system choose one. */
export const portSetting = wholeNumber(0, 65535);

/** `1` or `0`, `true` or `false`. */
export const switchSetting = z
  .enum(['1', '0', 'true', 'false'], { error: 'must be 1 or 0' })
  .transform((value) => value === '1' || value === 'true');

/** Whether programs that a daemon starts run in a sandbox. */
export const isolationSetting = z
  .enum(['auto', 'required', 'off'], { error: 'must be auto, required or off' })
  .default('auto');

const secrets = z.registry<{ isSecret: true }>();

/** Declares that the values of a setting are secrets or contain one: no started program gets them. */
export function secretType<T extends z.ZodType>(schema: T): T {
  secrets.add(schema, { isSecret: true });
  return schema;
}

/** Whether {@link secretType} declares it, optional or not. */
export function isSecretType(schema: z.ZodType): boolean {
  if (secrets.has(schema)) return true;
  const isWrapper = schema instanceof z.ZodOptional || schema instanceof z.ZodDefault;
  return isWrapper && isSecretType(schema.unwrap() as z.ZodType);
}

/** A secret that must be hard to guess. */
export const secretSetting = secretType(z.string().min(16, 'must have at least 16 characters'));

/** An http or https address in its canonical form (host in lower case, no default port), without a trailing slash. */
export const urlSetting = z
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address' })
  .transform((url) => withoutTrailing(new URL(url).href, '/'));

/** The address of a listener. */
export const hostSetting = z
  .string()
  .regex(/^[A-Za-z0-9.:[\]_-]{1,253}$/, 'must be an address or a host name')
  .default('127.0.0.1');

const HEADER_TEXT = [/^[\x21-\x7e]+$/, 'must be printable ASCII without spaces'] as const;

/** A credential that is sent in a header, and one of them that must be hard to guess. */
export const credentialSetting = secretType(z.string().regex(...HEADER_TEXT));
export const tokenSetting = secretType(secretSetting.regex(...HEADER_TEXT));

/** Stops a start because of its settings. @throws ReveilleError `invalid_request` */
export function stopStart(message: string): never {
  throw new ReveilleError('invalid_request', message);
}

/** Whether an address is a loopback address of this computer. */
export function isOnThisComputer(url: string): boolean {
  return /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/.test(URL.parse(url)?.hostname ?? '');
}

const SECRET_NAME = /TOKEN|SECRET|KEY|PASSWORD|PASSPHRASE|URI/;

/** Whether the value of a setting is a secret or contains one, by its name. */
export const isSecretName = (name: string): boolean => SECRET_NAME.test(name);

/** Settings of several daemons, each under its own prefix. */
export type Prefixed<Prefix extends string, Shape extends z.ZodRawShape> = {
  [Name in keyof Shape & string as `${Prefix}_${Name}`]: Shape[Name];
};

/** Such settings as members of a daemon's schema, so that all problems are reported together. */
export function prefixed<Prefix extends string, Shape extends z.ZodRawShape>(
  prefix: Prefix,
  shape: Shape,
): Prefixed<Prefix, Shape> {
  const members = Object.entries(shape).map(([name, schema]) => [`${prefix}_${name}`, schema]);
  return Object.fromEntries(members) as Prefixed<Prefix, Shape>;
}

/** Parses such settings; the members of the result have no prefix. @throws as {@link parseSettings} */
export function parsePrefixed<Shape extends z.ZodRawShape>(
  prefix: string,
  shape: Shape,
  settings: Settings,
): z.output<z.ZodObject<Shape>> {
  const read = parseSettings(z.object(prefixed(prefix, shape)), settings) as Readonly<Record<string, unknown>>;
  const members = Object.keys(shape).map((name) => [name, read[`${prefix}_${name}`]]);
  return Object.fromEntries(members) as z.output<z.ZodObject<Shape>>;
}

/**
 * Parses the variables that a schema names. An empty value counts as unset.
 *
 * @throws ReveilleError `invalid_request` with one entry per wrong variable: its name, its value (except secrets) and
 * the allowed values
 */
export function parseSettings<T extends z.ZodObject>(schema: T, settings: Settings): Readonly<z.output<T>> {
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = settings[name];
    if (value !== undefined && value !== '') given[name] = value;
  }
  const result = schema.safeParse(given, { error: standardMessage });
  if (result.success) return Object.freeze(result.data);
  const lines = result.error.issues.map((issue) => {
    const name = String(issue.path[0] ?? '');
    const value = given[name];
    if (value === undefined) return `${name} is not set`;
    const got = isSecretName(name) ? '' : ` (got ${showValue(value)})`;
    const origin = settings[ORIGINS]?.get(name);
    return `${origin?.value === value ? `${origin.place}: ` : ''}${name} ${issue.message}${got}`;
  });
  throw new ReveilleError('invalid_request', lines.join('; '));
}
