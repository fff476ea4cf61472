/**
 * The gate registry connects the executor's gates with their answers. Each gate gets one answer, from any number of
 * approvers: the first is passed on, later ones are refused with a conflict. An approver's own key signs the answer;
 * the registry passes it on unchanged and cannot create one.
 */
import type { ExecutorClient, Reply, WaitingGate } from '../../../executor/client.ts';
import { NoAnswer } from '../../../kit/http/caller.ts';
import { oneLine } from '../../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import type { GateAnswer } from '../../../wire/executor.ts';
import type { IntentView } from '../../../wire/intent-view.ts';
import { RawJson, sliceAt } from '../../../wire/json.ts';
import type { GateNotice } from '../tools/surface.ts';

type GateState = 'asked' | 'approved' | 'denied' | 'lapsed';

/** Where a gate is shown. */
export type GateAudience = {
  /** `undefined` when unknown. */
  readonly conversationId: string | undefined;
  /** Notifies followers; never throws. */
  readonly notify: (gate: GateNotice) => void;
};

/** An open gate and where it is shown. */
export type ShownGate = GateNotice & { readonly conversation_id: string };

type Gate = {
  readonly intentId: string;
  readonly pending: Reply<WaitingGate>;
  readonly audience: GateAudience;
  state: GateState;
  /** An answer is being sent to the executor. */
  answering: boolean;
};

/** A longer gate is not shown. In UTF-16 units. */
const LONGEST_GATE = 256 * 1024;

/** Whether the whole gate can be shown; a person must not approve invisible content. */
export const isShowable = ({ text }: Reply<WaitingGate>): boolean => text.text.length <= LONGEST_GATE;

/** How many decided gates are remembered, for a clear answer to late approvers. */
const REMEMBERED = 1000;

/** How much of a question is shown that is too long. */
const QUESTION_BEGINNING = 1000;

const gateKey = (intentId: string, nodeId: string) => `${intentId} ${nodeId}`;

const conflict = (message: string, retryable = false) => new ReveilleError('conflict', message, { retryable });

const DECIDED: Record<Exclude<GateState, 'asked'>, string> = {
  approved: 'has already been approved',
  denied: 'has already been denied',
  lapsed: 'is no longer waiting for an answer',
};

function gateNotice(intentId: string, pending: Reply<WaitingGate>): GateNotice {
  const { node_id, question, options = [], displayed_sha256, expires_at } = pending.value;
  const base = { intent_id: intentId, node_id, state: 'asked' as const };
  if (!isShowable(pending)) return { ...base, question: question.slice(0, QUESTION_BEGINNING) };
  // Tool, arguments and digest as the executor wrote them, digit for digit.
  const call = new RawJson(sliceAt(pending.text.text, ['call'])!);
  return { ...base, question, options, call, displayed_sha256, expires_at };
}

/** Whether both are the same instance of the same question; a repeated question has another digest. */
function isSame({ value: one }: Reply<WaitingGate>, { value: other }: Reply<WaitingGate>): boolean {
  return one.node_id === other.node_id && one.displayed_sha256 === other.displayed_sha256;
}

export function createGateRegistry(client: Pick<ExecutorClient, 'gates' | 'answer' | 'view'>) {
  const gates = new Map<string, Gate>();

  function forget(): void {
    for (const [key, gate] of gates) {
      if (gates.size <= REMEMBERED) return;
      if (gate.state !== 'asked') gates.delete(key);
    }
  }

  type Decision = { readonly reason?: string | undefined; readonly by?: string | undefined };

  function decide(gate: Gate, state: Exclude<GateState, 'asked'>, { reason, by }: Decision = {}): void {
    gate.state = state;
    const { intentId, pending, audience } = gate;
    audience.notify({
      intent_id: intentId,
      node_id: pending.value.node_id,
      state,
      ...(reason === undefined ? {} : { reason }),
      ...(by === undefined ? {} : { by }),
    });
  }

  /** The first approver in the executor's record; absent where the record has none. */
  async function recordedAnswer({ intentId, pending }: Gate): Promise<IntentView['nodes'][number]['answered']> {
    try {
      const { nodes } = (await client.view(intentId)).value;
      return nodes.find(({ node_id }) => node_id === pending.value.node_id)?.answered;
    } catch {
      return undefined;
    }
  }

  /** Whether the gate still waits at the executor; true when that cannot be determined. */
  async function stillWaits({ intentId, pending }: Gate): Promise<boolean> {
    try {
      const waiting = await client.gates(intentId);
      return waiting.some((one) => isSame(one, pending));
    } catch {
      return true;
    }
  }

  /** Passes an answer on. If it was not delivered, the gate is open again. */
  async function pass(gate: Gate, answer: GateAnswer): Promise<void> {
    const { intentId, pending } = gate;
    gate.answering = true;
    try {
      await client.answer(intentId, pending.value.node_id, answer);
      const by = (await recordedAnswer(gate))?.name;
      decide(gate, answer.approved ? 'approved' : 'denied', { by });
    } catch (thrown) {
      if (thrown instanceof ReveilleError && (thrown.code === 'conflict' || thrown.code === 'not_found')) {
        // An outdated answer must not close a waiting gate.
        if (await stillWaits(gate)) throw conflict(`the executor did not accept the answer: ${thrown.message}`);
        decide(gate, 'lapsed', { reason: `the executor did not accept the answer: ${thrown.message}` });
        throw conflict(`the executor did not accept the answer: ${thrown.message}`);
      }
      if (!(thrown instanceof NoAnswer)) throw thrown;
      if (thrown.mayHaveArrived && !(await stillWaits(gate))) {
        // No other answer passes through this registry meanwhile, so the executor most likely accepted this one.
        decide(gate, answer.approved ? 'approved' : 'denied', {
          reason: 'its confirmation was lost; the gate is no longer waiting',
        });
        return;
      }
      throw new ReveilleError('unavailable', `${thrown.message}; the gate is still open, answer it again`, {
        cause: thrown,
      });
    } finally {
      gate.answering = false;
    }
  }

  /** Finds the gate of an answer that this process has not shown: it was shown before a restart. */
  async function adopt(intentId: string, nodeId: string): Promise<Gate> {
    const waiting = await client.gates(intentId);
    const pending = waiting.find(({ value }) => value.node_id === nodeId);
    if (!pending) throw new ReveilleError('not_found', `the intent ${intentId} has no waiting gate ${nodeId}`);
    const known = gates.get(gateKey(intentId, nodeId));
    if (known) return known;
    const audience = { conversationId: undefined, notify: () => {} };
    const gate: Gate = { intentId, pending, audience, state: 'asked', answering: false };
    gates.set(gateKey(intentId, nodeId), gate);
    forget();
    return gate;
  }

  return {
    /**
     * Adds a waiting gate and notifies followers, unless the registry has it already.
     *
     * @returns whether it is open: it has no answer, and none is being sent
     */
    open(intentId: string, pending: Reply<WaitingGate>, audience: GateAudience): boolean {
      const key = gateKey(intentId, pending.value.node_id);
      const known = gates.get(key);
      if (known && isSame(known.pending, pending)) {
        // The executor may not have processed a sent answer yet.
        return known.state === 'asked' && !known.answering;
      }
      if (known?.state === 'asked')
        decide(known, 'lapsed', { reason: 'the question has changed; an answer to this one is not valid' });
      gates.delete(key);
      gates.set(key, { intentId, pending, audience, state: 'asked', answering: false });
      forget();
      audience.notify(gateNotice(intentId, pending));
      return true;
    },

    /**
     * Settles the open gates of an intent that no longer wait: they were answered at the executor, or the intent has
     * ended.
     */
    async lapse(intentId: string, waiting: readonly Reply<WaitingGate>[], reason: string): Promise<void> {
      const nodes = new Set(waiting.map(({ value }) => value.node_id));
      for (const gate of [...gates.values()]) {
        const isOpen = () => gate.state === 'asked' && !gate.answering;
        if (gate.intentId !== intentId || !isOpen() || nodes.has(gate.pending.value.node_id)) continue;
        const answered = await recordedAnswer(gate);
        if (!isOpen()) continue;
        if (answered) decide(gate, answered.approved ? 'approved' : 'denied', { reason, by: answered.name });
        else decide(gate, 'lapsed', { reason });
      }
    },

    /** The questions of an intent's open gates. */
    openQuestions: (intentId: string): string[] =>
      [...gates.values()]
        .filter((gate) => gate.intentId === intentId && gate.state === 'asked')
        .map(({ pending }) => pending.value.question),

    /** The open gates of a conversation, or of all, as events. */
    shown(conversationId?: string): ShownGate[] {
      return [...gates.values()].flatMap(({ intentId, pending, audience, state }) => {
        const conversation = audience.conversationId;
        if (state !== 'asked' || conversation === undefined) return [];
        if (conversationId !== undefined && conversation !== conversationId) return [];
        return [{ ...gateNotice(intentId, pending), conversation_id: conversation }];
      });
    },

    /**
     * A person's signed answer.
     *
     * @throws ReveilleError `conflict`: the gate has an answer (retryable while another one is being sent), or the answer
     *   is for another call or question. `forbidden`: the executor rejects the signature. `not_found`: there is no such
     *   gate. `unavailable`: the executor cannot be reached, and the gate stays open.
     */
    async answer(intentId: string, nodeId: string, gateAnswer: GateAnswer): Promise<void> {
      const gate = gates.get(gateKey(intentId, nodeId)) ?? (await adopt(intentId, nodeId));
      if (gate.state !== 'asked') {
        const name = (await recordedAnswer(gate))?.name;
        throw conflict(`the gate ${nodeId} ${DECIDED[gate.state]}${name === undefined ? '' : ` by ${oneLine(name)}`}`);
      }
      if (gate.answering) throw conflict(`another answer for the gate ${nodeId} is being sent`, true);
      const { call, displayed_sha256 } = gate.pending.value;
      if (gateAnswer.call_sha256 !== call.call_sha256 || gateAnswer.displayed_sha256 !== displayed_sha256) {
        throw conflict(`the gate ${nodeId} has a new question; see its newest gate event`);
      }
      await pass(gate, gateAnswer);
    },
  };
}
export type GateRegistry = ReturnType<typeof createGateRegistry>;
