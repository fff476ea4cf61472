/** The port to the ways in which a person can be told: one descriptor for each kind of channel. */
import type { z } from 'zod';
import type { Clock } from '../../kit/clock/clock.ts';
import type { GuardedClient } from '../../kit/http/guarded-client.ts';
import type { Delivery } from '../../kit/outbox/outbox.ts';
import type { Settings } from '../../wire/settings.ts';
import type { ToldKind } from '../news.ts';

/** What is told, whole; a channel cuts it to its bound. */
export type Message = {
  /** The same on every attempt. */
  readonly id: string;
  /** `summary`: what quiet hours held back; `test`: somebody looks whether it arrives. */
  readonly kinds: readonly (ToldKind | 'summary' | 'test')[];
  readonly at: number;
  /** One line. */
  readonly title: string;
  readonly text: string;
  readonly about: Readonly<Record<string, string>>;
  /** Where a person can answer; each is for one answer. Empty where nobody serves such pages. */
  readonly links: readonly { readonly label: string; readonly url: string }[];
};

/** What a channel may use. */
export type ChannelTools = {
  readonly http: GuardedClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Our own variables; a program gets an allow-list of them. */
  readonly variables: Settings;
  /** Identifies us to push services (RFC 8292): made once. */
  readonly vapid: { readonly publicKey: string; readonly privateKey: string; readonly subject: string };
};

export type ChannelKind<Spec> = {
  readonly spec: z.ZodType<Spec>;
  /** Where it leads, for lists; never a secret. */
  place(spec: Spec): string;
  /**
   * Why it cannot be used here, in a sentence; `undefined` when it can. Looks at nothing but addresses that are written
   * down as numbers: names are looked at when a connection is made.
   */
  refusal(spec: Spec, tools: Pick<ChannelTools, 'http'>): string | undefined;
  /** Tells once; never rejects. */
  tell(spec: Spec, message: Message, tools: ChannelTools): Promise<Delivery>;
};

/** Text of at most so many bytes of UTF-8, whole characters; says that it was cut. */
export function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  const mark = ' … (cut)';
  const kept = Buffer.from(text).subarray(0, bytes - Buffer.byteLength(mark));
  // A character that was cut in two is left away.
  return new TextDecoder('utf-8').decode(kept, { stream: true }) + mark;
}
