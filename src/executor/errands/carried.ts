/** What became of one attempt at an errand. */
export type Carried =
  | { readonly result: 'done' }
  /** It did not work, and may later. `slow`: only after somebody has put something right. */
  | { readonly result: 'later'; readonly why: string; readonly slow?: boolean }
  /** It will never work, or is not wanted any more. */
  | { readonly result: 'drop'; readonly why: string };

export const DONE: Carried = { result: 'done' };
