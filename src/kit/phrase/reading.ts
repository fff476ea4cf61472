/** The result of parsing a phrase, and the error. */

/** The meaning of a phrase. */
export type Reading =
  /** At an instant, epoch ms; `zone` is the one in which it was parsed. */
  | { readonly kind: 'instant'; readonly at: number; readonly zone: string }
  /** After a number of seconds. */
  | { readonly kind: 'delay'; readonly seconds: number }
  /** Repeated: five cron fields in `zone`, or `@every …`, which needs none. */
  | { readonly kind: 'series'; readonly cron: string; readonly zone: string };

/** Time and zone in which a phrase is parsed. */
export type PhraseContext = {
  /** Epoch ms. */
  readonly now: number;
  /** The user's IANA zone; a zone at the end of the phrase overrides it. */
  readonly zone: string;
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

  constructor(
    problem: string,
    choices: readonly string[] = [],
    { replaces, isUnknown = false }: { replaces?: RegExp; isUnknown?: boolean } = {},
  ) {
    const quoted = choices.map((choice) => `"${choice}"`);
    super(quoted.length > 0 ? `${problem}; write ${quoted.join(' or ')}` : problem);
    this.name = 'PhraseError';
    this.problem = problem;
    this.choices = choices;
    this.replaces = replaces;
    this.isUnknown = isUnknown;
  }
}
