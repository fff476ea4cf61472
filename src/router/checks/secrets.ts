/** `${NAME}` in a check of an address: secrets of the person, which neither alarms nor agents contain. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Check } from '../../wire/conditions.ts';
import { NotAllowed } from './finding.ts';

type HttpCheck = NonNullable<Check['http']>;

const REFERENCE = /\$\{([A-Za-z_]\w{0,99})\}/g;
const schema = z.record(z.string(), z.string().min(1));

/** The file is read at each check, so that a change needs no restart. */
function readSecrets(file: string): Readonly<Record<string, string>> {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return {};
  }
}

/**
 * The check with its secrets, and a function that hides them in a text.
 *
 * @param file an object of names and values, which only the person writes; `undefined` for a user without one. In a fleet
 *   the file is the operator's, and a user could send its secrets to any address.
 * @throws NotAllowed for a name that is not in it, and for a check that no person has set
 */
export function withSecrets(
  check: HttpCheck,
  file: string | undefined,
  isByPerson: boolean,
): { http: HttpCheck; hide: (text: string) => string } {
  const texts = [check.url, ...Object.values(check.headers ?? {})];
  if (!texts.some((text) => text.search(REFERENCE) !== -1)) return { http: check, hide: (text) => text };
  if (!isByPerson) throw new NotAllowed('only a check that the person set may use secrets');
  if (file === undefined) throw new NotAllowed('secrets of checks are only those of the user of "reveille up"');
  const secrets = readSecrets(file);
  const used = new Map<string, string>();
  const filled = (text: string, encode: (value: string) => string) =>
    text.replace(REFERENCE, (_, name: string) => {
      const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
      if (value === undefined) throw new NotAllowed(`the secret ${name} is not in ${file}`);
      used.set(value, name).set(encode(value), name);
      return encode(value);
    });
  const headers =
    check.headers &&
    Object.fromEntries(Object.entries(check.headers).map(([name, text]) => [name, filled(text, (value) => value)]));
  const http = { ...check, url: filled(check.url, encodeURIComponent), ...(headers && { headers }) };
  const hide = (text: string) =>
    // The longest first: one secret may be a part of another.
    [...used]
      .sort(([one], [other]) => other.length - one.length)
      .reduce((shown, [value, name]) => shown.replaceAll(value, `\${${name}}`), text);
  return { http, hide };
}
