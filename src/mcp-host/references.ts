/** Environment variables in a manifest: `${NAME}`, `${NAME:-otherwise}`, and `$env:NAME` in lists. */

/** The variables that a manifest may refer to. An empty value counts as not set. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** One variable or header for a server. */
export type Assignment = {
  name: string;
  /** As the manifest writes it. */
  text: string;
  /** Its position in `env` or `headers`: a member's name or the index in the list. */
  key: string | number;
};

export type Resolved = {
  value: string;
  /** The referenced variables, set or not. */
  named: string[];
  /** The unset ones among them that have no fallback. */
  missing: string[];
  /** Values that must not be shown. */
  secrets: string[];
};

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;
const LIST_REFERENCE = /\$env:([A-Za-z_][A-Za-z0-9_]*)|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g;

const SECRET_NAME =
  /TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION|COOKIE|(^|[_-])(KEY|AUTH|PAT)([_-]|$)|API_?KEY/i;
/** Prefixes of the keys of well-known services, PEM private keys, and JSON web tokens. */
const SECRET_START =
  /\b(sk-|ghp_|gho_|ghs_|github_pat_|glpat-|xox[abprs]-|AKIA|AIza|npm_|hf_)[A-Za-z0-9_-]{8,}|-----BEGIN|\beyJ[A-Za-z0-9_-]{20,}/;
/** A long word of letters and digits. Most keys look like this; settings do not. */
const LONG_WORD = /(?<![A-Za-z0-9+_])(?=[A-Za-z0-9+_]*\d)(?=[A-Za-z0-9+_]*[A-Za-z])[A-Za-z0-9+_]{32,}/;

/** Whether a variable or header of this name usually contains a secret. */
export function namesSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** Whether a literal text in a manifest looks like a secret. */
export function looksSecret(text: string): boolean {
  return SECRET_START.test(text) || LONG_WORD.test(text);
}

/** The entries of `env` or `headers` in either form. */
export function assignmentsOf(given: Record<string, string> | readonly string[] | undefined): Assignment[] {
  if (given === undefined) return [];
  if (!isList(given)) return Object.entries(given).map(([name, text]) => ({ name, text, key: name }));
  return given.map((entry, key) => {
    const at = entry.indexOf('=');
    return { name: entry.slice(0, at), text: entry.slice(at + 1), key };
  });
}

const isList = (given: Record<string, string> | readonly string[]): given is readonly string[] => Array.isArray(given);

/**
 * The literal part of a text: its references are replaced by their fallbacks.
 *
 * @param listed as in {@link resolveReferences}
 */
export function literalOf(text: string, listed = false): string {
  if (!listed) return text.replace(REFERENCE, (_, _variable: string, fallback = '') => fallback);
  return text.replace(LIST_REFERENCE, (_, _short?: string, _variable?: string, fallback = '') => fallback);
}

/**
 * Replaces the references by their values.
 *
 * @param listed whether the text is from a list of `NAME=value`, where `$env:NAME` is a reference too
 */
export function resolveReferences(text: string, variables: Variables, listed = false): Resolved {
  const named: string[] = [];
  const missing: string[] = [];
  const secrets: string[] = [];
  const substitute = (variable: string, fallback: string | undefined): string => {
    named.push(variable);
    const found = variables[variable];
    if (found === undefined || found === '') {
      if (fallback === undefined) missing.push(variable);
      return fallback ?? '';
    }
    if (namesSecret(variable) || looksSecret(found)) secrets.push(found);
    return found;
  };
  const value = listed
    ? text.replace(LIST_REFERENCE, (_, short: string | undefined, long: string, fallback?: string) =>
        substitute(short ?? long, short === undefined ? fallback : undefined),
      )
    : text.replace(REFERENCE, (_, variable: string, fallback?: string) => substitute(variable, fallback));
  return { value, named, missing, secrets };
}
