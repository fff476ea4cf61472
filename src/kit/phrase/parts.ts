/** What a phrase says, part by part, before it is known what the parts mean together. */
import type { HalfDay, Time } from './time-of-day.ts';
import type { Unit } from './vocabulary.ts';

export type Day =
  | { readonly kind: 'offset'; readonly days: number; readonly word: string }
  | { readonly kind: 'weekday'; readonly weekday: number; readonly week?: 'this' | 'next' | 'coming' | 'next week' }
  | { readonly kind: 'date'; readonly year?: number; readonly month: number; readonly day: number }
  /** The last day of a month: of one by its number (1 to 12), or so many months after the present one. */
  | { readonly kind: 'month end'; readonly month?: number; readonly monthsAhead: number };

/** What was found in a phrase, part by part. */
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
