/**
 * Elicitation: reads the question of a server, and refuses forbidden ones. A refused question gets the answer `decline`
 * and is not shown to the user.
 */
import type { ElicitRequestParams, ElicitResult } from '@modelcontextprotocol/client';
import { hostOf } from '../kit/http/guarded-lookup.ts';
import { inLatin } from '../kit/text/hidden-characters.ts';
import { isObject } from '../wire/json.ts';
import {
  FIELDS_MAX,
  MESSAGE_MAX_CHARACTERS,
  type QuestionField,
  type QuestionText,
  questionTextSchema,
} from '../wire/question.ts';

/** The user's answer. `cancel`: the user has not answered. */
export type PersonAnswer =
  | { readonly action: 'accept'; readonly content?: ElicitResult['content'] }
  | { readonly action: 'decline' | 'cancel' };

/** Asks the user. Rejects with the signal's reason if the call ends first. */
export type AskPerson = (question: QuestionText, signal: AbortSignal) => Promise<PersonAnswer>;

/** Maximum number of questions in one call; further questions get `cancel`. */
export const QUESTIONS_PER_CALL = 16;
/** Maximum number of questions of one server that wait at the same time. */
export const QUESTIONS_AT_ONCE = 8;

/**
 * Words for secrets. A form must not ask for a secret, because its values are stored and logged by others; servers must
 * use URL mode for secrets. Invisible characters, letters that look Latin, signs between letters, digits for letters and
 * reversed text do not hide them. Words of most languages are not detected; the user sees which server asks.
 */
const SECRET_FIELD =
  /pass[\s_-]?(word|wd|phrase|code|wort)|\bp(ass)?wd\b|\bpsw\b|kennwort|contrase[nñ]a|mot[\s_-]de[\s_-]passe|\bsenha\b|парол|密码|密碼|パスワード|(verification|login|sign[\s_-]?in|authenticat(ion|or)|security)[\s_-]?code|secret|credential|api[\s_-]?key|private[\s_-]?key|(access|auth|refresh|bearer|session)[\s_-]?token|\btoken\b|\botp\b|one[\s_-]?time[\s_-]?(code|password)|\b2fa\b|\bmfa\b|\bpin([\s_-]?code)?\b|\bcvv\b|\bcvc\b|card[\s_-]?number|credit[\s_-]?card|\bssn\b|social[\s_-]?security|seed[\s_-]?phrase|recovery[\s_-]?(code|phrase)/i;
const SECRET_MESSAGE =
  /pass(word|phrase|code|wort)|kennwort|contrase[nñ]a|mot de passe|\bsenha\b|парол|密码|密碼|パスワード|(verification|login|sign[\s_-]?in|authenticat(ion|or))[\s_-]?code|\bpin\b([\s_-]?code)?|api[\s_-]?key|private[\s_-]?key|secret[\s_-]?key|(access|auth|bearer)[\s_-]?token|one[\s_-]?time[\s_-]?(code|password)|credit[\s_-]?card|card[\s_-]?number|security[\s_-]?code|social[\s_-]?security|seed[\s_-]?phrase/i;

/** The long ones in the form of {@link joined}, which has no word ends. */
const SECRET_PARTS = [
  ...['password', 'passwd', 'passphrase', 'passcode', 'passwort', 'kennwort', 'contrasena', 'motdepasse'],
  ...['apikey', 'privatekey', 'secretkey', 'accesstoken', 'authtoken', 'refreshtoken', 'bearertoken', 'sessiontoken'],
  ...['verificationcode', 'logincode', 'signincode', 'securitycode', 'onetimecode', 'creditcard', 'cardnumber'],
  ...['socialsecurity', 'seedphrase', 'recoverycode', 'recoveryphrase', 'credential'],
];
/** Whole names of fields in that form. */
const SECRET_NAMES =
  /^(?:my|your|the|user|account|enter)*(?:secret|token|otp|pin|pwd|psw|senha|mfa|twofa|cvv|cvc|ssn)s?$/;
const LETTERS: Readonly<Record<string, string>> = {
  ...{ 0: 'o', 1: 'i', 3: 'e', 4: 'a', 5: 's', 7: 't', 8: 'b', 9: 'g', '@': 'a', $: 's', '!': 'i', '|': 'i', '€': 'e' },
  ...{ '§': 's' },
};

/** The letters of a text, with those for which digits and signs stand. */
const joined = (text: string): string =>
  inLatin(text.normalize('NFKC'))
    .toLowerCase()
    .replace(/[01345789@$!|€§]/g, (sign) => LETTERS[sign] ?? sign)
    .replace(/[^\p{L}]+/gu, '');

/** Each text as it is written and reversed. */
const bothWays = (text: string) => [text, [...text].reverse().join('')];
const hidesPart = (text: string) =>
  bothWays(joined(text)).some((letters) => SECRET_PARTS.some((part) => letters.includes(part)));
const isSecretName = (text: string) => bothWays(joined(text)).some((letters) => SECRET_NAMES.test(letters));
/** Letters with a sign after each, as in `P.I.N.`; a name so written in a sentence. */
const SPELLED = /(?<![\p{L}\p{N}])[\p{L}\p{N}](?:[^\p{L}\p{N}\s][\p{L}\p{N}])+(?![\p{L}\p{N}])/gu;
const spellsName = (text: string) => [...text.matchAll(SPELLED)].some(([name]) => isSecretName(name));

const isText = (value: unknown): value is string => typeof value === 'string';
const words = (name: string) => name.replace(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' ');

/** The options of an enumeration in any of its forms. */
function optionsOf(schema: Record<string, unknown>): QuestionField['options'] {
  const titled = [schema.oneOf, schema.anyOf].find(Array.isArray) as unknown[] | undefined;
  if (titled)
    return titled.flatMap((one) =>
      isObject(one) && isText(one.const)
        ? [{ value: one.const, title: isText(one.title) ? one.title : one.const }]
        : [],
    );
  if (!Array.isArray(schema.enum)) return undefined;
  const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
  return schema.enum.flatMap((value, at) =>
    isText(value) ? [{ value, title: isText(names[at]) ? names[at] : value }] : [],
  );
}

const FORMATS: readonly unknown[] = ['email', 'uri', 'date', 'date-time'];
const numberOf = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);

/** @returns `undefined` for a schema that is not that of a simple field */
function fieldOf(name: string, schema: unknown, required: boolean): unknown {
  if (!isObject(schema)) return undefined;
  const { type, title, description, format } = schema;
  const base = {
    ...{ name, required, title: isText(title) && title !== '' ? title : name },
    ...(isText(description) && { description }),
    ...(schema.default !== undefined && { default: schema.default }),
  };
  const limits = (min: unknown, max: unknown) => ({ min: numberOf(min), max: numberOf(max) });
  const options = optionsOf(schema);
  if (type === 'string' && options) return { ...base, kind: 'choice', options };
  if (type === 'string') {
    const known = FORMATS.includes(format) ? { format } : {};
    return { ...base, kind: 'text', ...known, ...limits(schema.minLength, schema.maxLength) };
  }
  if (type === 'number' || type === 'integer')
    return { ...base, kind: type, ...limits(schema.minimum, schema.maximum) };
  if (type === 'boolean') return { ...base, kind: 'boolean' };
  const choices = type === 'array' && isObject(schema.items) ? optionsOf(schema.items) : undefined;
  if (choices) return { ...base, kind: 'choices', options: choices, ...limits(schema.minItems, schema.maxItems) };
  return undefined;
}

/** Whether a text has such a word, as it is written or as it looks to a reader. */
const names = (secret: RegExp, text: string) => secret.test(text) || secret.test(inLatin(text));

const asksInText = (text: string) => names(SECRET_MESSAGE, text) || hidesPart(text) || spellsName(text);

/** The default of a text is shown in its field, and may say what to enter. */
const asksForSecret = ({ name, title, description = '', default: initial = '', kind }: QuestionField) =>
  [name, title].some((text) => names(SECRET_FIELD, words(text)) || isSecretName(text)) ||
  [name, title, description, kind === 'text' ? String(initial) : ''].some(asksInText);

export type ReadQuestion = { question: QuestionText } | { refusal: string };

function readForm({ message, requestedSchema }: Record<string, unknown>): ReadQuestion {
  if (!isObject(requestedSchema) || !isObject(requestedSchema.properties))
    return { refusal: 'its form has no readable fields' };
  const required: readonly unknown[] = Array.isArray(requestedSchema.required) ? requestedSchema.required : [];
  const properties = Object.entries(requestedSchema.properties);
  if (properties.length > FIELDS_MAX) return { refusal: `its form has more than ${FIELDS_MAX} fields` };
  const hasPassword = properties.some(([, schema]) => isObject(schema) && schema.format === 'password');
  const fields = properties.map(([name, schema]) => fieldOf(name, schema, required.includes(name)));
  if (fields.includes(undefined))
    return { refusal: 'its form has a field that is not a text, number, boolean or choice' };
  const read = questionTextSchema.safeParse({ mode: 'form', message, fields });
  if (!read.success || read.data.mode !== 'form') return { refusal: 'its form is malformed or too long' };
  const { message: text } = read.data;
  if (hasPassword || asksInText(text) || read.data.fields.some(asksForSecret))
    return { refusal: 'it asks for a secret in a form, which a server must not do' };
  return { question: read.data };
}

function readAddress({ message, url }: Record<string, unknown>): ReadQuestion {
  const parsed = isText(url) ? URL.parse(url) : null;
  if (parsed === null) return { refusal: 'its address cannot be read' };
  if (parsed.username !== '' || parsed.password !== '')
    return { refusal: 'its address hides its host behind a user name' };
  const host = hostOf(parsed);
  const isLocal = host === 'localhost' || host === '127.0.0.1' || host === '::1';
  if (parsed.protocol !== 'https:' && !(parsed.protocol === 'http:' && isLocal))
    return { refusal: 'its address is not an https:// address' };
  // The normalized address: internationalized names in their ASCII form, and no invisible characters.
  const read = questionTextSchema.safeParse({ mode: 'url', message, url: parsed.href, host: parsed.host });
  return read.success ? { question: read.data } : { refusal: 'its address is too long' };
}

/** Reads the parameters of `elicitation/create`. `refusal` finishes the sentence "the question is refused: …". */
export function readQuestion(params: ElicitRequestParams): ReadQuestion {
  const members: Record<string, unknown> = { ...params };
  if (!isText(members.message) || members.message.length > MESSAGE_MAX_CHARACTERS)
    return { refusal: `its message is longer than ${MESSAGE_MAX_CHARACTERS} characters` };
  return members.mode === 'url' ? readAddress(members) : readForm(members);
}
