/** A person who approves at a real executor: a key, enrolled by the operator, and signed answers. */
import assert from 'node:assert/strict';
import { type PendingGate, testApprover } from '../../../src/kit/identity/testing/approver.ts';
import type { GateAnswer } from '../../../src/wire/executor.ts';

export const ADMIN_TOKEN = 'a-token-of-the-operator-of-these-tests';
/** The same person for every user of a test, unless the test makes others. */
export const APPROVER = testApprover();

type Answer = { readonly status: number; readonly data: never; readonly error?: { readonly message: string } };

/** Calls the approver lists of an executor as its operator. */
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

/** The key that an executor signs with: signatures for its approver lists name it. */
export async function executorKeyOf(url: string): Promise<string> {
  // For a user without approvers: every signature of all lists is checked before they are shown.
  const { data } = await asOperator(url, 'GET', '/approvers?user=nobody');
  return (data as { executor: string }).executor;
}

/** Enrols the person of these tests as an approver of a user; harmless when repeated. */
export async function enrolled(url: string, user: string, approver = APPROVER): Promise<void> {
  const made = await asOperator(url, 'POST', '/approvers', approver.enrollment(await executorKeyOf(url), user));
  if (made.status !== 200) assert.match(made.error?.message ?? '', /is already an approver of/);
}

/** A question that does not exist. */
const NOTHING = '0'.repeat(64);

/** A signed answer to the open question of a node; without one, to a question that never existed. */
export async function signedAnswer(
  { url, token }: { readonly url: string; readonly token: string },
  user: string,
  intentId: string,
  nodeId: string,
  changes: Partial<GateAnswer> = {},
): Promise<GateAnswer> {
  await enrolled(url, user);
  const response = await fetch(`${url}/intents/${intentId}/gates`, {
    headers: { authorization: `Bearer ${token}`, 'x-matrix-user': user },
  });
  const { data } = (await response.json()) as { data?: { pending: PendingGate[] } };
  const gate = data?.pending.find(({ node_id }) => node_id === nodeId);
  const imagined = { node_id: nodeId, call: { call_sha256: NOTHING }, displayed_sha256: NOTHING };
  return APPROVER.answer(intentId, gate ?? imagined, changes);
}
