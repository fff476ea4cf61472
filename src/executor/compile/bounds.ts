/** What compiling one task may take. */

/** How often what the model hands in may be wrong. */
export const ROUNDS_MAX = 4;
/** Lookups for one task, those that were refused included. */
export const LOOKUPS_MAX = 8;
/** Requests to the model for one task; each makes progress, is wrong, or looks something up. */
export const REQUESTS_MAX = ROUNDS_MAX + LOOKUPS_MAX;
/** A lookup is given up after this long. */
export const LOOKUP_TIMEOUT_MS = 30_000;
/** All of it together. */
export const COMPILE_TIMEOUT_MS = 10 * 60_000;
/** What the endpoint may report to have read and written for one task. */
export const TOKENS_MAX = 1_000_000;
/** What is kept, shown and believed of the answer to one lookup. */
export const SHOWN_BYTES = 16 * 1024;
/** Of one lookup, in UTF-16 units. */
export const LONGEST_ARGUMENTS = 32 * 1024;
/** Of a question, in characters. */
export const LONGEST_QUESTION = 4000;
