/**
 * The answer to a call, byte for byte. The SDK returns parsed messages; the transports see the bytes. The request id
 * links the two: the SDK chooses it, and the transport sees it in the outgoing message.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { elementsOf, sliceAt } from '../wire/json.ts';

/** The received message that carried an answer. */
export type RawAnswer = {
  /** SHA-256 in lower-case hex. */
  readonly sha256: string;
  readonly bytes: number;
  /**
   * The JSON text of the tool's result, with all its digits: its structured content, or its only text if that is an
   * object or a list. It may contain a duplicate member; the reader decides how to treat it.
   */
  readonly source?: string;
};

/** @param message the JSON text of one answer */
function sourceIn(message: string): string | undefined {
  const structured = sliceAt(message, ['result', 'structuredContent']);
  if (structured !== undefined) return structured;
  const blocks = elementsOf(sliceAt(message, ['result', 'content']) ?? 'null') ?? [];
  const onlyText = blocks.length === 1 ? sliceAt(blocks[0]!, ['text']) : undefined;
  const text: unknown = onlyText === undefined ? undefined : JSON.parse(onlyText);
  if (typeof text !== 'string' || !/^\s*[[{]/.test(text)) return undefined;
  try {
    // The text comes from the server and need not be JSON, although it begins like it.
    JSON.parse(text);
    return text.trim();
  } catch {
    return undefined;
  }
}

/** Receives the digest of a call's answer. If the call takes several requests, the last answer counts. */
export type AnswerSlot = {
  raw?: RawAnswer;
  /** The source is the whole result, of a request that calls no tool. */
  isWhole?: boolean;
};

/** The ids of requests with waiting calls. An id is kept until its answer or the end of its call. */
export class RawAnswers {
  readonly #calls = new AsyncLocalStorage<AnswerSlot>();
  readonly #awaited = new Map<number, AnswerSlot>();

  /** Whether any call waits; otherwise no digest is needed. */
  get areAwaited(): boolean {
    return this.#awaited.size > 0;
  }

  /** Runs a call; the slot is filled before the SDK gets the answer. */
  async during<T>(slot: AnswerSlot, call: () => Promise<T>): Promise<T> {
    try {
      return await this.#calls.run(slot, call);
    } finally {
      for (const [id, awaiting] of this.#awaited) if (awaiting === slot) this.#awaited.delete(id);
    }
  }

  /** For transports: a message is about to be sent. */
  onSent(message: JSONRPCMessage): void {
    const slot = this.#calls.getStore();
    if (slot && 'method' in message && 'id' in message) this.#awaited.set(Number(message.id), slot);
  }

  /**
   * For transports: a message was received and is about to be passed on.
   *
   * @param text the bytes of its JSON text, without the transport's framing
   */
  onReceived(message: unknown, text: Uint8Array): void {
    if (!this.areAwaited) return;
    // Over HTTP, one list may contain several.
    const several = Array.isArray(message);
    for (const [index, one] of (several ? (message as unknown[]) : [message]).entries()) {
      if (typeof one !== 'object' || one === null || 'method' in one || !('id' in one)) continue;
      // Compared as the SDK does.
      const id = Number(one.id);
      const slot = this.#awaited.get(id);
      if (!slot) continue;
      // The SDK accepts only the first answer.
      this.#awaited.delete(id);
      const whole = Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString('utf8').trim();
      const answer = several ? elementsOf(whole)![index]! : whole;
      const source = slot.isWhole ? sliceAt(answer, ['result']) : sourceIn(answer);
      slot.raw = {
        sha256: createHash('sha256').update(text).digest('hex'),
        bytes: text.length,
        ...(source !== undefined && { source }),
      };
    }
  }
}
