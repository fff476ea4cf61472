/** The type of a memory and its validation. Pure. */
import { ReveilleError } from '../../../wire/errors.ts';
import { showValue } from '../../../wire/validate.ts';

export const MEMORY_KINDS = ['fact', 'event', 'preference', 'goal', 'pattern'] as const;
export type MemoryKind = (typeof MEMORY_KINDS)[number];

/** "The `attribute` of `subject` is `value`": only for an attribute with one value at a time. */
export type Claim = { readonly subject: string; readonly attribute: string; readonly value: string };

export type NewMemory = {
  readonly kind: MemoryKind;
  /** One sentence that can be understood by itself; stored unchanged. */
  readonly text: string;
  /** Its importance, from 0 to 1. */
  readonly salience: number;
  readonly claim?: Claim;
};

export type Source = {
  readonly turnId: string;
  readonly conversationId: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** A stored memory. Times are milliseconds since the epoch. */
export type StoredMemory = NewMemory & {
  /** Its position in the order of learning; never reused. */
  readonly seq: number;
  readonly id: string;
  /** In how many turns it was learned. */
  readonly strength: number;
  readonly createdAt: number;
  readonly lastSeenAt: number;
  /** The turn of its first learning, and its conversation. */
  readonly turnId: string;
  readonly conversationId: string;
  /** The id of the newer memory that contradicts it. */
  readonly supersededBy?: string;
};

/** The result of storing a memory: `known` was learned from this very turn before, and nothing changed. */
export type RememberResult = { readonly id: string; readonly outcome: 'new' | 'strengthened' | 'known' };

/** The longest text of a memory, in characters. */
export const MEMORY_TEXT_MAX = 1000;
/** The longest subject, attribute or value, in characters. */
export const CLAIM_TEXT_MAX = 200;

function checkText(field: string, text: string, max: number): void {
  if (text.trim() === '') throw new ReveilleError('invalid_request', `${field} must not be empty`);
  if (text.length > max)
    throw new ReveilleError('invalid_request', `${field} must be at most ${max} characters, it has ${text.length}`);
  if (text.includes('\0') || !text.isWellFormed())
    throw new ReveilleError('invalid_request', `${field} must be well-formed Unicode without NUL characters`);
}

/** Validates a new memory. @throws ReveilleError `invalid_request` naming the field */
export function checkNewMemory({ kind, text, salience, claim }: NewMemory): void {
  if (!MEMORY_KINDS.includes(kind)) {
    const message = `kind must be one of ${MEMORY_KINDS.join(', ')} (got ${showValue(kind)})`;
    throw new ReveilleError('invalid_request', message);
  }
  checkText('text', text, MEMORY_TEXT_MAX);
  if (!(salience >= 0 && salience <= 1))
    throw new ReveilleError('invalid_request', `salience must be from 0 to 1 (got ${showValue(salience)})`);
  for (const [name, part] of Object.entries(claim ?? {})) checkText(name, part, CLAIM_TEXT_MAX);
}
