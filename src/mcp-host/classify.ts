/**
 * Which tools Neo uses by itself and which only the executor may: natural ones can be taken back, the others move or commit
 * something and need a human's word. Pure.
 */
import { ReveilleError } from '../wire/errors.ts';

/** Parts of names under which tools move or commit something; letters in either case. */
export const ESCALATE_PATTERNS: readonly string[] = [
  ...['send', 'transfer', 'swap', 'approve', 'deploy', 'settle'],
  ...['fund', 'mint', 'withdraw', 'stake', 'invoke', 'bridge'],
];

/** Names that begin with one of these words look at something or try it out. */
const HARMLESS: ReadonlySet<string> = new Set(['compile', 'test', 'simulate', 'lookup', 'list']);
/** A name with one of these words does more than its first word says. */
const FURTHER: ReadonlySet<string> = new Set(['and', 'then', 'or']);

const PATTERN = /^[\p{L}\p{N}_.-]{1,64}$/u;

/** Names are compared without regard to case and to how Unicode can write the same letter. */
const folded = (text: string) => text.normalize('NFKC').toLowerCase();

/**
 * Reads `NEO_ESCALATE_PATTERNS`: parts of names with commas between them. They take the place of {@link ESCALATE_PATTERNS}.
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
  return patterns.map(folded);
}

/** `simulateSwap`, `simulate_swap` and `simulate-swap` are two words each. */
function wordsOf(name: string): string[] {
  const apart = name.normalize('NFKC').replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2');
  return apart
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}

/** Whether a name is that of a read or a dry run: these do not move what they speak of. */
function isHarmless(name: string): boolean {
  const [first, ...rest] = wordsOf(name);
  return first !== undefined && HARMLESS.has(first) && !rest.some((word) => FURTHER.has(word));
}

export type Classifiable = {
  /** The tool's own name on its server. */
  readonly name: string;
  /** What the manifest says; it has the last word. */
  readonly surface?: 'natural' | 'escalate' | undefined;
  /** What the server says about its tool. Nobody vouches for it, so it can only make a classification stricter. */
  readonly annotations?: { readonly destructiveHint?: unknown } | undefined;
};

export type Classification =
  | { readonly surface: 'natural' }
  /** `reason` completes "it is escalated because". */
  | { readonly surface: 'escalate'; readonly reason: string };

/** @param patterns parts of names, as {@link readEscalatePatterns} gives them */
export function classify(tool: Classifiable, patterns: readonly string[]): Classification {
  if (tool.surface === 'escalate') return { surface: 'escalate', reason: 'the manifest says so' };
  if (tool.surface === 'natural') return { surface: 'natural' };
  const name = folded(tool.name);
  const match = isHarmless(tool.name) ? undefined : patterns.find((pattern) => name.includes(pattern));
  if (match !== undefined) return { surface: 'escalate', reason: `its name contains "${match}"` };
  if (tool.annotations?.destructiveHint === true) {
    return { surface: 'escalate', reason: 'its server calls it destructive and the manifest does not say otherwise' };
  }
  return { surface: 'natural' };
}
