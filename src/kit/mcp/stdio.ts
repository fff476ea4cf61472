/**
 * The stdio transport of all MCP servers of Reveille. It answers each request that it has read, also after the end of
 * the input; ids come back digit for digit; and {@link RawJson} in a result is written unchanged.
 */
import type { Readable, Writable } from 'node:stream';
import { type JSONRPCMessage, SUBSCRIPTION_ID_META_KEY, type Transport } from '@modelcontextprotocol/server';
import { encodeJson, isObject, type RawJson, sliceAt } from '../../wire/json.ts';
import {
  INVALID_REQUEST,
  isRefusal,
  type Message,
  type Refusal,
  readMessages,
  refusalJson,
  revisionOf,
} from './message.ts';

// Cuts a byte stream into lines of bounded length; at most one line is held in memory.

const NEWLINE = 0x0a;
/** Space, tab and carriage return. */
const BLANK: ReadonlySet<number> = new Set([0x20, 0x09, 0x0d]);

type LineSink = {
  line(bytes: Buffer): void;
  /** A line exceeded the limit and was dropped; reading continues after its line feed. Called once per line. */
  tooLong(): void;
};

type LineCutter = {
  /** Text after the last line feed waits for more. */
  feed(chunk: Buffer): void;
  /** Text after the last line feed is a line. */
  end(): void;
};

/** @param maxBytes of one line */
export function lineCutter(maxBytes: number, sink: LineSink): LineCutter {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let dropping = false;

  const keep = (piece: Buffer) => {
    if (dropping) return;
    if (waitingBytes + piece.length > maxBytes) {
      waiting = [];
      waitingBytes = 0;
      dropping = true;
      sink.tooLong();
      return;
    }
    waiting.push(piece);
    waitingBytes += piece.length;
  };

  const cut = () => {
    if (!dropping) {
      const line = waiting.length === 1 ? waiting[0]! : Buffer.concat(waiting, waitingBytes);
      waiting = [];
      waitingBytes = 0;
      sink.line(line);
    }
    dropping = false;
  };

  return {
    feed(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
        keep(chunk.subarray(from, at));
        from = at + 1;
        cut();
      }
      if (from < chunk.length) keep(chunk.subarray(from));
    },
    end: () => {
      if (waiting.length > 0) cut();
    },
  };
}

/** Two texts of 64 KiB with every character escaped fit sixteen times. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** For a call of unknown length: clients give up after one minute. */
const CALL_LIMIT_MS = 60_000;
/** To load the code of the calls, and to write their answers. */
const GRACE_MS = 5000;

/** The answers of a batch, written as one line when the last one is there. */
type Batch = { readonly answers: string[]; waiting: number };

/** A request that was read and not answered. */
type OpenRequest = { readonly id: RawJson; readonly method: string; readonly batch: Batch | undefined };

/** It is answered when the subscription ends, so the end of the input does not wait for it. */
const isSubscription = ({ method }: OpenRequest) => method === 'subscriptions/listen';

export type StdioOptions = {
  /** Passes on the arguments of a `tools/call` as source text, for {@link argumentsSource}. */
  readonly keepsArguments?: boolean | undefined;
  /** How long a call can take, milliseconds: after the end of the input, calls in progress may take as long. */
  readonly callLimitMs?: number | undefined;
};

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  /** Resolves when the connection has ended: all is answered after the end of the input, the pipe broke, or {@link close} was called. */
  readonly closed: Promise<void>;

  readonly #input: Readable;
  readonly #output: Writable;
  readonly #options: StdioOptions;
  readonly #cutter = lineCutter(MAX_LINE_BYTES, {
    line: (bytes) => this.#receive(bytes),
    tooLong: () =>
      this.#refuse({
        code: INVALID_REQUEST,
        why: `a message must have at most ${MAX_LINE_BYTES} bytes; it was dropped`,
      }),
  });
  /** By the ids that the SDK sees: those of clients may be equal, or too large for a number. */
  readonly #open = new Map<number, OpenRequest>();
  #lastId = 0;
  /** Lines that the output has not taken. */
  #unwritten = 0;
  #revision: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;
  #settleClosed: () => void = () => {};
  #isClosed = false;

  constructor(input: Readable, output: Writable, options: StdioOptions = {}) {
    this.#input = input;
    this.#output = output;
    this.#options = options;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
  }

  async start(): Promise<void> {
    this.#input.on('data', this.#onData);
    this.#input.on('end', this.#onEnd);
    this.#input.on('close', this.#onEnd);
    this.#input.on('error', this.#onBroken);
    this.#output.on('error', this.#onBroken);
    this.#output.on('close', this.#onOutputClosed);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#input.off('data', this.#onData);
    this.#input.off('end', this.#onEnd);
    this.#input.off('close', this.#onEnd);
    this.#output.off('close', this.#onOutputClosed);
    // The error listeners stay: a late write to a broken pipe must not end the process.
    this.#input.pause();
    this.onclose?.();
    this.#settleClosed();
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Error('the connection is closed'));
    if (!('result' in message || 'error' in message)) return this.#write(encodeJson(this.#withSubscription(message)));
    const open = this.#take(message.id as number);
    // The client has cancelled the request.
    if (!open) return Promise.resolve();
    return this.#answer(encodeJson({ ...this.#withSubscription(message), id: open.id }), open.batch);
  }

  #take(id: number): OpenRequest | undefined {
    const open = this.#open.get(id);
    this.#open.delete(id);
    return open;
  }

  /** Writes an answer, alone or with the last one of its batch. */
  async #answer(json: string | undefined, batch: Batch | undefined): Promise<void> {
    if (batch === undefined) {
      if (json !== undefined) await this.#write(json);
    } else {
      if (json !== undefined) batch.answers.push(json);
      batch.waiting--;
      if (batch.waiting === 0 && batch.answers.length > 0) await this.#write(`[${batch.answers.join(',')}]`);
    }
    this.#closeIfAnswered();
  }

  /** Messages of a subscription name the request that opened it. */
  #withSubscription<M extends object>(message: M): M {
    const about = 'params' in message ? message.params : 'result' in message ? message.result : undefined;
    const meta = isObject(about) ? about._meta : undefined;
    const id = isObject(meta) ? this.#open.get(meta[SUBSCRIPTION_ID_META_KEY] as number)?.id : undefined;
    if (id === undefined) return message;
    const named = { ...(about as object), _meta: { ...(meta as object), [SUBSCRIPTION_ID_META_KEY]: id } };
    return { ...message, ['params' in message ? 'params' : 'result']: named };
  }

  #write(json: string): Promise<void> {
    this.#unwritten++;
    return new Promise((resolve, reject) => {
      this.#output.write(`${json}\n`, (error) => {
        this.#unwritten--;
        if (error) return reject(error);
        resolve();
        this.#closeIfAnswered();
      });
    });
  }

  #onData = (chunk: Buffer): void => this.#cutter.feed(chunk);

  #onEnd = (): void => {
    if (this.#hasEnded) return;
    this.#cutter.end();
    this.#hasEnded = true;
    const { callLimitMs = CALL_LIMIT_MS } = this.#options;
    this.#timer = setTimeout(() => this.close(), callLimitMs + GRACE_MS);
    this.#closeIfAnswered();
  };

  #closeIfAnswered(): void {
    if (!this.#hasEnded || this.#unwritten > 0) return;
    if ([...this.#open.values()].every(isSubscription)) void this.close();
  }

  #onOutputClosed = (): void => void this.close();

  #onBroken = (error: Error): void => {
    if (!this.#isClosed) this.onerror?.(error);
    void this.close();
  };

  #receive(bytes: Buffer): void {
    if (this.#isClosed) return;
    if (bytes.every((byte) => BLANK.has(byte))) return;
    const read = readMessages(bytes, this.#revision, this.#options);
    if ('why' in read) {
      this.#refuse(read);
      return;
    }
    const batch = read.isBatch ? { answers: [], waiting: read.members.length } : undefined;
    for (const member of read.members) {
      if (isRefusal(member)) this.#refuse(member, batch);
      else this.#deliver(member, batch);
    }
  }

  #deliver(read: Message, batch: Batch | undefined): void {
    const { id, method, params, message } = read;
    this.#revision = revisionOf(read) ?? this.#revision;
    if (id !== undefined) {
      this.#open.set(++this.#lastId, { id, method, batch });
      this.onmessage?.({ ...message, id: this.#lastId } as JSONRPCMessage);
      return;
    }
    if (method !== 'notifications/cancelled') this.onmessage?.(message);
    else this.#cancel(read, params);
    this.#answer(undefined, batch).catch(this.#onBroken);
  }

  /** The SDK does not answer a cancelled request. A cancellation of an answered or unknown request has no effect. */
  #cancel({ source }: Message, params: Message['params']): void {
    const text = sliceAt(source, ['params', 'requestId']);
    const isMeant = ({ id }: OpenRequest) =>
      typeof params.requestId === 'string' ? id.value() === params.requestId : id.text === text;
    const found = [...this.#open].find(([, open]) => isMeant(open));
    if (!found) return;
    const [requestId] = found;
    this.onmessage?.({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { ...params, requestId } });
    this.#answer(undefined, this.#take(requestId)?.batch).catch(this.#onBroken);
  }

  /** Responds to messages that cannot be handled, so that the client does not wait. */
  #refuse(refusal: Refusal, batch?: Batch): void {
    this.onerror?.(new Error(refusal.why));
    this.#answer(refusalJson(refusal), batch).catch(this.#onBroken);
  }
}
