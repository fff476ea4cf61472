/**
 * Which tools an agent uses by itself and which only the executor may: the one rule for Neo, the executor and `reveille
 * policy explain`. A name and a server's hints decide nothing by themselves, they only ever make a class stricter; what
 * loosens it is the manifest's word about that very tool. Pure.
 */

import { inLatin } from '../kit/text/hidden-characters.ts';
import { ReveilleError } from '../wire/errors.ts';
import type { SideEffectClass, ToolSurface } from '../wire/manifest.ts';

/** Parts of names under which tools move or commit something, wherever they stand; letters in either case. */
export const ESCALATE_PATTERNS: readonly string[] = [
  ...['send', 'transfer', 'swap', 'approve', 'deploy', 'settle'],
  ...['fund', 'mint', 'withdraw', 'stake', 'invoke', 'bridge'],
  ...['purchase', 'payment', 'payout', 'delete', 'destroy', 'redeem', 'liquidat', 'checkout'],
];

/**
 * Shorter ones, which other words contain by chance (`display`, `wireless`): these are what a word of the name begins
 * with.
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

/**
 * Names that begin with one of these words look at something or try it out, where the manifest calls the tool a read.
 */
const HARMLESS: ReadonlySet<string> = new Set(['compile', 'test', 'simulate', 'lookup', 'list']);
/** A name with one of these words does more than its first word says. */
const FURTHER: ReadonlySet<string> = new Set(['and', 'then', 'or', 'with', 'plus', 'via', 'execute', 'run', 'commit']);

const PATTERN = /^[\p{L}\p{N}_.-]{1,64}$/u;

/**
 * Reads `NEO_ESCALATE_PATTERNS`: parts of names with commas between them, beside {@link ESCALATE_PATTERNS}.
 *
 * @throws ReveilleError `invalid_request` for what cannot be part of a tool's name
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
  /** What the manifest says of this very tool; `surface` has the last word. */
  readonly surface?: ToolSurface | undefined;
  readonly sideEffectClass?: SideEffectClass | undefined;
  /** What the server says about its tool. Nobody vouches for it, so it can only make a classification stricter. */
  readonly annotations?: { readonly destructiveHint?: unknown } | undefined;
};

type Classification =
  /** `despite` completes "it is natural by the manifest's word although". */
  | { readonly surface: 'natural'; readonly despite?: string }
  /** `reason` completes "it is escalated because". */
  | { readonly surface: 'escalate'; readonly reason: string };

/** What speaks against a tool in its name, whoever vouches for it. */
function suspicion(name: string, more: readonly string[]): string | undefined {
  const read = readName(name);
  for (const part of [...ESCALATE_PATTERNS, ...more]) {
    const how = read.contains(part);
    if (how !== undefined) return `its name ${how === 'is' ? 'contains' : 'reads like'} "${part}"`;
  }
  const found = ESCALATE_WORDS.find(([, begins]) => read.words.some((word) => begins.test(word)));
  return found && `its name has the word "${found[0]}"`;
}

/** Whether a word says that there is more to come, alone or run into what comes: `and`, `andtransfer`. */
const goesFurther = (word: string) =>
  [...FURTHER].some(
    (further) =>
      word === further || (word.startsWith(further) && suspicion(word.slice(further.length), []) !== undefined),
  );

/** Whether a name is that of a look or a dry run: these do not move what they speak of. */
function isHarmless(name: string): boolean {
  const { words, isPlain } = readName(name);
  const [first, ...rest] = words;
  return isPlain && first !== undefined && HARMLESS.has(first) && !rest.some(goesFurther);
}

/** @param more parts of names beside those of the house, as {@link readEscalatePatterns} gives them */
export function classify(tool: Classifiable, more: readonly string[] = []): Classification {
  const { name, surface, sideEffectClass, annotations } = tool;
  if (surface === 'escalate') return { surface, reason: 'the manifest says so' };
  const isVouchedFor = sideEffectClass === 'read';
  const named = suspicion(name, more);
  if (surface === 'natural') return named === undefined ? { surface } : { surface, despite: named };
  if (named !== undefined && !(isVouchedFor && isHarmless(name))) return { surface: 'escalate', reason: named };
  if (annotations?.destructiveHint === true) {
    return { surface: 'escalate', reason: 'its server calls it destructive and the manifest does not say otherwise' };
  }
  if (!isVouchedFor) return { surface: 'escalate', reason: 'the manifest calls it neither a read nor natural' };
  if (!readName(name).isPlain) {
    return { surface: 'escalate', reason: 'its name has letters that may look like others; give its "surface"' };
  }
  return named === undefined ? { surface: 'natural' } : { surface: 'natural', despite: named };
}

/**
 * What to warn of where the manifest's word goes against a name, and the tool may become another under that name.
 *
 * @param tool `<alias>/<tool>`
 */
export function warningOf(tool: string, found: Classification, isPinned: boolean): string | undefined {
  if (isPinned || found.surface === 'escalate' || found.despite === undefined) return undefined;
  return `${tool} is natural by the manifest's word although ${found.despite}, and its definition is not pinned; run "reveille tools pin" with its manifest`;
}

/** With what most looks begin. */
const LOOKS: ReadonlySet<string> = new Set(
  'get list read search find lookup describe show view count status stat query resolve explain history'.split(' '),
);

/**
 * What a person is proposed to say of a tool, and why. Never more than a read: the rest has to be said by the person.
 */
export type Proposal = { readonly word: 'read' | 'escalate'; readonly reason: string };

export function propose(name: string, annotations: Readonly<Record<string, unknown>> | undefined): Proposal {
  const named = suspicion(name, []);
  if (named !== undefined) return { word: 'escalate', reason: named };
  const { words, isPlain } = readName(name);
  if (!isPlain) return { word: 'escalate', reason: 'its name has letters that may look like others' };
  if (annotations?.destructiveHint === true && annotations.readOnlyHint !== true)
    return { word: 'escalate', reason: 'its server calls it destructive' };
  if (annotations?.readOnlyHint !== true) return { word: 'escalate', reason: 'its server does not call it read-only' };
  const [first = ''] = words;
  if (!LOOKS.has(first)) return { word: 'escalate', reason: 'its name is not that of a look' };
  return { word: 'read', reason: `its name begins with "${first}" and its server calls it read-only` };
}

/**
 * Signs that one letter is written with for another, each as one of them: `tr4n5fer` and `transfer`, `deIete` and
 * `delete` are one.
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
 * `simulateSwap`, `simulate_swap` and `simulate-swap` are two words each, `listANDtransfer` and `PAYNow` are what they
 * show.
 */
function split(name: string): string[] {
  const words = name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu}{2,})(\p{Ll}{2,})/gu, (whole, capitals: string, rest: string) =>
      // `ANDtransfer` is a word in capitals and another; `PAYNow` begins its second word with the last capital.
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
  /** Its words in lower case, in order; where capitals can be read in several ways, all of these. */
  readonly words: readonly string[];
  /** Whether every character of it is printable ASCII: no letter can be another one's look-alike. */
  readonly isPlain: boolean;
  /**
   * Whether it contains this, read with or without separators. @returns `reads` where other letters or signs stand for
   * it
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
