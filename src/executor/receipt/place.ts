/** Where in a chain an envelope may stand, by its kind alone: how a chain begins, and what may come after an end. Pure, but for the state. */
import type { ReceiptKind } from '../../wire/intent-receipt.ts';
import { Contradiction } from './contradiction.ts';
import type { Ending } from './story.ts';

/** What still may come after an end. */
const AFTER_END: ReadonlySet<ReceiptKind> = new Set(['gate.refused', 'journal.broken']);
const AFTER_UNKNOWN: ReadonlySet<ReceiptKind> = new Set(['call.reconciled', 'call.read_back']);
const ENDINGS: ReadonlySet<ReceiptKind> = new Set([
  'intent.completed',
  'intent.failed',
  'intent.cancelled',
  'intent.unknown',
] satisfies Ending['kind'][]);
/** What may come between a broken journal and the end that follows from it. */
const AFTER_BREAK: ReadonlySet<ReceiptKind> = new Set([
  'gate.refused',
  'journal.broken',
  'intent.failed',
  'intent.unknown',
]);

/** The kinds of a chain's envelopes, one after the other. */
export class Place {
  /** A broken journal waits for the end that follows from it. */
  #mustEnd = false;
  /** Something was reconciled since the last end. */
  #reconciled = false;
  #ending: ReceiptKind | undefined;

  /** There is an end, and no broken journal takes it back. */
  get hasEnded(): boolean {
    return this.#ending !== undefined && !this.#mustEnd;
  }

  /** Throws where an envelope of this kind and number cannot stand. */
  hold(kind: ReceiptKind, seq: number): void {
    if (seq === 1 && kind !== 'intent.accepted' && kind !== 'journal.broken')
      throw new Contradiction('begin', `a receipt begins with intent.accepted, this one with ${kind}`);
    if (seq > 1 && kind === 'intent.accepted')
      throw new Contradiction('begin', 'intent.accepted stands here a second time, or not at the beginning');
    if (this.#mustEnd) {
      if (AFTER_BREAK.has(kind)) return;
      throw new Contradiction('journal', `after journal.broken the intent ends; ${kind} cannot follow`);
    }
    const ending = this.#ending;
    if (ending === undefined || AFTER_END.has(kind)) return;
    if (ending === 'intent.unknown' && (AFTER_UNKNOWN.has(kind) || (ENDINGS.has(kind) && this.#reconciled))) return;
    throw new Contradiction('end', `the intent had come to its end (${ending}); ${kind} cannot follow`);
  }

  /** Takes in what has been found to hold. */
  take(kind: ReceiptKind): void {
    if (kind === 'journal.broken') this.#mustEnd = true;
    if (kind === 'call.reconciled') this.#reconciled = true;
    if (!ENDINGS.has(kind)) return;
    this.#ending = kind;
    this.#mustEnd = false;
    this.#reconciled = false;
  }
}
