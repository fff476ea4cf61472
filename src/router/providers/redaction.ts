/**
 * Hides secrets in the specification of a machine when operators see it. Pure. A secret that is shown once is in every
 * screenshot, so every possible secret is hidden: the person who registered the machine knows it.
 */
import { quoteLast } from '../../kit/text/excerpt.ts';
import { hiddenBlanked, withoutColours } from '../../kit/text/hidden-characters.ts';

/** The placeholder of a secret in a view. It is rejected as a value. */
export const HIDDEN = '[redacted]';

const SECRET_NAME = /TOKEN|SECRET|KEY|PASS|_PWD|CREDENTIAL|AUTH/i;

/** Whether a variable or flag of this name counts as secret: its value is removed from quoted output. */
export function namesSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

const REFERENCE = /^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$/;

/** The variable of the router that a value of a machine's environment refers to: exactly `${NAME}`, or nothing. */
export function referenceOf(value: string): string | undefined {
  return REFERENCE.exec(value)?.[1];
}

/** How a member's value is shown. */
export type Shown = (value: unknown) => unknown;

/** The value itself: the member never contains a secret. Of a group of members only numbers and booleans are shown. */
export const plain: Shown = (value) => {
  if (typeof value !== 'object' || value === null) return value;
  const isBare = (member: unknown) => typeof member === 'number' || typeof member === 'boolean';
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, isBare(one) ? one : HIDDEN]));
};

/** Words that look like a secret: the forms of well-known issuers, tokens of JSON Web Signature, long random text. */
const ISSUED =
  /^(?:sk-|sk_|rk_|pk_live|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|AKIA|ASIA|AIza|eyJ|whsec_|fm[12]_|FlyV1)/;
const RANDOM = /^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[\w+/=.~-]{20,}$|^[0-9a-fA-F]{32,}$/;
/** A path is long too, and is shown because it locates something. */
const looksSecret = (argument: string): boolean =>
  ISSUED.test(argument) || (RANDOM.test(argument) && !/^[./~]|\.[a-z]{1,4}$/.test(argument));

/** The flags before a value of any form: a header, a login, a cookie, a variable. */
const CARRIERS = /^(?:-H|-u|-b|-e|-E|--?(?:headers?|user|cookie|env|proxy-user|login))$/;
const FLAG = /^--?([A-Za-z][\w.-]*)$/;
const ASSIGNED = /^(--?[A-Za-z][\w.-]*|[A-Za-z_][\w.-]*)=(.*)$/s;
const HEADER = /^([A-Za-z][A-Za-z0-9-]*):\s*\S/;
// Bounded: a long word without an address must not be scanned again from each of its letters.
const ADDRESS = /[a-z][a-z0-9+.-]{0,20}:\/\/[^\s"']+/gi;

/** An address without user, query, fragment, and random-looking parts of its path; with `bare` without any path. */
export function shownAddress(text: string, bare = false): string {
  const url = URL.parse(text);
  if (!url) return HIDDEN;
  const segments = url.pathname.split('/').map((part) => (looksSecret(decoded(part)) ? HIDDEN : part));
  const path = bare && url.pathname !== '/' ? `/${HIDDEN}` : segments.join('/');
  const user = url.username !== '' || url.password !== '' ? `${HIDDEN}@` : '';
  // Returned unchanged if there is no secret: a trailing slash makes another address for some programs.
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

/** One word of a command line, given the word before it. */
export function shownArgument(argument: string, before: string | undefined): string {
  const flag = before === undefined ? undefined : FLAG.exec(before)?.[1];
  const followsCarrier = before !== undefined && CARRIERS.test(before);
  const [, name, value] = ASSIGNED.exec(argument) ?? [];
  if (name !== undefined && value !== undefined && referenceOf(value) === undefined) {
    const assignedFlag = CARRIERS.test(name);
    if (namesSecret(name) || (followsCarrier && !assignedFlag) || assignedFlag || looksSecret(value))
      return `${name}=${HIDDEN}`;
  }
  const header = HEADER.exec(argument)?.[1];
  if (header !== undefined && (followsCarrier || namesSecret(header) || /cookie/i.test(header)))
    return `${header}: ${HIDDEN}`;
  if ((flag !== undefined && namesSecret(flag) && !FLAG.test(argument)) || followsCarrier) return HIDDEN;
  if (looksSecret(argument) || /\b(?:bearer|basic)\s+\S/i.test(argument)) return HIDDEN;
  return argument.replace(ADDRESS, (address) => shownAddress(address));
}

/** A command line without possible secrets. */
export const shownArguments: Shown = (args) =>
  Array.isArray(args) ? args.map((argument, at) => shownArgument(String(argument), args[at - 1])) : HIDDEN;

/** Names only: the name of a variable does not show whether its value is secret. A reference is not secret. */
export const shownVariables: Shown = (env) =>
  Object.fromEntries(
    Object.entries(env as Record<string, string>).map(([name, value]) => [
      name,
      referenceOf(value) === undefined ? HIDDEN : value,
    ]),
  );

/** A path without its query. */
export const shownPath: Shown = (path) => {
  const [route = '', query] = String(path).split('?', 2);
  return query === undefined ? path : `${route}?${HIDDEN}`;
};

/** The path of the first placeholder in a specification. */
export function hiddenMember(value: unknown, path = 'spec'): string | undefined {
  if (typeof value === 'string') return value.includes(HIDDEN) || value.includes(encodeURI(HIDDEN)) ? path : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    const found = hiddenMember(member, `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Shorter values occur in ordinary text by chance. */
const SHORTEST_SECRET = 6;

/**
 * Removes the given secrets and terminal colours. A lone surrogate becomes U+FFFD, because neither a file nor an answer
 * can contain it.
 */
export function quotableText(text: string, secrets: readonly string[]): string {
  let clean = text;
  // The longest first: one secret may be a part of another.
  for (const secret of secrets.toSorted((one, other) => other.length - one.length)) {
    if (secret.length >= SHORTEST_SECRET) clean = clean.replaceAll(secret, HIDDEN);
  }
  return withoutColours(clean).toWellFormed();
}

/**
 * The last lines of a process's output as one well-formed line, without stack frames, control characters, terminal
 * colours and the given secrets.
 */
export function lastOutput(output: string, secrets: readonly string[]): string {
  return quoteLast(
    quotableText(output, secrets)
      .split(/[\r\n]+/)
      .map(hiddenBlanked),
  );
}
