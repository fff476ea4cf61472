/**
 * Follows an agent's events over any number of connections. No event is lost or repeated, even if the agent's machine
 * sleeps and wakes meanwhile.
 */
import type { Clock } from '../../kit/clock/clock.ts';
import { openStream } from '../../kit/http/exchange.ts';
import { type FollowStreamOptions, followStream } from '../../kit/http/follow-stream.ts';
import type { Transport } from '../../kit/http/plain-transport.ts';
import { type TurnEventData, type TurnEventType, turnEventSchemas } from '../../wire/turn.ts';

/**
 * A received event. Without `id` it is about the stream, or about gates that wait when it opens, and cannot be resumed
 * from.
 */
export type NeoEvent = {
  [Type in TurnEventType]: { readonly id?: string; readonly type: Type; readonly data: TurnEventData<Type> };
}[TurnEventType];

export type FollowOptions = FollowStreamOptions & {
  /** Only this conversation's events; all when absent. */
  conversationId?: string | undefined;
  /** Only these; all when absent. */
  types?: readonly TurnEventType[] | undefined;
};

type Source = {
  /** The address of the events, without a query. */
  url: URL;
  headers: Readonly<Record<string, string>>;
  /** Its name in messages. */
  name: string;
  clock: Clock;
  /** Carries the streams instead of connections of their own. */
  transport?: Transport | undefined;
};

/** Yields events until the signal aborts. @throws ReveilleError as {@link followStream} */
export function followEvents(
  source: Source,
  { conversationId, types, ...options }: FollowOptions,
): AsyncGenerator<NeoEvent> {
  const { url, headers, name, clock, transport } = source;
  const address = new URL(url);
  if (conversationId !== undefined) address.searchParams.set('conversation_id', conversationId);
  if (types !== undefined) address.searchParams.set('types', types.join(','));
  const open = (resume: Record<string, string>, signal: AbortSignal) =>
    openStream(address, { headers: { ...headers, ...resume }, signal, transport });
  return followStream({ open, read: eventOf, name, clock }, options);
}

/** An event of this version; one of another version is skipped. */
function eventOf(type: string, data: unknown, id: string | undefined): NeoEvent | undefined {
  if (!Object.hasOwn(turnEventSchemas, type)) return undefined;
  const parsed = turnEventSchemas[type as TurnEventType].safeParse(data);
  if (!parsed.success) return undefined;
  return { ...(id === undefined || id === '' ? {} : { id }), type, data: parsed.data } as NeoEvent;
}
