/**
 * The evidence of a conversation for the executor: the values of a plan must come from it. The agent's own text is not
 * evidence. Memories are not, because a model wrote them. Errors of tools are not, because they quote their arguments.
 * Pure.
 */

import type { Logger } from '../../../kit/log/log.ts';
import type { Turn } from '../../../turns/turn.ts';
import { CONTEXT_PIECE_MAX_BYTES, CONTEXT_PIECES_MAX, type ContextPiece } from '../../../wire/executor.ts';
import { utf8Bytes } from '../../../wire/text.ts';
import type { ConversationStore } from '../conversations/store.ts';
import { type JournalledStep, textOfAnswer } from '../loop/journal.ts';
import { ARRIVALS_SHOWN } from '../loop/loop.ts';
import { EARLIER_TURNS } from '../prompt.ts';
import { MEMORY_RECALL } from '../tools/own-functions.ts';
import type { GateNotice } from '../tools/surface.ts';

// The view of conversations that the delegate needs.

export type Conversations = {
  /** Texts of the conversation from which values of a task may come; oldest first. */
  evidence(turn: Turn): ContextPiece[];
  /** Notifies followers of a conversation about a gate that no turn waits for. Never throws. */
  notifyGate(conversationId: string, gate: GateNotice): void;
};

export type ConversationSource = Pick<ConversationStore, 'turnsBefore' | 'arrivedAfter' | 'gate'> & {
  readonly journal: Pick<ConversationStore['journal'], 'steps'>;
};

/** The conversations of a store. */
export function conversationsOf(store: ConversationSource, log: Logger): Conversations {
  return {
    evidence: (turn) =>
      evidenceFor(turn, {
        earlier: store.turnsBefore(turn, EARLIER_TURNS),
        arrived: store.arrivedAfter(turn, ARRIVALS_SHOWN),
        stepsOf: ({ id }) => store.journal.steps(id),
      }),

    notifyGate(conversationId, gate) {
      store.gate({ conversationId }, gate).catch((err: unknown) => log.warn({ err }, 'an event could not be stored'));
    },
  };
}

/** The size limit of all pieces together as JSON. */
const EVIDENCE_MAX_BYTES = 128 * 1024;

export type EvidenceSources = {
  /** Turns of the conversation before this one, oldest first. */
  readonly earlier: readonly Turn[];
  /** Turns that were accepted since, oldest first. */
  readonly arrived: readonly Turn[];
  /** The calls of a turn and their results. */
  readonly stepsOf: (turn: Turn) => readonly JournalledStep[];
};

const BETWEEN_VALUES = /[\s",;{}[\]]/;

/**
 * The beginning of a text that is too long for a piece. It never ends inside a value, because half a value is another
 * value.
 */
function beginningOf(text: string): string {
  if (utf8Bytes(text) <= CONTEXT_PIECE_MAX_BYTES) return text;
  let end = Buffer.from(text).subarray(0, CONTEXT_PIECE_MAX_BYTES).toString('utf8').length - 1;
  while (end > 0 && !BETWEEN_VALUES.test(text[end]!)) end--;
  return text.slice(0, end);
}

function pieces(from: ContextPiece['from'], texts: readonly (string | undefined)[]): ContextPiece[] {
  return texts.flatMap((text) => {
    const whole = beginningOf(text?.toWellFormed() ?? '');
    return whole === '' ? [] : [{ from, text: whole }];
  });
}

/** A message of another agent is a text from outside, like the result of a tool. */
function authorOf({ origin, sentBy }: Turn): ContextPiece['from'] {
  if (sentBy !== undefined) return 'tool';
  return origin === 'chronos' ? 'alarm' : 'person';
}

const messagePieces = (turn: Turn) => pieces(authorOf(turn), [turn.message, turn.payload]);

function resultPieces(steps: readonly JournalledStep[]): ContextPiece[] {
  const results = steps.flatMap(({ calls }) =>
    calls.map(({ call, answer }) =>
      answer === undefined || answer.isError || call.name === MEMORY_RECALL ? undefined : textOfAnswer(answer),
    ),
  );
  return pieces('tool', results);
}

/**
 * The pieces that are submitted with a task, oldest first. If not all fit, the turn's own message stays, and of the
 * others the newest.
 */
export function evidenceFor(turn: Turn, { earlier, arrived, stepsOf }: EvidenceSources): ContextPiece[] {
  const before = earlier.flatMap((each) => [...messagePieces(each), ...resultPieces(stepsOf(each))]);
  const own = messagePieces(turn);
  const since = [...resultPieces(stepsOf(turn)), ...arrived.flatMap(messagePieces)];
  const kept = new Set<ContextPiece>();
  let left = EVIDENCE_MAX_BYTES;
  for (const piece of [...own, ...[...before, ...since].reverse()]) {
    const bytes = utf8Bytes(JSON.stringify(piece));
    if (kept.size === CONTEXT_PIECES_MAX || bytes > left) continue;
    left -= bytes;
    kept.add(piece);
  }
  return [...before, ...own, ...since].filter((piece) => kept.has(piece));
}
