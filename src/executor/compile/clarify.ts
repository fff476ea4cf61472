/** Reading the question that a compiling model asks. A person reads it, so it has to be readable. Pure. */

import { withHiddenShown } from '../../kit/text/hidden-characters.ts';
import { parseForeignJson } from '../../wire/json.ts';
import { LONGEST_QUESTION } from './bounds.ts';

export type ReadQuestion =
  | { readonly question: string; readonly problem?: never }
  | { readonly question?: never; readonly problem: string };

/** @param input the arguments of the call, JSON source text */
export function readQuestion(input: string): ReadQuestion {
  let value: unknown;
  try {
    value = parseForeignJson(input);
  } catch {
    return { problem: 'the arguments must be a JSON object with a question' };
  }
  const question = typeof value === 'object' && value !== null ? (value as { question?: unknown }).question : undefined;
  if (typeof question !== 'string' || question.trim() === '') return { problem: 'question must be a text' };
  if (question.length > LONGEST_QUESTION) {
    return { problem: `question must have at most ${LONGEST_QUESTION} characters (it has ${question.length})` };
  }
  return { question: withHiddenShown(question.toWellFormed()) };
}
