/** What an invariant found, and the words that findings are written in. */
import { formatInstant } from '../../../src/wire/rfc3339.ts';
import { showValue } from '../../../src/wire/validate.ts';
import type { AlarmCase, Evidence } from './evidence.ts';

/** One invariant's part of the verdict. */
export type Finding = {
  /** 1 to 10, as in docs/reliability.md. */
  number: number;
  title: string;
  /** How many cases were judged: the N of "0 in N". */
  judged: number;
  /** What was counted. */
  unit: string;
  /** Each sentence is a broken promise; it names the alarm, the occurrence and the instants. */
  violations: readonly string[];
  /** What is worth knowing and breaks nothing. */
  counts: Readonly<Record<string, number>>;
};

/** Judges one invariant. */
export type Invariant = (evidence: Evidence) => Finding;

/** An instant in a sentence. */
export function at(epochMs: number): string {
  return Number.isFinite(epochMs) && Math.abs(epochMs) <= 8.64e15 ? formatInstant(epochMs) : String(epochMs);
}

/** An alarm in a sentence: its id, and the key that its owner knows it by. */
export function named({ id, creates }: Pick<AlarmCase, 'id' | 'creates'>): string {
  const key = creates[0]?.operation.key ?? null;
  return key === null ? `alarm ${id}` : `alarm ${id} (${showValue(key)})`;
}
