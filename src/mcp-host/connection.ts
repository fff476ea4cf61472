/**
 * One connection to one MCP server, over stdio or streamable HTTP: opened once, used, closed. It is never repaired,
 * only replaced.
 */
import {
  type CallToolResult,
  Client,
  isInputRequiredResult,
  type JSONRPCMessage,
  ProtocolError,
  type Tool,
  type Transport,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import type { Clock } from '../kit/clock/clock.ts';
import type { Walls } from '../kit/process/separation.ts';
import { CONVERSATION_CAPABILITY, CONVERSATION_META, USER_META } from '../wire/manifest.ts';
import { VERSION } from '../wire/version.ts';
import { withDeadline } from './deadline.ts';
import { httpWire } from './http-transport.ts';
import type { ServerSpec } from './manifest.ts';
import { type AnswerSlot, RawAnswers } from './raw-answers.ts';
import type { ServerLog } from './server-log.ts';
import { StdioTransport } from './stdio-transport.ts';
import { AskedForMore } from './tool-call-failure.ts';
import { definitionOf, type ToolDefinition } from './tool-definition.ts';

export type ConnectionOptions = {
  spec: ServerSpec;
  /** Where a child runs. */
  cwd: string | undefined;
  walls: Walls | undefined;
  clock: Clock;
  output: ServerLog;
  /**
   * The connection is over; `ending` finishes the sentence "the server …". Called once, and only for one that was open.
   */
  onClosed(ending: string): void;
  /** The server says that its tools have changed. */
  onToolsChanged(): void;
  /** Something went wrong that may mean that the server is gone. */
  onTrouble(): void;
};

/** The revision in which servers need not know the handshake of 2025 any more. */
const MODERN = '2026-07-28';
/** The SDK wants a limit; ours are kept by our own clock. */
const NO_LIMIT = { timeout: 2 ** 31 - 1 };
const MOST_TOOLS = 1000;
const FAREWELL_MS = 1000;

type Wire = {
  transport: Transport;
  ending(): string | undefined;
  close(): Promise<void>;
};

/** An error and what caused it in one line. */
export function describeError(thrown: unknown): string {
  const words: string[] = [];
  for (let at = thrown; at !== undefined && words.length < 4; at = at instanceof Error ? at.cause : undefined) {
    words.push(at instanceof Error ? at.message : String(at));
  }
  return [...new Set(words)].join(': ').replace(/\s+/g, ' ').slice(0, 600);
}

export class Connection {
  readonly #options: ConnectionOptions;
  readonly #flood: FloodGuard;
  readonly #answers = new RawAnswers();
  #client: Client | undefined;
  #wire: Wire | undefined;
  #isOpen = false;
  #ending: string | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#flood = new FloodGuard(options.clock);
  }

  /** Why the connection ended; `undefined` while it has not. */
  get ending(): string | undefined {
    return this.#ending;
  }

  /** The version that the server gives itself. */
  get serverVersion(): string | undefined {
    return this.#client?.getServerVersion()?.version;
  }

  /** The process of a child, which leads its group. */
  get pid(): number | undefined {
    const transport = this.#wire?.transport;
    return transport instanceof StdioTransport ? (transport.pid ?? undefined) : undefined;
  }

  /**
   * Starts the server and shakes hands. Over HTTP it is asked which way it knows. A child is greeted the 2025 way
   * first, which nearly all know, and the 2026 way when it turns that away: to be asked, some end themselves, and a
   * second process would be needed.
   *
   * @throws Error in the words of the server where it has any; the connection is to be closed then
   */
  async open(): Promise<void> {
    try {
      await this.#connect(this.#options.spec.link.kind === 'http' ? 'auto' : 'legacy');
    } catch (thrown) {
      const first = this.#explain(thrown);
      // A child that answers with an error may be one that only knows the newer way.
      if (this.#closing || this.#options.spec.link.kind === 'http' || !(thrown instanceof ProtocolError)) throw first;
      await this.#wire?.close();
      // It may have been closed meanwhile.
      if (this.#closing) throw first;
      try {
        await this.#connect({ pin: MODERN });
      } catch (again) {
        throw new Error(`${first.message}; asked for ${MODERN}: ${this.#explain(again).message}`);
      }
    }
    // Closed while the last answer was on its way.
    if (this.#closing) throw new Error('it was stopped');
    this.#isOpen = true;
  }

  async #connect(mode: VersionNegotiationMode): Promise<void> {
    const wire = this.#makeWire();
    this.#wire = wire;
    const { onToolsChanged } = this.#options;
    const changed = () => {
      if (this.#isOpen) onToolsChanged();
    };
    const client = new Client(
      { name: 'reveille', version: VERSION },
      {
        capabilities: {},
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
        versionNegotiation: { mode },
      },
    );
    // Also for servers that send what they did not announce.
    client.setNotificationHandler('notifications/tools/list_changed', changed);
    client.onerror = (error) => this.#onError(error);
    client.onclose = () => {
      if (this.#wire === wire) this.#onClose(wire.ending() ?? 'hung up');
    };
    this.#client = client;
    wire.transport.onmessage = (_message: JSONRPCMessage) => {
      if (this.#flood.message()) this.fail('sent too many messages that nobody asked for');
    };
    await client.connect(wire.transport, NO_LIMIT);
  }

  #makeWire(): Wire {
    const { spec, cwd, walls, clock, output } = this.#options;
    const { link } = spec;
    if (link.kind === 'stdio') {
      const transport = new StdioTransport({ link, cwd, walls, clock, output, answers: this.#answers });
      return { transport, ending: () => transport.ending, close: () => transport.close() };
    }
    output.begin();
    const { transport, destroy } = httpWire(link, this.#answers, (why) => this.fail(why));
    const close = async () => {
      const farewell = withDeadline(clock, FAREWELL_MS, undefined, () => transport.terminateSession());
      await farewell.catch((error: unknown) => {
        output.line('host', `the session was not ended: ${describeError(error)}`);
      });
      await transport.close();
      await destroy();
    };
    return { transport, ending: () => undefined, close };
  }

  #onError(error: Error): void {
    this.#options.output.line('host', describeError(error));
    if (this.#isOpen && !this.#closing) this.#options.onTrouble();
  }

  #onClose(ending: string): void {
    // Until it is open, whoever opens it says what went wrong.
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#ending ??= ending;
    this.#options.onClosed(this.#ending);
  }

  /** What to say of a failed start: the server's own last words tell more than that the pipe is closed. */
  #explain(thrown: unknown): Error {
    const { output, spec } = this.#options;
    const ending = this.#ending ?? this.#wire?.ending();
    const said = output.lastWords;
    let text = ending ? `it ${ending}` : describeError(thrown);
    for (const secret of spec.secrets) if (secret.length >= 6) text = text.replaceAll(secret, '[hidden]');
    // No cause: all that it says is in the text, and `describeError` would say it a second time.
    return new Error(said === '' ? text : `${text}; it said: ${said}`);
  }

  /** Ends the connection because of something that the server did. @param why finishes the sentence "the server …" */
  fail(why: string): void {
    this.#ending ??= why;
    void this.close();
  }

  /**
   * A fresh listing, all pages of it.
   *
   * @throws Error when there is no answer, or an endless one
   */
  async listTools(signal: AbortSignal): Promise<ToolDefinition[]> {
    const client = this.#client!;
    // The SDK would write a line to stdout about it.
    if (!client.getServerCapabilities()?.tools) return [];
    // What is cached would be used to check results; see below.
    const { tools } = await client.listTools(undefined, { ...NO_LIMIT, signal, cacheMode: 'bypass' });
    this.#flood.answered();
    if (tools.length > MOST_TOOLS) throw new Error(`it has ${tools.length} tools; at most ${MOST_TOOLS} are taken`);
    return tools.map((tool) => definitionOf(tool as ToolDefinition));
  }

  /**
   * Calls a tool. Throws what the SDK throws.
   *
   * @param slot gets the digest of the answer; with one, exactly one request is sent: a server that asks to be called
   *   again with more
   *   is not
   * @throws AskedForMore only with a slot
   */
  async call(
    { name, inputSchema }: ToolDefinition,
    args: Readonly<Record<string, unknown>>,
    {
      signal,
      slot,
      user,
      conversation,
    }: {
      signal: AbortSignal;
      slot?: AnswerSlot | undefined;
      user?: string | undefined;
      conversation?: string | undefined;
    },
  ): Promise<CallToolResult> {
    // Some arguments travel as headers too, as the input schema says. Without an output schema the result is not
    // checked against it: what fails the check would be lost after the tool has run.
    const toolDefinition = { name, inputSchema } as Tool;
    const options = { ...NO_LIMIT, signal, toolDefinition };
    const wantsConversation =
      this.#client!.getServerCapabilities()?.experimental?.[CONVERSATION_CAPABILITY] !== undefined;
    const meta = {
      ...(this.#options.spec.isPerUser && user !== undefined && { [USER_META]: user }),
      ...(wantsConversation && conversation !== undefined && { [CONVERSATION_META]: conversation }),
    };
    const params = { name, arguments: { ...args }, ...(Object.keys(meta).length > 0 && { _meta: meta }) };
    if (!slot) {
      const result = await this.#client!.callTool(params, options);
      this.#flood.answered();
      return result;
    }
    const once = { ...options, allowInputRequired: true } as const;
    const result = await this.#answers.during(slot, () => this.#client!.callTool(params, once));
    this.#flood.answered();
    if (isInputRequiredResult(result)) throw new AskedForMore();
    return result;
  }

  /** Asks whether the server is there. Any answer will do, even a refusal. @throws Error when there is none */
  async check(signal: AbortSignal): Promise<void> {
    const client = this.#client!;
    try {
      if (client.getProtocolEra() === 'modern') await client.discover({ ...NO_LIMIT, signal });
      else await client.ping({ ...NO_LIMIT, signal });
    } catch (thrown) {
      if (!(thrown instanceof ProtocolError)) throw thrown;
    }
    this.#flood.answered();
  }

  /** Ends the connection; what is under way fails at once. Resolves when a child and its group are gone. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const wire = this.#wire;
    this.#ending ??= wire?.ending() ?? 'was stopped';
    await wire?.close();
    this.#onClose(this.#ending);
  }
}

/** Progress of many calls at once stays far below. */
const MOST_MESSAGES = 10_000;
const WINDOW_MS = 10_000;

class FloodGuard {
  readonly #clock: Clock;
  #windowFrom: number;
  #unasked = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#windowFrom = clock.monotonic();
  }

  /** A message has come. @returns whether these are too many */
  message(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#windowFrom > WINDOW_MS) {
      this.#windowFrom = now;
      this.#unasked = 0;
    }
    return ++this.#unasked > MOST_MESSAGES;
  }

  /** One of the messages was the answer to a request of ours. */
  answered(): void {
    if (this.#unasked > 0) this.#unasked--;
  }
}
