/** Where values of a plan may come from: the words that were handed over, and what tools answered while it was compiled. Pure. */
import type { ContextPiece } from '../../wire/executor.ts';
import type { CompileRead } from '../receipt/bodies.ts';
import { type Words, wordsOf } from './whole-words.ts';

/**
 * Who wrote the text that a value stands in; where it stands in several, the first of these is named. `schema`: nobody, the tool takes no
 * other value or has it by default. The task itself comes late, for an agent may have written it: what is behind its words says more.
 */
export const ORIGINS = ['schema', 'person', 'alarm', 'tool', 'prose', 'read'] as const;
export type OriginKind = (typeof ORIGINS)[number];

export type Origin = {
  readonly kind: OriginKind;
  /** Of a `read`: `<alias>/<tool>` */
  readonly tool?: string;
};

/** What a plan was compiled from. */
export type Material = {
  readonly prose: string;
  readonly context: readonly ContextPiece[];
  readonly reads: readonly CompileRead[];
};

/** A text, or each text and number of what is written in it as JSON. */
export type Source = Origin & { readonly words: Words };

/** A line separator: no value that is let through holds one, so none can reach from one leaf into the next. */
const APART = '\u2028';

/** How deep JSON inside of JSON is read. */
const DEEPEST = 3;

/** All texts and numbers of a JSON value, names of fields included. */
function leavesOf(value: unknown, depth: number): string[] {
  if (typeof value === 'string') return [value, ...jsonLeaves(value, depth + 1)];
  if (typeof value === 'number') return [String(value)];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    ...(Array.isArray(value) ? [] : [name]),
    ...leavesOf(member, depth),
  ]);
}

/** What a JSON document says; nothing of other texts. Numbers that JavaScript rounds are left out: nobody has written the rounded ones. */
function jsonLeaves(text: string, depth = 0): string[] {
  if (depth > DEEPEST || !/^\s*[[{]/.test(text)) return [];
  try {
    const exact = (_: string, value: unknown, { source }: { source?: string }) =>
      typeof value === 'number' && source !== undefined && String(value) !== source ? source : value;
    const parse = JSON.parse as (text: string, reviver: typeof exact) => unknown;
    return leavesOf(parse(text, exact), depth);
  } catch {
    return [];
  }
}

function sourcesIn(text: string, origin: Origin): Source[] {
  const leaves = jsonLeaves(text);
  const texts = leaves.length === 0 ? [text] : [text, leaves.join(APART)];
  return texts.map((part) => ({ ...origin, words: wordsOf(part) }));
}

/** The sources of some material, in the order of {@link ORIGINS}. */
export function sourcesOf({ prose, context, reads }: Material): readonly Source[] {
  const all = [
    ...sourcesIn(prose, { kind: 'prose' }),
    ...context.flatMap(({ from, text }) => sourcesIn(text, { kind: from })),
    ...reads.flatMap(({ tool, text = '' }) => sourcesIn(text, { kind: 'read', tool })),
  ];
  return all.sort((one, other) => ORIGINS.indexOf(one.kind) - ORIGINS.indexOf(other.kind));
}
