/**
 * The desk where the executor's questions meet their answers. Each gate gets one answer, however many people see it:
 * the first that comes is passed on, the others are told so. Answers are signed by a person's own key; the desk carries
 * them unchanged and can make none.
 */
import type { ExecutorClient, Told, WaitingGate } from '../../executor/client.ts';
import { NoAnswer } from '../../kit/http/caller.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { GateAnswer } from '../../wire/executor.ts';
import type { IntentView } from '../../wire/intent-view.ts';
import { RawJson, sliceAt } from '../../wire/json.ts';
import type { GateNotice } from '../tools/surface.ts';

type GateState = 'asked' | 'approved' | 'denied' | 'lapsed';

/** Where a gate is shown. */
export type Place = {
  /** `undefined` when nobody knows. */
  readonly conversationId: string | undefined;
  /** Tells those who follow; never throws. */
  readonly tell: (gate: GateNotice) => void;
};

/** An open gate and where it is shown. */
export type ShownGate = GateNotice & { readonly conversation_id: string };

type Gate = {
  readonly intentId: string;
  readonly pending: Told<WaitingGate>;
  readonly place: Place;
  state: GateState;
  /** An answer is on its way to the executor. */
  answering: boolean;
};

/** A longer gate is not shown to anybody. In UTF-16 units. */
const LONGEST_GATE = 256 * 1024;

/** Whether a person can be shown the whole of it; nobody should approve what they cannot see. */
export const isShowable = ({ text }: Told<WaitingGate>): boolean => text.text.length <= LONGEST_GATE;

/** Gates that have been decided are remembered for so many others, to say so to whoever answers late. */
const REMEMBERED = 1000;

/** Of a question that is too long to be asked, so much is told. */
const QUESTION_BEGINNING = 1000;

const keyOf = (intentId: string, nodeId: string) => `${intentId} ${nodeId}`;

const conflict = (message: string, retryable = false) => new ReveilleError('conflict', message, { retryable });

const DECIDED: Record<Exclude<GateState, 'asked'>, string> = {
  approved: 'has been approved already',
  denied: 'has been denied already',
  lapsed: 'does not wait for an answer any more',
};

function askedNotice(intentId: string, pending: Told<WaitingGate>): GateNotice {
  const { node_id, question, options = [], displayed_sha256, expires_at } = pending.value;
  const asked = { intent_id: intentId, node_id, state: 'asked' as const };
  if (!isShowable(pending)) return { ...asked, question: question.slice(0, QUESTION_BEGINNING) };
  // Tool, arguments and digest as the executor wrote them, digit for digit.
  const call = new RawJson(sliceAt(pending.text.text, ['call'])!);
  return { ...asked, question, options, call, displayed_sha256, expires_at };
}

/** Whether two are the same asking of the same question; asked anew it has another digest. */
function isSame({ value: one }: Told<WaitingGate>, { value: other }: Told<WaitingGate>): boolean {
  return one.node_id === other.node_id && one.displayed_sha256 === other.displayed_sha256;
}

export function createGateDesk(client: Pick<ExecutorClient, 'gates' | 'answer' | 'view'>) {
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
    const { intentId, pending, place } = gate;
    place.tell({
      intent_id: intentId,
      node_id: pending.value.node_id,
      state,
      ...(reason === undefined ? {} : { reason }),
      ...(by === undefined ? {} : { by }),
    });
  }

  /** Who was first, by the executor's record; nobody where it does not say. */
  async function answerTo({ intentId, pending }: Gate): Promise<IntentView['nodes'][number]['answered']> {
    try {
      const { nodes } = (await client.view(intentId)).value;
      return nodes.find(({ node_id }) => node_id === pending.value.node_id)?.answered;
    } catch {
      return undefined;
    }
  }

  /** Whether the gate still waits at the executor; when nobody can say, it does. */
  async function stillWaits({ intentId, pending }: Gate): Promise<boolean> {
    try {
      const waiting = await client.gates(intentId);
      return waiting.some((one) => isSame(one, pending));
    } catch {
      return true;
    }
  }

  /** Passes an answer on. When it did not get there the gate is open again. */
  async function pass(gate: Gate, answer: GateAnswer): Promise<void> {
    const { intentId, pending } = gate;
    gate.answering = true;
    try {
      await client.answer(intentId, pending.value.node_id, answer);
      const by = (await answerTo(gate))?.name;
      decide(gate, answer.approved ? 'approved' : 'denied', { by });
    } catch (thrown) {
      if (thrown instanceof ReveilleError && (thrown.code === 'conflict' || thrown.code === 'not_found')) {
        // Somebody with an old answer must not close a question that waits.
        if (await stillWaits(gate)) throw conflict(`the executor did not take the answer: ${thrown.message}`);
        decide(gate, 'lapsed', { reason: `the executor did not take the answer: ${thrown.message}` });
        throw conflict(`the executor did not take the answer: ${thrown.message}`);
      }
      if (!(thrown instanceof NoAnswer)) throw thrown;
      if (thrown.mayHaveArrived && !(await stillWaits(gate))) {
        // Nobody else answers through this desk meanwhile: what the executor took was most likely this answer.
        decide(gate, answer.approved ? 'approved' : 'denied', {
          reason: 'its confirmation got lost; the gate waits no more',
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

  /** Finds what an answer is for that this process has not asked: it was asked before a restart. */
  async function adopt(intentId: string, nodeId: string): Promise<Gate> {
    const waiting = await client.gates(intentId);
    const pending = waiting.find(({ value }) => value.node_id === nodeId);
    if (!pending) throw new ReveilleError('not_found', `the intent ${intentId} has no gate ${nodeId} that waits`);
    const known = gates.get(keyOf(intentId, nodeId));
    if (known) return known;
    const place = { conversationId: undefined, tell: () => {} };
    const gate: Gate = { intentId, pending, place, state: 'asked', answering: false };
    gates.set(keyOf(intentId, nodeId), gate);
    forget();
    return gate;
  }

  return {
    /**
     * Takes a gate that waits and tells of it, unless this desk has it already.
     *
     * @returns whether it is open: nobody has answered it, nor is anybody about to
     */
    open(intentId: string, pending: Told<WaitingGate>, place: Place): boolean {
      const key = keyOf(intentId, pending.value.node_id);
      const known = gates.get(key);
      if (known && isSame(known.pending, pending)) {
        // An answer that was passed on may not have been looked at yet.
        return known.state === 'asked' && !known.answering;
      }
      if (known?.state === 'asked')
        decide(known, 'lapsed', { reason: 'another question is asked now; an answer to this one does not count' });
      gates.delete(key);
      gates.set(key, { intentId, pending, place, state: 'asked', answering: false });
      forget();
      place.tell(askedNotice(intentId, pending));
      return true;
    },

    /**
     * Settles the open gates of an intent that do not wait any more: somebody answered at the executor, or the intent
     * is over.
     */
    async lapse(intentId: string, waiting: readonly Told<WaitingGate>[], reason: string): Promise<void> {
      const nodes = new Set(waiting.map(({ value }) => value.node_id));
      for (const gate of [...gates.values()]) {
        const isOpen = () => gate.state === 'asked' && !gate.answering;
        if (gate.intentId !== intentId || !isOpen() || nodes.has(gate.pending.value.node_id)) continue;
        const answered = await answerTo(gate);
        if (!isOpen()) continue;
        if (answered) decide(gate, answered.approved ? 'approved' : 'denied', { reason, by: answered.name });
        else decide(gate, 'lapsed', { reason });
      }
    },

    /** What an intent's open gates ask. */
    openQuestions: (intentId: string): string[] =>
      [...gates.values()]
        .filter((gate) => gate.intentId === intentId && gate.state === 'asked')
        .map(({ pending }) => pending.value.question),

    /** The open gates that are shown in a conversation, or in any; as they are told. */
    shown(conversationId?: string): ShownGate[] {
      return [...gates.values()].flatMap(({ intentId, pending, place, state }) => {
        const where = place.conversationId;
        if (state !== 'asked' || where === undefined) return [];
        if (conversationId !== undefined && where !== conversationId) return [];
        return [{ ...askedNotice(intentId, pending), conversation_id: where }];
      });
    },

    /**
     * A person's answer, as they signed it.
     *
     * @throws ReveilleError `conflict` when the gate has its answer (retryable while another one is on its way), or
     *   when it is about another call or question than the one answered; `forbidden` when the executor does not take
     *   the signature, `not_found` when there is no such gate, `unavailable` when the executor cannot be reached: the
     *   gate is then open still
     */
    async answer(intentId: string, nodeId: string, given: GateAnswer): Promise<void> {
      const gate = gates.get(keyOf(intentId, nodeId)) ?? (await adopt(intentId, nodeId));
      if (gate.state !== 'asked') {
        const name = (await answerTo(gate))?.name;
        throw conflict(`the gate ${nodeId} ${DECIDED[gate.state]}${name === undefined ? '' : ` by ${oneLine(name)}`}`);
      }
      if (gate.answering) throw conflict(`the gate ${nodeId} is being answered by somebody else right now`, true);
      const { call, displayed_sha256 } = gate.pending.value;
      if (given.call_sha256 !== call.call_sha256 || given.displayed_sha256 !== displayed_sha256) {
        throw conflict(`the gate ${nodeId} asks another question now; look at its newest gate event`);
      }
      await pass(gate, given);
    },
  };
}
export type GateDesk = ReturnType<typeof createGateDesk>;
