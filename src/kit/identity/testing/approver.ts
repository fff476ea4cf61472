/** Approvers for tests: a key, and its signed requests. */
import {
  type ApproverRequest,
  answerText,
  enrollmentText,
  type RevocationRequest,
  revocationText,
} from '../../../wire/approver.ts';
import type { GateAnswer } from '../../../wire/executor.ts';
import { formatInstant } from '../../../wire/rfc3339.ts';
import { type AgentKey, generateKey } from '../keys.ts';

const MINUTE_MS = 60_000;

/** The members of a gate that an answer refers to, in wire names. */
export type AskedGate = {
  readonly node_id: string;
  readonly call: { readonly call_sha256: string };
  readonly displayed_sha256: string;
};

export type TestApprover = ReturnType<typeof testApprover>;

/** @param now the time by the executor's clock */
export function testApprover(now: () => number = Date.now, key: AgentKey = generateKey()) {
  const approver = key.publicKeyHex;
  const soon = () => formatInstant(now() + 10 * MINUTE_MS);
  return {
    key,
    approver,

    /** A signed answer to a gate; `changes` may contradict the signed statement. */
    answer(intentId: string, gate: AskedGate, changes: Partial<GateAnswer> = {}): GateAnswer {
      const { node_id, call, displayed_sha256 } = gate;
      const statement = {
        ...{ approved: true, call_sha256: call.call_sha256, displayed_sha256, expires_at: soon() },
        ...changes,
      };
      const signature = key.sign(answerText({ ...statement, intent_id: intentId, node_id }));
      return { ...statement, approver, signature, ...changes };
    },

    /** The request that enrols this key, with the voucher of another approver if there is one. */
    enrollment(executor: string, user: string, by?: { readonly key: AgentKey }): ApproverRequest {
      const statement = { approver, name: `${user}'s key`, user, executor, expires_at: soon() };
      const text = enrollmentText(statement);
      const request = { ...statement, signature: key.sign(text) };
      if (!by) return request;
      return { ...request, voucher: { approver: by.key.publicKeyHex, signature: by.key.sign(text) } };
    },

    /** The request that revokes another key, signed by this one. */
    revocation(executor: string, user: string, other: string): RevocationRequest {
      const statement = { approver: other, user, executor, expires_at: soon() };
      return { ...statement, voucher: { approver, signature: key.sign(revocationText(statement)) } };
    },
  };
}
