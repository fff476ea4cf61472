/**
 * Finds the parts of a text that cannot be reconstructed when they are lost: addresses, hashes, ids, paths, URLs and
 * long numbers. Pure. A doubtful word counts as an identifier. A superfluous word costs a few tokens, a lost one can
 * cost the task.
 */

/** Anything with a scheme, up to a space, a quote or a bracket that it cannot contain. */
const ADDRESS = /[A-Za-z][A-Za-z0-9+.-]{1,30}:\/\/[^\s"'`<>{}|\\^\u0000-\u001f]+/g;

/** A path between quotes may contain spaces. */
const QUOTED_PATH = /["'`]((?:~|\.{1,2}|[A-Za-z]:)?[/\\][^"'`\n\u0000-\u001f]{1,400})["'`]/g;

/**
 * Absolute, home and relative paths in any script. Repetitions are bounded, so that long runs without a slash take no
 * quadratic time.
 */
const PATH = /[\p{L}\p{N}_.~@+-]{0,100}(?:\/[^\s"'`<>|;,/\u0000-\u001f]+)+\/?/gu;

/** Drives, shares, and relative paths that end in a file name. A backslash alone is more often an escaped line end. */
const WINDOWS_PATH =
  /(?:[A-Za-z]:|\\\\[\w.-]+)\\[^\s"'`<>|;,\u0000-\u001f]*|[\w.-]{1,100}(?:\\[\w.-]{1,100}){1,20}\.\w{1,5}/g;

/** A run of the characters of ids, hashes, hosts and numbers. */
const RUN = /[A-Za-z0-9+_@#-][A-Za-z0-9_.:@#+=%~-]*/g;

/** A number with its digits in groups of three. */
const GROUPED_NUMBER = /(?<![\w.,:-])\d{1,3}(?:[.,_'’ \u00a0\u202f]\d{3})+(?:[.,]\d+)?(?![.,:-]?\w)/g;

const TRAILING = /[.,;:!?]+$/;
const BRACKETS = [
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
] as const;

/**
 * Removes characters of the surrounding sentence from a token: its full stop, and brackets that were not opened in it.
 */
function stripPunctuation(token: string): string {
  let text = token;
  for (;;) {
    const before = text;
    text = text.replace(TRAILING, '');
    for (const [open, close] of BRACKETS) {
      if (text.endsWith(close) && text.split(close).length > text.split(open).length) text = text.slice(0, -1);
    }
    if (text === before) return text;
  }
}

const LONGEST_SMALL_NUMBER = 6;
/** Words of a language are rarely longer, and rarely have capitals inside. */
const LONG_WORD = 20;
const MIXED_CASE = 10;

/** Whether a run is more than a word or a small number. */
function isIdentifier(run: string): boolean {
  const digits = run.replace(/\D/g, '').length;
  if (digits > LONGEST_SMALL_NUMBER) return true;
  const letters = /[A-Za-z]/.test(run);
  // `alarm_7`, `T1000`, `0x5f`, `v1.4.2`, `conv-42`
  if (digits > 0 && letters && run.length >= 3) return true;
  // `10.0.0.1:8080`, `2026-11-22`
  if (digits > 2 && /\d[.:@#-]\d/.test(run)) return true;
  // `a@b`, `chronos__alarm_set`, `key=value`, `did:matrix:x`, `notes.txt`
  if (letters && /[@_#=~%]|\w:\w|\w\.[A-Za-z]/.test(run)) return true;
  if (run.length >= LONG_WORD || /^[0-9a-fA-F]{7,}$/.test(run)) return true;
  // Keys in base58 or base64 that happen to have no digit.
  return (run.length >= MIXED_CASE && /[a-z][A-Z]|[A-Z]{2}[a-z]/.test(run)) || /^[A-Z]{8,}$/.test(run);
}

/** Tokens and where they begin. */
function find(text: string): { token: string; at: number }[] {
  const found: { token: string; at: number }[] = [];
  let rest = text;
  /** Records the matches of a pattern and blanks them, so that their parts are not found again. */
  function take(pattern: RegExp, tokenOf: (match: string, group: string) => string | undefined): void {
    rest = rest.replace(pattern, (match: string, ...more: (string | number)[]) => {
      const token = tokenOf(match, String(more[0]));
      if (!token) return match;
      const from = match.indexOf(token);
      const offset = more.find((value) => typeof value === 'number')!;
      found.push({ token, at: offset + from });
      // The characters cut from the token's ends stay in place, and so does the text behind it.
      return match.slice(0, from) + '\0'.repeat(token.length) + match.slice(from + token.length);
    });
  }
  take(QUOTED_PATH, (_, path) => path);
  take(ADDRESS, stripPunctuation);
  take(WINDOWS_PATH, stripPunctuation);
  take(PATH, stripPunctuation);
  take(GROUPED_NUMBER, (number) => (number.replace(/\D/g, '').length > LONGEST_SMALL_NUMBER ? number : undefined));
  take(RUN, (run) => {
    const token = stripPunctuation(run);
    return isIdentifier(token) ? token : undefined;
  });
  return found.sort((one, other) => one.at - other.at);
}

const ESCAPE_SEQUENCE = /\\(?:[nrt"\\/]|u[0-9a-fA-F]{4})/g;
const ESCAPED: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t' };

function unescaped(sequence: string): string {
  const letter = sequence[1]!;
  return letter === 'u' ? String.fromCharCode(Number.parseInt(sequence.slice(2), 16)) : (ESCAPED[letter] ?? letter);
}

/** Every identifier of a text, once, in the order of first appearance. */
export function identifiersIn(text: string): Set<string> {
  const tokens = new Set(find(text).map(({ token }) => token));
  // JSON inside of text: the token after an escaped line end does not begin with the "n".
  const plain = text.replace(ESCAPE_SEQUENCE, unescaped);
  if (plain !== text) for (const { token } of find(plain)) tokens.add(token);
  return tokens;
}

/** The identifiers of a source that a text about it lacks, as the source writes them. */
export function droppedIdentifiers(source: string, text: string): string[] {
  const kept = identifiersIn(text);
  return [...identifiersIn(source)].filter((token) => !kept.has(token));
}
