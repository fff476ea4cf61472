/** Why a phrase is not read; the message names the words and what would be right. */
export class PhraseError extends Error {
  /** Phrases that are read, one for each thing that may have been meant; empty where there are none. */
  readonly choices: readonly string[];

  constructor(problem: string, choices: readonly string[] = []) {
    const quoted = choices.map((choice) => `"${choice}"`);
    super(quoted.length > 0 ? `${problem}; write ${quoted.join(' or ')}` : problem);
    this.name = 'PhraseError';
    this.choices = choices;
  }
}
