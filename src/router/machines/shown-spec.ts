/**
 * What of a machine's specification its operators are shown. A member that is not called public here is hidden, and of the public ones
 * whatever may be a secret: it would be in every screenshot. When in doubt it is hidden; who registered the machine knows it.
 */
import { HIDDEN, namesSecret, referenceOf } from './secret-names.ts';

type Shown = (value: unknown) => unknown;

const asItIs: Shown = (value) => value;
const hidden: Shown = () => HIDDEN;

/** Words that are a secret by their looks: the forms of well-known issuers, tokens of JSON Web Signature, long random text. */
const ISSUED =
  /^(?:sk-|sk_|rk_|pk_live|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|eyJ|whsec_|fm[12]_|FlyV1)/;
const RANDOM = /^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[\w+/=.~-]{20,}$|^[0-9a-fA-F]{32,}$/;
/** A path is long, too, and says where something is. */
const looksSecret = (word: string): boolean =>
  ISSUED.test(word) || (RANDOM.test(word) && !/^[./~]|\.[a-z]{1,4}$/.test(word));

/** The flags before a value that may hold anything: a header, a login, a cookie, a variable. */
const CARRIERS = /^(?:-H|-u|-b|-e|-E|--?(?:headers?|user|cookie|env|proxy-user|login))$/;
const FLAG = /^--?([A-Za-z][\w.-]*)$/;
const ASSIGNED = /^(--?[A-Za-z][\w.-]*|[A-Za-z_][\w.-]*)=(.*)$/s;
const HEADER = /^([A-Za-z][A-Za-z0-9-]*):\s*\S/;
// Bounded: a long word without an address must not be read anew from each of its letters.
const ADDRESS = /[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"']+/gi;

/** An address without its user, its query, its fragment, and what of its path looks random; with `bare` without any path. */
function shownAddress(text: string, bare = false): string {
  const url = URL.parse(text);
  if (!url) return HIDDEN;
  const segments = url.pathname.split('/').map((part) => (looksSecret(decoded(part)) ? HIDDEN : part));
  const path = bare && url.pathname !== '/' ? `/${HIDDEN}` : segments.join('/');
  const user = url.username !== '' || url.password !== '' ? `${HIDDEN}@` : '';
  // As it was written where there is nothing to hide: a slash more at its end is another address to some.
  const shown = `${url.protocol}//${user}${url.host}${path}${url.search && `?${HIDDEN}`}${url.hash && `#${HIDDEN}`}`;
  return shown.includes(HIDDEN) ? shown : text;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** One word of a command line, the word before it known. */
function shownWord(word: string, before: string | undefined): string {
  const flag = before === undefined ? undefined : FLAG.exec(before)?.[1];
  const carried = before !== undefined && CARRIERS.test(before);
  const [, name, value] = ASSIGNED.exec(word) ?? [];
  if (name !== undefined && value !== undefined && referenceOf(value) === undefined) {
    const assignedFlag = CARRIERS.test(name);
    if (namesSecret(name) || (carried && !assignedFlag) || assignedFlag || looksSecret(value))
      return `${name}=${HIDDEN}`;
  }
  const header = HEADER.exec(word)?.[1];
  if (header !== undefined && (carried || namesSecret(header) || /cookie/i.test(header))) return `${header}: ${HIDDEN}`;
  if ((flag !== undefined && namesSecret(flag) && !FLAG.test(word)) || carried) return HIDDEN;
  if (looksSecret(word) || /\b(?:bearer|basic)\s+\S/i.test(word)) return HIDDEN;
  return word.replace(ADDRESS, (address) => shownAddress(address));
}

const shownWords: Shown = (words) =>
  Array.isArray(words) ? words.map((word, at) => shownWord(String(word), words[at - 1])) : HIDDEN;

/** Names alone: what a variable is called does not say whether its value is a secret. A reference is no secret. */
const shownVariables: Shown = (env) =>
  Object.fromEntries(
    Object.entries(env as Record<string, string>).map(([name, value]) => [
      name,
      referenceOf(value) === undefined ? HIDDEN : value,
    ]),
  );

const shownPath: Shown = (path) => {
  const [route = '', query] = String(path).split('?', 2);
  return query === undefined ? path : `${route}?${HIDDEN}`;
};

/** The public members. */
const MEMBERS: Readonly<Record<string, Readonly<Record<string, Shown>>>> = {
  http: { url: (url) => shownAddress(String(url)), health_path: shownPath },
  process: {
    ...{ command: shownWords, cwd: asItIs, env: shownVariables, port: asItIs, foreign_listener: asItIs },
    ...{ health_path: shownPath, limits: asItIs },
  },
  command: {
    ...{ preset: asItIs, cwd: asItIs, bin: asItIs, args: shownWords, env: shownVariables, timeout_seconds: asItIs },
    // The path of a webhook is its password, and a preset of one's own may be one under any name.
    ...{ url: (url) => shownAddress(String(url), true), allow_private: asItIs },
  },
  docker: { container: asItIs, port: asItIs, socket: asItIs, sleep: asItIs, health_path: shownPath },
  fly: { app: asItIs, machine_id: asItIs, port: asItIs, sleep: asItIs, health_path: shownPath },
};

/** The specification with {@link HIDDEN} wherever it holds, or may hold, a secret. */
export function shownSpec({ provider, spec }: { provider: string; spec: object }): Record<string, unknown> {
  const shown = MEMBERS[provider] ?? {};
  return Object.fromEntries(
    Object.entries(spec).map(([name, value]) => [
      name,
      value === undefined ? undefined : (shown[name] ?? hidden)(value),
    ]),
  );
}

/** The path of the first text in a specification that is what a view shows instead of a secret. */
export function hiddenMember(value: unknown, path = 'spec'): string | undefined {
  if (typeof value === 'string') return value.includes(HIDDEN) || value.includes(encodeURI(HIDDEN)) ? path : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const found = hiddenMember(member, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}
