/** What a phrase is read as, and why it is not. */

/** What a phrase says about when something is to happen. */
export type Reading =
  /** At an instant, epoch ms; `zone` is the one in which it was read. */
  | { readonly kind: 'instant'; readonly at: number; readonly zone: string }
  /** After so many seconds. */
  | { readonly kind: 'delay'; readonly seconds: number }
  /** Again and again: five cron fields read in `zone`, or `@every …`, which needs none. */
  | { readonly kind: 'series'; readonly cron: string; readonly zone: string };

/** Where and when a phrase is read. */
export type PhraseContext = {
  /** Epoch ms. */
  readonly now: number;
  /** The IANA zone of whoever types; a zone at the end of the phrase counts instead. */
  readonly zone: string;
};

/** Why a phrase is not read; the message names the words and what would be right. */
export class PhraseError extends Error {
  readonly problem: string;
  /** Phrases that are read, one for each thing that may have been meant; empty where there are none. */
  readonly choices: readonly string[];
  /** The words of the phrase that each choice stands in for; the whole phrase where none are named. */
  readonly replaces: RegExp | undefined;
  /** Some word is none of the grammar's. */
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
