/** The interface of notification channels: one descriptor per kind. */
import type { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import type { GuardedClient } from '../../kit/http/guarded-client.ts';
import type { Delivery } from '../../kit/outbox/outbox.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ToldKind } from '../news.ts';

/** A whole notification; a channel shortens it to its limit. */
export type Message = {
  /** The same on every attempt. */
  readonly id: string;
  /** `summary`: deferred by quiet hours; `test`: a test notification. */
  readonly kinds: readonly (ToldKind | 'summary' | 'test')[];
  readonly at: number;
  /** One line. */
  readonly title: string;
  readonly text: string;
  readonly about: Readonly<Record<string, string>>;
  /** Links for one answer each. Empty without a console address. */
  readonly links: readonly { readonly label: string; readonly url: string }[];
};

/** Services for channels. */
export type ChannelTools = {
  readonly http: GuardedClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Our environment; a program gets an allow-list of it. */
  readonly variables: Settings;
  /** Identifies us to push services (RFC 8292); created once. */
  readonly vapid: { readonly publicKey: string; readonly privateKey: string; readonly subject: string };
};

export type ChannelKind<Spec> = {
  readonly spec: z.ZodType<Spec>;
  /** The destination, for lists; never a secret. */
  place(spec: Spec): string;
  /**
   * Why it cannot be used here, as a sentence; `undefined` when it can. Checks numeric addresses only: host names are
   * checked when a connection is made.
   */
  refusal(spec: Spec, tools: Pick<ChannelTools, 'http'>): string | undefined;
  /** Sends once; never rejects. */
  tell(spec: Spec, message: Message, tools: ChannelTools): Promise<Delivery>;
};

/** Text of at most this many bytes of UTF-8, whole characters; marks that it was shortened. */
export function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const mark = ' … (cut)';
  const kept = Buffer.from(text).subarray(0, bytes - Buffer.byteLength(mark));
  // An incomplete character is removed.
  return new TextDecoder('utf-8').decode(kept, { stream: true }) + mark;
}
