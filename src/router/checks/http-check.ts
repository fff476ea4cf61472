/** A check of an address: its status, its ETag or body, or a value within it. Only public addresses are reached. */
import type { WebAccess, WebAnswer } from '../../kit/http/web-access.ts';
import { type Check, OUTPUT_MAX_BYTES } from '../../wire/conditions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseUntrustedJson } from '../../wire/json.ts';
import { isScalar, normalText, textAt } from '../../wire/json-pointer.ts';
import { comparedWith, digestOf, type Finding, NotAllowed, outputOf, storedValue, Undecided } from './finding.ts';

type HttpCheck = NonNullable<Check['http']>;

const REDIRECTS_MAX = 3;
/** The shown part of a value. */
const SHOWN_BYTES = 4096;

/** @throws Undecided when there is no answer or an unexpected one, NotAllowed for an address that is not reached */
export async function lookAtAddress(
  web: WebAccess,
  check: HttpCheck,
  last: string | undefined,
  signal: AbortSignal,
): Promise<Finding> {
  const { url, method, headers, status: expected, etag, pointer } = check;
  let answer: WebAnswer;
  try {
    const more = { redirects: REDIRECTS_MAX, maxBytes: OUTPUT_MAX_BYTES, signal };
    answer = await web.get({ url, ...(method && { method }), ...(headers && { headers }), ...more });
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    throw thrown.code === 'unavailable' ? new Undecided(thrown.message) : new NotAllowed(thrown.message);
  }
  const { status } = answer;
  const isExpected = expected === undefined ? status >= 200 && status <= 299 : status === expected;
  if (!isExpected && (expected !== undefined || (etag === undefined && pointer === undefined)))
    return { yes: false, reason: `the answer has status ${status}, not ${expected ?? '200 to 299'}` };
  if (!isExpected) throw new Undecided(`the answer has status ${status}, so its value is not known`);
  if (etag !== undefined) return comparedWith(last, versionOf(answer), answer.etag ? 'the ETag' : 'the body');
  if (pointer !== undefined) return judgeValue(check, pointer, answer, last);
  return { yes: true, reason: `the answer has status ${status}` };
}

function versionOf({ etag, body, truncated }: WebAnswer): string {
  if (etag) return storedValue(etag);
  if (truncated)
    throw new Undecided(`the answer has no ETag, and its body is longer than ${OUTPUT_MAX_BYTES} bytes, or incomplete`);
  return digestOf(body);
}

function judgeValue(
  { equals }: HttpCheck,
  pointer: string,
  { body, truncated }: WebAnswer,
  last: string | undefined,
): Finding {
  if (truncated) throw new Undecided(`the body is longer than ${OUTPUT_MAX_BYTES} bytes, or incomplete`);
  const text = body.toString('utf8');
  try {
    parseUntrustedJson(text);
  } catch {
    throw new Undecided('the body is not JSON');
  }
  const found = textAt(text, pointer);
  const where = pointer === '' ? 'the body' : `the value at ${pointer}`;
  const shown = found === undefined ? undefined : outputOf(found, SHOWN_BYTES);
  const output = shown === undefined ? {} : { output: shown };
  if (equals !== undefined) {
    const yes = found !== undefined && isScalar(found, equals);
    return { yes, reason: `${where} ${yes ? 'is' : 'is not'} ${JSON.stringify(equals)}`, ...output };
  }
  // A value that is missing differs from any that JSON has.
  return { ...comparedWith(last, found === undefined ? 'missing' : storedValue(normalText(found)), where), ...output };
}
