/** A person who approves at a real executor: their key, enrolled by its operator, and answers that it signs. */
import assert from 'node:assert/strict';
import { type AskedGate, testApprover } from '../../../src/kit/identity/testing/approver.ts';
import type { GateAnswer } from '../../../src/wire/executor.ts';

export const ADMIN_TOKEN = 'a-token-of-the-operator-of-these-tests';
/** The same person for every user of a test, unless it makes others. */
export const APPROVER = testApprover();

type Answer = { readonly status: number; readonly data: never; readonly error?: { readonly message: string } };

/** Speaks to the rosters of an executor as its operator. */
export async function asOperator(
  url: string,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: unknown,
  token: string | undefined = ADMIN_TOKEN,
): Promise<Answer> {
  const response = await fetch(url + path, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { ...((await response.json()) as Answer), status: response.status };
}

/** The key that an executor signs with: what is signed for its rosters names it. */
export async function executorKeyOf(url: string): Promise<string> {
  // Of one user who has none: all rosters are checked signature by signature before they are shown.
  const { data } = await asOperator(url, 'GET', '/approvers?user=nobody');
  return (data as { executor: string }).executor;
}

/** Lets the person of these tests answer for a user; harmless when repeated. */
export async function enrolled(url: string, user: string, approver = APPROVER): Promise<void> {
  const made = await asOperator(url, 'POST', '/approvers', approver.enrollment(await executorKeyOf(url), user));
  if (made.status !== 200) assert.match(made.error?.message ?? '', /is already an approver of/);
}

/** What nobody has asked. */
const NOTHING = '0'.repeat(64);

/** A signed answer to what a node asks now; where it asks nothing, to a question that there never was. */
export async function signedAnswer(
  { url, token }: { readonly url: string; readonly token: string },
  user: string,
  intentId: string,
  nodeId: string,
  said: Partial<GateAnswer> = {},
): Promise<GateAnswer> {
  await enrolled(url, user);
  const response = await fetch(`${url}/intents/${intentId}/gates`, {
    headers: { authorization: `Bearer ${token}`, 'x-matrix-user': user },
  });
  const { data } = (await response.json()) as { data?: { pending: AskedGate[] } };
  const gate = data?.pending.find(({ node_id }) => node_id === nodeId);
  const imagined = { node_id: nodeId, call: { call_sha256: NOTHING }, displayed_sha256: NOTHING };
  return APPROVER.answer(intentId, gate ?? imagined, said);
}
