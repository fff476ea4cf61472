import type { StoryRule } from './story.ts';

/** Thrown while a chain is read and caught there: what cannot have happened. */
export class Contradiction extends Error {
  readonly rule: StoryRule;

  constructor(rule: StoryRule, message: string) {
    super(message);
    this.rule = rule;
  }
}
