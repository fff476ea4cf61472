/** The two ways in which a walk ends before the end of its plan. Neither leaves this folder. */

/** Nothing more is to be done here: the intent is over, called off, or left to the next process. */
export class Halted extends Error {
  constructor() {
    super('this walk goes no further');
  }
}

/** The intent cannot go on; its end is to be put down. */
export class Stopped extends Error {
  /** For programs: `denied`, `tool_failed` and so on. */
  readonly code: string;

  /** @param reason a sentence for people */
  constructor(code: string, reason: string) {
    super(reason);
    this.code = code;
  }
}
