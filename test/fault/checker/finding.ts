/** The finding of an invariant, and the formats of its sentences. */
import { formatInstant } from '../../../src/wire/rfc3339.ts';
import { showValue } from '../../../src/wire/validate.ts';
import type { AlarmCase, Evidence } from './evidence.ts';

/** One invariant's part of the verdict. */
export type Finding = {
  /** 1 to 10, as in docs/operate/reliability.md. */
  number: number;
  title: string;
  /** Number of judged cases: the N of "0 in N". */
  judged: number;
  /** Unit of the judged cases. */
  unit: string;
  /** Each sentence is a broken promise; it names the alarm, the occurrence and the times. */
  violations: readonly string[];
  /** Further counts, which are not violations. */
  counts: Readonly<Record<string, number>>;
};

/** Judges one invariant. */
export type Invariant = (evidence: Evidence) => Finding;

/** A time in a sentence. */
export function at(epochMs: number): string {
  return Number.isFinite(epochMs) && Math.abs(epochMs) <= 8.64e15 ? formatInstant(epochMs) : String(epochMs);
}

/** An alarm in a sentence: its id, and its owner's key. */
export function named({ id, creates }: Pick<AlarmCase, 'id' | 'creates'>): string {
  const key = creates[0]?.operation.key ?? null;
  return key === null ? `alarm ${id}` : `alarm ${id} (${showValue(key)})`;
}
