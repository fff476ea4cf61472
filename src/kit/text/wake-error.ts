/**
 * The error of a wake for people: the message of the envelope instead of the envelope. Stores keep the whole answer.
 */

/** An envelope's message, whole or cut: errors keep the first 300 characters of an answer. */
const ENVELOPE = /\{"ok":false,"error":\{.*?"message":"((?:[^"\\]|\\.)*)/;

/**
 * `the router answered 503: {"ok":false,"error":{"message":"it sleeps"…` becomes `the router answered 503: it sleeps`.
 */
export function plainWakeError(error: string): string {
  const match = ENVELOPE.exec(error);
  if (!match) return error;
  let message: string;
  try {
    message = JSON.parse(`"${match[1]}"`);
  } catch {
    return error;
  }
  return `${error.slice(0, match.index)}${plainWakeError(message)}`;
}
