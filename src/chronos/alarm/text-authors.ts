/** The author of each text of an alarm that reaches the agent: the editor of a text becomes its author. Pure. */
import type { AlarmPatch } from '../../wire/alarm.ts';
import { fieldOf, memberOf } from '../../wire/alarm-fields.ts';
import { readSetBy, type TextAuthor, type TextAuthors } from '../../wire/set-by.ts';
import type { Alarm } from './alarm.ts';
import { encodeOptions, optionsOf } from './options.ts';

/** Texts besides the message, whose author is `setBy`. */
const BESIDE = ['label', 'payload'] as const;
type Beside = (typeof BESIDE)[number];

/** The stored authors of the texts that another one than that of the message wrote; `null` is the agent. */
function storedAuthors(alarm: Pick<Alarm, 'options'>): { readonly [N in Beside]?: string | null } {
  const { text_by } = optionsOf(alarm);
  return text_by === undefined ? {} : JSON.parse(text_by);
}

/** The stored authors of all texts; `null` is the agent. */
export function authorsOf(alarm: Pick<Alarm, 'options' | 'setBy'>): readonly (string | null)[] {
  return [alarm.setBy, ...Object.values(storedAuthors(alarm))];
}

const isChanged = (before: Alarm, after: Alarm, patch: AlarmPatch, name: Beside) =>
  patch[name] !== undefined && before[memberOf(name)] !== after[memberOf(name)];

/** The author of the message after an edit, as `setBy`. @param author of the edit, as stored; `undefined` for the agent */
export const authorOfMessage = (before: Alarm, { wake_message }: AlarmPatch, author: string | undefined) =>
  wake_message === undefined || wake_message === before.wakeMessage ? before.setBy : (author ?? null);

/** The edited alarm with its authors. @param author of the edit, as stored; `undefined` for the agent */
export function withAuthors(before: Alarm, after: Alarm, patch: AlarmPatch, author: string | undefined): Alarm {
  const by = author ?? null;
  const earlier = storedAuthors(before);
  const setBy = authorOfMessage(before, patch, author);
  const authors: { [N in Beside]?: string | null } = {};
  for (const name of BESIDE) {
    const known = earlier[name];
    const its = isChanged(before, after, patch, name) ? by : known === undefined ? before.setBy : known;
    if (its !== setBy && after[memberOf(name)] !== fieldOf(name).absent) authors[name] = its;
  }
  const text_by = Object.keys(authors).length === 0 ? undefined : JSON.stringify(authors);
  if (text_by === optionsOf(after).text_by) return { ...after, setBy };
  return { ...after, setBy, options: encodeOptions({ ...optionsOf(after), text_by }) };
}

const authorOf = (stored: string | null): TextAuthor => (stored === null ? { kind: 'agent' } : readSetBy(stored));

/** The authors of the texts that another one than that of the message wrote; `undefined` without any. */
export function textAuthorsOf(alarm: Pick<Alarm, 'options'>): TextAuthors | undefined {
  const authors = Object.entries(storedAuthors(alarm)).map(([name, stored]) => [name, authorOf(stored ?? null)]);
  return authors.length === 0 ? undefined : (Object.fromEntries(authors) as TextAuthors);
}
