/**
 * Follows the turn of a task at the user's agent: its state, its reply while it is written, and its waiting approvals.
 * A stream is open while the turn runs.
 */
import { lastTurns, type NeoClient } from '../agents/neo/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import { isObject } from '../wire/json.ts';
import type { TurnView } from '../wire/turn.ts';

/** The methods of the agent's client that tasks use. */
export type AgentClient = Pick<NeoClient, 'chat' | 'conversation' | 'turn' | 'cancelTurn' | 'events'>;

/** One change of a turn. */
export type TurnChange =
  /** The turn runs. `waiting`: the intents that wait for an approval now. */
  | { readonly kind: 'running'; readonly waiting: readonly string[] }
  /** `appended`: the new end of `text`; absent if the text was replaced. */
  | { readonly kind: 'reply'; readonly text: string; readonly appended?: string }
  | { readonly kind: 'ended'; readonly turn: TurnView; readonly waiting: readonly string[] };

const ENDED: ReadonlySet<string> = new Set(['done', 'failed', 'interrupted']);
export const hasEnded = ({ status }: Pick<TurnView, 'status'>): boolean => ENDED.has(status);

/** A shorter turn cannot have left an approval waiting: the agent waits at least this long for an approver. */
const SHORTEST_PARKING_MS = 3000;
/** How long the agent may take to report its waiting approvals, and the pause that ends the list. */
const QUESTIONS_MS = 5000;
const LAST_QUESTION_MS = 500;

function mayHaveParked({ started_at, finished_at }: TurnView): boolean {
  if (started_at === undefined || finished_at === undefined) return false;
  return Date.parse(finished_at) - Date.parse(started_at) >= SHORTEST_PARKING_MS;
}

type Followed = { conversationId: string; turnId: string; clock: Clock; signal: AbortSignal };

/** The intents of a conversation that wait for an approval: a new reader of the events gets them first. */
async function waitingIntents(agent: AgentClient, { conversationId, clock, signal }: Followed): Promise<string[]> {
  const over = new AbortController();
  const end = () => over.abort();
  let cancel = clock.after(QUESTIONS_MS, end);
  const intents = new Set<string>();
  const events = agent.events({ conversationId, types: ['gate'], signal: AbortSignal.any([signal, over.signal]) });
  for await (const { type, data } of events) {
    if (type !== 'gate') continue;
    if (data.state === 'asked') intents.add(data.intent_id);
    else intents.delete(data.intent_id);
    cancel();
    cancel = clock.after(LAST_QUESTION_MS, end);
  }
  cancel();
  return [...intents];
}

/**
 * The changes of a turn, until it has ended or the signal aborts.
 *
 * @throws ReveilleError the agent's permanent refusals, such as `not_found` for a turn that it does not know any more
 */
export async function* followTurn(agent: AgentClient, followed: Followed): AsyncGenerator<TurnChange> {
  const { conversationId, turnId, signal } = followed;
  const waiting = new Map<string, string>();
  let reply = '';
  const intents = () => [...new Set(waiting.values())];
  // The position is read first, so that an event reports each change between the two reads.
  const { last_event_id: position = 0 } = await agent.conversation(conversationId, { limit: 1 });
  const stop = new AbortController();
  const events = agent.events({
    conversationId,
    types: ['turn', 'say', 'gate'],
    after: String(position),
    signal: AbortSignal.any([signal, stop.signal]),
  });
  try {
    const first = await agent.turn(conversationId, turnId);
    if (hasEnded(first)) {
      const waiting = mayHaveParked(first) ? await waitingIntents(agent, followed) : [];
      return yield { kind: 'ended', turn: first, waiting };
    }
    if (first.status === 'running') yield { kind: 'running', waiting: intents() };
    for await (const { type, data } of events) {
      if (type === 'gate') {
        const key = `${data.intent_id} ${data.node_id}`;
        if (data.state === 'asked') waiting.set(key, data.intent_id);
        else if (!waiting.delete(key)) continue;
        yield { kind: 'running', waiting: intents() };
      } else if (type === 'say' && data.turn_id === turnId) {
        const kept = reply.slice(0, data.offset);
        const isAppended = kept.length === reply.length && reply !== '';
        reply = kept + data.text;
        yield { kind: 'reply', text: reply, ...(isAppended && { appended: data.text }) };
      } else if (type === 'notice' || (type === 'turn' && data.turn_id === turnId)) {
        // The end of the turn may be among the lost events.
        const turn = await agent.turn(conversationId, turnId);
        if (hasEnded(turn)) return yield { kind: 'ended', turn, waiting: intents() };
        if (type === 'turn' && data.status === 'running') yield { kind: 'running', waiting: intents() };
      }
    }
  } finally {
    stop.abort();
    await events.return(undefined);
  }
}

/** How many turns of a conversation are searched for the end of an intent. */
const NEWEST_TURNS = 20;

/** The turn in which the agent learned of the end of an intent; `undefined` if there is none yet. */
export async function turnAfterIntent(
  agent: Pick<AgentClient, 'conversation'>,
  conversationId: string,
  intentId: string,
): Promise<TurnView | undefined> {
  const { turns } = await lastTurns(agent, conversationId, NEWEST_TURNS);
  return turns.find(
    ({ origin, sent_by, payload }) =>
      origin === 'chronos' && sent_by === undefined && isObject(payload) && payload.intent_id === intentId,
  );
}
