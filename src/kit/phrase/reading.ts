/** The result of parsing a phrase, and the error. */

/** A repetition as five cron fields or `@every …`, or as content lines of RFC 5545 when cron cannot express it. */
export type Repetition =
  | { readonly cron: string; readonly rrule?: undefined }
  | { readonly rrule: string; readonly cron?: undefined };

/** The meaning of a phrase. `assumed` says what the phrase did not: `at 09:00, because no time was given`. */
export type Reading =
  /** At an instant, epoch ms; `zone` is the one in which it was parsed. */
  | { readonly kind: 'instant'; readonly at: number; readonly zone: string; readonly assumed?: string }
  /** After a number of seconds. */
  | { readonly kind: 'delay'; readonly seconds: number }
  /** Repeated, by the clock of `zone`; `@every …` needs none. */
  | ({ readonly kind: 'series'; readonly zone: string; readonly assumed?: string } & Repetition);

/** Times of day that phrases leave to the user, in minutes since midnight. */
export type PhraseHours = {
  /** Of a day without a time, such as `monday`. */
  readonly usual: number;
  /** Of `tonight`. */
  readonly evening: number;
  /** Of `end of day`, from Sunday to Saturday. */
  readonly endOfDay: readonly number[];
};

export const DEFAULT_HOURS: PhraseHours = {
  usual: 9 * 60,
  evening: 20 * 60,
  endOfDay: Array<number>(7).fill(18 * 60),
};

/** Time and zone in which a phrase is parsed. */
export type PhraseContext = {
  /** Epoch ms. */
  readonly now: number;
  /** The user's IANA zone; a zone at the end of the phrase overrides it. */
  readonly zone: string;
  /** By default, {@link DEFAULT_HOURS}. */
  readonly hours?: PhraseHours | undefined;
};

/** Why a phrase is refused; the message names the part and a remedy. */
export class PhraseError extends Error {
  readonly problem: string;
  /** Valid phrases, one for each possible meaning; empty if there are none. */
  readonly choices: readonly string[];
  /** The part of the phrase that each choice replaces; the whole phrase if undefined. */
  readonly replaces: RegExp | undefined;
  /** Whether a word is not in the grammar. */
  readonly isUnknown: boolean;
  /** Whether the phrase is a local time, and its zone is not known. */
  readonly needsZone: boolean;

  constructor(
    problem: string,
    choices: readonly string[] = [],
    {
      replaces,
      isUnknown = false,
      needsZone = false,
    }: { replaces?: RegExp | undefined; isUnknown?: boolean; needsZone?: boolean } = {},
  ) {
    const quoted = choices.map((choice) => `"${choice}"`);
    super(quoted.length > 0 ? `${problem}; write ${quoted.join(' or ')}` : problem);
    this.name = 'PhraseError';
    this.problem = problem;
    this.choices = choices;
    this.replaces = replaces;
    this.isUnknown = isUnknown;
    this.needsZone = needsZone;
  }
}
