/**
 * MCP over stdio without loss of digits. The SDK's transport uses `JSON.parse` and `JSON.stringify`, which round integers
 * in a payload. Here the arguments of a `tools/call` reach the handler as source text, and {@link RawJson} in a result is
 * written unchanged.
 */
import type { Readable, Writable } from 'node:stream';
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/server';
import { encodeJson, isObject, RawJson, sliceAt } from '../wire/json.ts';

// Cuts a byte stream into lines of bounded length; at most one line is held in memory.

const NEWLINE = 0x0a;

type LineSink = {
  line(bytes: Buffer): void;
  /** A line exceeded the limit and was dropped; reading continues after its line feed. Called once per line. */
  tooLong(): void;
};

/** Returns a function for chunks. Text after the last line feed waits for more. @param maxBytes of one line */
export function lineCutter(maxBytes: number, sink: LineSink): (chunk: Buffer) => void {
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

  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
      keep(chunk.subarray(from, at));
      from = at + 1;
      if (!dropping) {
        const line = waiting.length === 1 ? waiting[0]! : Buffer.concat(waiting, waitingBytes);
        waiting = [];
        waitingBytes = 0;
        sink.line(line);
      }
      dropping = false;
    }
    if (from < chunk.length) keep(chunk.subarray(from));
  };
}

/** Two texts of 64 KiB with every character escaped fit sixteen times. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** JSON-RPC 2.0, section 5.1. */
const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Replaces a `tools/call`'s arguments: the SDK passes on unknown fields. */
type CarriedArguments = { source: RawJson };

/** The source text of a call's arguments; absent `arguments` are an empty object. */
export function argumentsSource(carried: unknown): string {
  if (carried === undefined) return '{}';
  return (carried as CarriedArguments).source.text;
}

function carryArguments(message: JSONRPCMessage, line: string): void {
  if (!('method' in message) || message.method !== 'tools/call') return;
  const params = message.params as Record<string, unknown> | undefined;
  if (params === undefined || !Object.hasOwn(params, 'arguments')) return;
  const carried: CarriedArguments = { source: new RawJson(sliceAt(line, ['params', 'arguments'])!) };
  params.arguments = carried;
}

/** The id for an error response to a line that is JSON but not a JSON-RPC message; none without a usable id. */
function idOf(value: unknown, line: string): RawJson | undefined {
  if (!isObject(value) || !('method' in value)) return undefined;
  const { id } = value;
  return typeof id === 'string' || typeof id === 'number' ? new RawJson(sliceAt(line, ['id'])!) : undefined;
}

export class VerbatimStdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  /** Resolves when the connection has ended: the client closed it, the pipe broke, or {@link close} was called. */
  readonly closed: Promise<void>;

  readonly #input: Readable;
  readonly #output: Writable;
  readonly #cut: (chunk: Buffer) => void;
  #settleClosed: () => void = () => {};
  #isClosed = false;

  constructor(input: Readable, output: Writable) {
    this.#input = input;
    this.#output = output;
    this.closed = new Promise((resolve) => {
      this.#settleClosed = resolve;
    });
    this.#cut = lineCutter(MAX_LINE_BYTES, {
      line: (bytes) => this.#receive(bytes),
      tooLong: () =>
        this.#refuse(INVALID_REQUEST, `a message must have at most ${MAX_LINE_BYTES} bytes; it was dropped`),
    });
  }

  async start(): Promise<void> {
    this.#input.on('data', this.#onData);
    this.#input.on('end', this.#onOver);
    this.#input.on('close', this.#onOver);
    this.#input.on('error', this.#onBroken);
    this.#output.on('error', this.#onBroken);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#input.off('data', this.#onData);
    this.#input.off('end', this.#onOver);
    this.#input.off('close', this.#onOver);
    // The error listeners stay: a late write to a broken pipe must not end the process.
    this.#input.pause();
    this.onclose?.();
    this.#settleClosed();
  }

  send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Error('the connection is closed'));
    return this.#write(encodeJson(message));
  }

  #write(json: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#output.write(`${json}\n`, (error) => (error ? reject(error) : resolve()));
    });
  }

  #onData = (chunk: Buffer): void => {
    this.#cut(chunk);
  };

  #onOver = (): void => {
    void this.close();
  };

  #onBroken = (error: Error): void => {
    if (!this.#isClosed) this.onerror?.(error);
    void this.close();
  };

  #receive(bytes: Buffer): void {
    if (this.#isClosed) return;
    let line: string;
    let value: unknown;
    try {
      line = utf8.decode(bytes);
      if (line.trim() === '') return;
      // Nesting is checked where the arguments are read, so that the caller gets the error.
      value = JSON.parse(line);
    } catch {
      this.#refuse(PARSE_ERROR, 'a message must be one line of JSON in UTF-8');
      return;
    }
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(value);
    } catch {
      this.#refuse(INVALID_REQUEST, 'a message must be a JSON-RPC 2.0 request or notification', idOf(value, line));
      return;
    }
    carryArguments(message, line);
    this.onmessage?.(message);
  }

  /** Responds to messages that cannot be handled, so that the client does not wait. */
  #refuse(code: number, message: string, id?: RawJson): void {
    this.onerror?.(new Error(message));
    const answer = encodeJson({ jsonrpc: '2.0', id, error: { code, message } });
    this.#write(answer).catch(this.#onBroken);
  }
}
