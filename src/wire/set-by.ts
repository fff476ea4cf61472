/**
 * Who wrote the message of an alarm, if the agent did not: a person, or a program that reached Reveille with an access
 * token. Stores and turns keep it as one text, because most alarms have none.
 */
import { z } from 'zod';
import { FINGERPRINT_LENGTH } from './did.ts';
import { shortText } from './text.ts';

/** Begins the stored text of a program; no person's name begins with it. */
const CLIENT_MARK = '\u0001';

const personSchema = z.strictObject({
  kind: z.literal('person'),
  name: shortText(100)
    .min(1)
    .refine((name) => !name.startsWith(CLIENT_MARK), 'must not begin with a control character'),
});
const clientSchema = z.strictObject({
  kind: z.literal('client'),
  /** The client's id at its authorization server. */
  client_id: shortText(500).min(1),
  /** Its name, as the authorization server or the operator gives it. */
  name: shortText(100).min(1).optional(),
});

export const setBySchema = z.discriminatedUnion('kind', [personSchema, clientSchema]);
export type SetBy = z.output<typeof setBySchema>;

/** The author of one text of an alarm: the agent, too. */
export const textAuthorSchema = z.discriminatedUnion('kind', [
  personSchema,
  clientSchema,
  z.strictObject({ kind: z.literal('agent') }),
]);
export type TextAuthor = z.output<typeof textAuthorSchema>;

/** The authors of the texts of an alarm that another one than the author of its message wrote. */
export const textAuthorsSchema = z.strictObject({
  label: textAuthorSchema.optional(),
  payload: textAuthorSchema.optional(),
});
export type TextAuthors = z.output<typeof textAuthorsSchema>;

/** The stored text. */
export function storedSetBy(by: SetBy): string {
  return by.kind === 'person' ? by.name : `${CLIENT_MARK}${JSON.stringify([by.client_id, by.name])}`;
}

/** Whether a stored text names a person. Without a text, the agent is the author. */
export const isByPerson = (stored: string | null | undefined): boolean =>
  stored !== null && stored !== undefined && !stored.startsWith(CLIENT_MARK);

/** @param stored by {@link storedSetBy} */
export function readSetBy(stored: string): SetBy {
  if (isByPerson(stored)) return { kind: 'person', name: stored };
  const [client_id, name] = JSON.parse(stored.slice(CLIENT_MARK.length)) as [string, string | null];
  return { kind: 'client', client_id, ...(name !== null && { name }) };
}

const OF_CLIENT = 'client ';

/** The credential that made an alarm or a feed, as it is stored with it: a program's id, or a key at chronosd. */
export const madeByClient = (clientId: string): string => `${OF_CLIENT}${clientId}`;
export const madeByKey = (publicKey: string): string => `key ${publicKey.slice(0, FINGERPRINT_LENGTH)}`;

/** The id of the program that made something; `undefined` for anything else. */
export const clientThatMade = (madeBy: string | null | undefined): string | undefined =>
  madeBy?.startsWith(OF_CLIENT) ? madeBy.slice(OF_CLIENT.length) : undefined;

/** Whether a stored text names this program. */
export function isByClient(stored: string | null | undefined, clientId: string): boolean {
  if (stored === null || stored === undefined || isByPerson(stored)) return false;
  const by = readSetBy(stored);
  return by.kind === 'client' && by.client_id === clientId;
}

/** As text: `Ada`, `ChatGPT (client https://chatgpt.com/…)`, `client 7f3a…`. */
export function setByText(by: SetBy): string {
  if (by.kind === 'person') return by.name;
  return by.name === undefined ? `client ${by.client_id}` : `${by.name} (client ${by.client_id})`;
}

/**
 * For a model: each name is quoted, so that nothing in it reads as another line.
 *
 * @param stored by {@link storedSetBy}
 */
export function quotedSetBy(stored: string): string {
  const by = readSetBy(stored);
  if (by.kind === 'person') return `${JSON.stringify(by.name)}, a person`;
  const name = by.name === undefined ? '' : `${JSON.stringify(by.name)}, `;
  return `${name}a program with the client id ${JSON.stringify(by.client_id)}`;
}

/** For a model: `written by "Ada", a person`. */
export const writtenBy = (author: TextAuthor): string =>
  `written by ${author.kind === 'agent' ? 'you' : quotedSetBy(storedSetBy(author))}`;
