/** The parts of a phrase, before they are combined. */
import type { HalfDay, Time } from './time-of-day.ts';
import type { Unit } from './vocabulary.ts';

export type Day =
  | { readonly kind: 'offset'; readonly days: number; readonly word: string }
  | { readonly kind: 'weekday'; readonly weekday: number; readonly week?: 'this' | 'next' | 'coming' | 'next week' }
  | { readonly kind: 'date'; readonly year?: number; readonly month: number; readonly day: number }
  /** The last day of a month: by the month's number (1 to 12), or a number of months after the current one. */
  | { readonly kind: 'month end'; readonly month?: number; readonly monthsAhead: number };

/** The parts found in a phrase. */
export class Parts {
  day: Day | undefined;
  readonly times: Time[] = [];
  halfDay: HalfDay | undefined;
  /** `in 2 hours and 5 minutes`. */
  ahead: { readonly amount: number; readonly unit: Unit }[] | undefined;
  repeat: { readonly amount: number; readonly unit: Unit; readonly word: string } | undefined;
  readonly weekdays = new Set<number>();
  readonly monthDays: number[] = [];
  /** Whole hours, both included. */
  hours: { readonly from: number; readonly to: number } | undefined;
  /** Of `every hour at :15`. */
  minutePast: number | undefined;
}
