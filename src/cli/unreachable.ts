/** Why `fetch` got no answer, in a word. */

/** The system's code, such as `ECONNREFUSED`, or else the innermost message. */
export function reasonOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown;
  if (cause instanceof Error && 'code' in cause && typeof cause.code === 'string') return cause.code;
  return cause instanceof Error ? cause.message : String(cause);
}
