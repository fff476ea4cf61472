/** For programs that answer in plain text: what they write is the answer, and the exit code says whether it is one. */
import type { Reader } from './reading.ts';

export const readPlainText: Reader = ({ stdout }, exit) => {
  const reply = stdout.text.trim();
  if (exit && 'code' in exit && exit.code === 0) return { verdict: 'done', reply, began: true };
  return { verdict: 'none', began: false };
};
