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
