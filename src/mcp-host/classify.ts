/**
 * Decides which tools are natural and which escalate: the one rule for Neo, the executor and `reveille policy explain`.
 * A name or a server's hint only makes a class stricter. Only the manifest's entry for a tool loosens it. Pure.
 */
import { inLatin } from '../kit/text/hidden-characters.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { SideEffectClass, ToolSurface } from '../wire/manifest.ts';

/** Parts of names of tools that move or commit something, at any position, in either case. */
export const ESCALATE_PATTERNS: readonly string[] = [
  ...['send', 'transfer', 'swap', 'approve', 'deploy', 'settle'],
  ...['fund', 'mint', 'withdraw', 'stake', 'invoke', 'bridge'],
  ...['purchase', 'payment', 'payout', 'delete', 'destroy', 'redeem', 'liquidat', 'checkout'],
];

/**
 * Shorter words, which other words contain by chance (`display`, `wireless`). They match only the beginning of a word
 * of the name.
 */
const ESCALATE_WORDS: readonly (readonly [word: string, begins: RegExp])[] = [
  ['pay', /^pay(?!load)/],
  ['wire', /^w[il]re(?!less|frame|shark)/],
  ['sweep', /^sweep/],
  ['buy', /^buy/],
  ['sell', /^sell(?!er)/],
  ['spend', /^spend/],
  ['burn', /^bu(?:rn|m)(?!down)/],
  ['charge', /^charge/],
  ['wipe', /^w[il]pe/],
  ['purge', /^purge/],
  ['erase', /^erase/],
  ['remove', /^remove/],
  ['drop', /^drop(?!down)/],
];

/** A name that begins with one of these words reads or simulates, if the manifest declares the tool as a read. */
const READ_WORDS: ReadonlySet<string> = new Set(['compile', 'test', 'simulate', 'lookup', 'list']);
/** A name with one of these words does more than its first word says. */
const CONTINUATION_WORDS: ReadonlySet<string> = new Set([
  'and',
  'then',
  'or',
  'with',
  'plus',
  'via',
  'execute',
  'run',
  'commit',
]);

const PATTERN = /^[\p{L}\p{N}_.-]{1,64}$/u;

/**
 * Parses `NEO_ESCALATE_PATTERNS`: comma-separated parts of names, added to {@link ESCALATE_PATTERNS}.
 *
 * @throws ReveilleError `invalid_request` for text that cannot be part of a tool's name
 */
export function readEscalatePatterns(setting: string): readonly string[] {
  const patterns = setting.split(',').map((part) => part.trim());
  for (const pattern of patterns) {
    if (PATTERN.test(pattern)) continue;
    const got = JSON.stringify(pattern.slice(0, 80));
    throw new ReveilleError(
      'invalid_request',
      `NEO_ESCALATE_PATTERNS must be parts of tool names with commas between them, such as send,transfer (got ${got})`,
    );
  }
  return patterns.map((pattern) => pattern.normalize('NFKC').toLowerCase());
}

export type Classifiable = {
  /** The tool's own name on its server. */
  readonly name: string;
  /** The manifest's entry for this tool; `surface` decides. */
  readonly surface?: ToolSurface | undefined;
  readonly sideEffectClass?: SideEffectClass | undefined;
  /** The server's hints about its tool. They are untrusted, so they only make a classification stricter. */
  readonly annotations?: { readonly destructiveHint?: unknown } | undefined;
};

type Classification =
  /** `despite` completes "the manifest makes it natural although". */
  | { readonly surface: 'natural'; readonly despite?: string }
  /** `reason` completes "it is escalated because". */
  | { readonly surface: 'escalate'; readonly reason: string };

/** The sign of an effect in a tool's name, independent of its declared class. */
function effectInName(name: string, extraPatterns: readonly string[]): string | undefined {
  const read = readName(name);
  for (const part of [...ESCALATE_PATTERNS, ...extraPatterns]) {
    const how = read.contains(part);
    if (how !== undefined) return `its name ${how === 'is' ? 'contains' : 'reads like'} "${part}"`;
  }
  const found = ESCALATE_WORDS.find(([, begins]) => read.words.some((word) => begins.test(word)));
  return found && `its name has the word "${found[0]}"`;
}

/** Whether a word announces a second action, alone or joined with the next word: `and`, `andtransfer`. */
const announcesMore = (word: string) =>
  [...CONTINUATION_WORDS].some(
    (further) =>
      word === further || (word.startsWith(further) && effectInName(word.slice(further.length), []) !== undefined),
  );

/** Whether the name is that of a read or a dry run, which has no effect on its object. */
function isReadOrDryRun(name: string): boolean {
  const { words, isPlain } = readName(name);
  const [first, ...rest] = words;
  return isPlain && first !== undefined && READ_WORDS.has(first) && !rest.some(announcesMore);
}

/** @param extraPatterns parts of names beside the built-in ones, as {@link readEscalatePatterns} returns them */
export function classify(tool: Classifiable, extraPatterns: readonly string[] = []): Classification {
  const { name, surface, sideEffectClass, annotations } = tool;
  if (surface === 'escalate') return { surface, reason: 'the manifest says so' };
  const isDeclaredRead = sideEffectClass === 'read';
  const nameReason = effectInName(name, extraPatterns);
  if (surface === 'natural') return nameReason === undefined ? { surface } : { surface, despite: nameReason };
  if (nameReason !== undefined && !(isDeclaredRead && isReadOrDryRun(name)))
    return { surface: 'escalate', reason: nameReason };
  if (annotations?.destructiveHint === true) {
    return { surface: 'escalate', reason: 'its server calls it destructive and the manifest does not say otherwise' };
  }
  if (!isDeclaredRead) return { surface: 'escalate', reason: 'the manifest calls it neither a read nor natural' };
  if (!readName(name).isPlain) {
    return { surface: 'escalate', reason: 'its name has letters that may look like others; give its "surface"' };
  }
  return nameReason === undefined ? { surface: 'natural' } : { surface: 'natural', despite: nameReason };
}

/**
 * A warning for a tool that the manifest makes natural against its name while its definition is not pinned: the server
 * may replace it under that name.
 *
 * @param tool `<alias>/<tool>`
 */
export function unpinnedWarning(tool: string, found: Classification, isPinned: boolean): string | undefined {
  if (isPinned || found.surface === 'escalate' || found.despite === undefined) return undefined;
  return `${tool} is natural by its manifest although ${found.despite}, and its definition is not pinned; run "reveille tools pin" with its manifest`;
}

/** First words of most names of reads. */
const READ_VERBS: ReadonlySet<string> = new Set(
  'get list read search find lookup describe show view count status stat query resolve explain history'.split(' '),
);

/**
 * A proposed class for a tool and the reason. The proposal is never looser than read; anything looser needs a person.
 */
export type ClassProposal = { readonly proposedClass: 'read' | 'escalate'; readonly reason: string };

export function proposeClass(name: string, annotations: Readonly<Record<string, unknown>> | undefined): ClassProposal {
  const nameReason = effectInName(name, []);
  if (nameReason !== undefined) return { proposedClass: 'escalate', reason: nameReason };
  const { words, isPlain } = readName(name);
  if (!isPlain) return { proposedClass: 'escalate', reason: 'its name has letters that may look like others' };
  if (annotations?.destructiveHint === true && annotations.readOnlyHint !== true)
    return { proposedClass: 'escalate', reason: 'its server calls it destructive' };
  if (annotations?.readOnlyHint !== true)
    return { proposedClass: 'escalate', reason: 'its server does not call it read-only' };
  const [first = ''] = words;
  if (!READ_VERBS.has(first)) return { proposedClass: 'escalate', reason: 'its name is not that of a read' };
  return { proposedClass: 'read', reason: `its name begins with "${first}" and its server calls it read-only` };
}

/**
 * Folds characters that replace each other onto one of them: `tr4n5fer` equals `transfer`, `deIete` equals `delete`.
 */
function skeleton(text: string): string {
  const signs: Readonly<Record<string, string>> = {
    '0': 'o',
    '3': 'e',
    '4': 'a',
    '5': 's',
    '7': 't',
    '@': 'a',
    $: 's',
  };
  return text
    .toLowerCase()
    .replace(/[034579@$]/g, (sign) => signs[sign] ?? sign)
    .replace(/[i1|!]/g, 'l')
    .replaceAll('rn', 'm')
    .replaceAll('vv', 'w');
}

/**
 * Splits a name into words: two for `simulateSwap`, `simulate_swap`, `simulate-swap`, `listANDtransfer` and `PAYNow`.
 */
function split(name: string): string[] {
  const words = name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replace(/(?<!\p{Lu})(\p{Lu}{2,})(\p{Ll}{2,})/gu, (whole, capitals: string, rest: string) =>
      // `ANDtransfer` is a word in capitals and another one; in `PAYNow` the last capital begins the second word.
      [whole, `${capitals} ${rest}`, `${capitals.slice(0, -1)} ${capitals.at(-1)}${rest}`].join(' '),
    )
    .toLowerCase()
    .split(/[^\p{L}\p{N}@$]+/u)
    .filter((word) => word !== '');
  // `p_a_y` spells a word.
  const spelt = words.join(' ').replace(/(?<=\b\w) (?=\w\b)/g, '');
  return [...new Set([...words, ...spelt.split(' ')])];
}

type ReadName = {
  /** Its words in lower case, in order; every reading where capitals are ambiguous. */
  readonly words: readonly string[];
  /** Whether every character is printable ASCII, so that no letter is a look-alike of another. */
  readonly isPlain: boolean;
  /**
   * Whether the name contains this part, with or without separators. @returns `reads` where look-alike characters
   * replace letters
   */
  contains(part: string): 'is' | 'reads' | undefined;
};

function readName(name: string): ReadName {
  const latin = inLatin(name);
  const folded = [name.normalize('NFKC').toLowerCase(), name.toLowerCase()];
  const joined = skeleton(latin).replace(/[^\p{L}\p{N}]+/gu, '');
  const words = split(latin);
  return {
    words: [...new Set([...words, ...words.map(skeleton)])],
    isPlain: /^[\x20-\x7e]*$/.test(name),
    contains(part) {
      if (folded.some((text) => text.includes(part.toLowerCase()))) return 'is';
      const wanted = skeleton(inLatin(part)).replace(/[^\p{L}\p{N}]+/gu, '');
      return wanted !== '' && joined.includes(wanted) ? 'reads' : undefined;
    },
  };
}
