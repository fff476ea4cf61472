/**
 * What came back for a call, byte for byte. The SDK hands out what it has made of a message; the transports see the
 * bytes. The two are brought together by the id of the request, which the SDK chooses and the transports see on its way
 * out.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { elementsOf, sliceAt } from '../wire/json.ts';

/** The message that carried an answer, as it was received. */
export type RawAnswer = {
  /** SHA-256 in lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
  /**
   * The JSON text of what the tool gave back, with all its digits: its structured content, or its only text where that
   * is an object or a list. It may have two members of one name; whoever reads it decides what that means.
   */
  readonly source?: string;
};

/** @param message the JSON text of one answer */
function sourceIn(message: string): string | undefined {
  const structured = sliceAt(message, ['result', 'structuredContent']);
  if (structured !== undefined) return structured;
  const blocks = elementsOf(sliceAt(message, ['result', 'content']) ?? 'null') ?? [];
  const said = blocks.length === 1 ? sliceAt(blocks[0]!, ['text']) : undefined;
  const text: unknown = said === undefined ? undefined : JSON.parse(said);
  if (typeof text !== 'string' || !/^\s*[[{]/.test(text)) return undefined;
  try {
    // The text is the server's own and need not be JSON, although it begins like it.
    JSON.parse(text);
    return text.trim();
  } catch {
    return undefined;
  }
}

/** Where the digest of a call's answer is put when it comes: of the last one, should the call take several requests. */
export type AnswerSlot = { raw?: RawAnswer };

/**
 * The ids of requests that a call waits for; nothing else is kept, and an id only until its answer or the end of its
 * call.
 */
export class RawAnswers {
  readonly #calls = new AsyncLocalStorage<AnswerSlot>();
  readonly #awaited = new Map<number, AnswerSlot>();

  /** Whether any call waits; digests of what comes meanwhile are wanted by nobody otherwise. */
  get areAwaited(): boolean {
    return this.#awaited.size > 0;
  }

  /** Runs a call; the slot is filled before the SDK is given the answer. */
  async during<T>(slot: AnswerSlot, call: () => Promise<T>): Promise<T> {
    try {
      return await this.#calls.run(slot, call);
    } finally {
      for (const [id, awaiting] of this.#awaited) if (awaiting === slot) this.#awaited.delete(id);
    }
  }

  /** For transports: a message is about to be sent. */
  sent(message: JSONRPCMessage): void {
    const slot = this.#calls.getStore();
    if (slot && 'method' in message && 'id' in message) this.#awaited.set(Number(message.id), slot);
  }

  /**
   * For transports: a message has come and is about to be handed on.
   *
   * @param text the bytes of its JSON text, without what the transport puts around it
   */
  came(message: unknown, text: Uint8Array): void {
    if (!this.areAwaited) return;
    // Over HTTP, several may stand in one list.
    const several = Array.isArray(message);
    for (const [index, one] of (several ? (message as unknown[]) : [message]).entries()) {
      if (typeof one !== 'object' || one === null || 'method' in one || !('id' in one)) continue;
      // As the SDK compares them.
      const id = Number(one.id);
      const slot = this.#awaited.get(id);
      if (!slot) continue;
      // It takes the first answer and no other.
      this.#awaited.delete(id);
      const whole = Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('utf8').trim();
      const source = sourceIn(several ? elementsOf(whole)![index]! : whole);
      slot.raw = {
        sha256: createHash('sha256').update(text).digest('hex'),
        bytes: text.length,
        ...(source !== undefined && { source }),
      };
    }
  }
}
