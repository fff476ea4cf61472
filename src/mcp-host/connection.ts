/**
 * One connection to one MCP server, over stdio or streamable HTTP. It is opened once, used and closed; a broken one is
 * replaced.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  type CallToolResult,
  Client,
  type ElicitRequestParams,
  type ElicitResult,
  InsufficientScopeError,
  isInputRequiredResult,
  type JSONRPCMessage,
  ProtocolError,
  SdkHttpError,
  type Tool,
  type Transport,
  UrlElicitationRequiredError,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import { z } from 'zod';
import type { Clock } from '../kit/clock/clock.ts';
import type { Sandbox } from '../kit/process/isolation.ts';
import { traceHeaders } from '../kit/trace/trace.ts';
import { thrownText } from '../wire/errors.ts';
import { CONVERSATION_CAPABILITY, CONVERSATION_META, USER_META } from '../wire/manifest.ts';
import { VERSION } from '../wire/version.ts';
import { withDeadline } from './deadline.ts';
import {
  type AskPerson,
  type PersonAnswer,
  QUESTIONS_AT_ONCE,
  QUESTIONS_PER_CALL,
  readQuestion,
} from './elicitation.ts';
import { httpWire } from './http-transport.ts';
import type { ServerSpec } from './manifest.ts';
import { ServerAuthorization, SignInRequired, signInRequired } from './oauth/server-authorization.ts';
import type { TokenStore } from './oauth/token-store.ts';
import { type AnswerSlot, RawAnswers } from './raw-answers.ts';
import type { ServerOutput } from './server-log.ts';
import { StdioTransport } from './stdio-transport.ts';
import { InputRequired } from './tool-call-failure.ts';
import { definitionOf, type ToolDefinition } from './tool-definition.ts';

export type ConnectionOptions = {
  spec: ServerSpec;
  /** Working directory of a child process. */
  cwd: string | undefined;
  sandbox: Sandbox | undefined;
  clock: Clock;
  output: ServerOutput;
  /** Extensions of MCP that the client declares, with their settings. */
  extensions?: Record<string, Record<string, never>>;
  /** The stored sign-ins. Without it, a server that requires a sign-in cannot be used. */
  signIns?: TokenStore | undefined;
  /** Whether calls may ask the user: the client then declares elicitation. */
  asksPerson?: boolean | undefined;
  /** The connection has ended; `ending` finishes the sentence "the server …". Called once, and only if it was open. */
  onClosed(ending: string): void;
  /** The server says that its tools have changed. */
  onToolsChanged(): void;
  /** An error occurred that may mean that the server is gone. */
  onSuspectedLoss(): void;
};

/** The first revision in which servers need not support the handshake of 2025. */
const MODERN = '2026-07-28';
/** The SDK requires a limit; our own limits use our clock. */
const NO_LIMIT = { timeout: 2 ** 31 - 1 };
const MOST_TOOLS = 1000;
const SESSION_END_MS = 1000;

/** A call in progress, for the questions of its server. */
type RunningCall = {
  readonly ask: AskPerson | undefined;
  readonly signal: AbortSignal;
  /** Identifies the user and the conversation of the call. */
  readonly audience: string;
  asked: number;
};

const NOT_ASKED: PersonAnswer = { action: 'cancel' };

type Wire = {
  transport: Transport;
  ending(): string | undefined;
  close(): Promise<void>;
};

/** An error and its causes in one line. */
export function describeError(thrown: unknown): string {
  const parts: string[] = [];
  for (let at = thrown; at !== undefined && parts.length < 4; at = at instanceof Error ? at.cause : undefined) {
    parts.push(thrownText(at));
  }
  return [...new Set(parts)].join(': ').replace(/\s+/g, ' ').slice(0, 600);
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
  readonly #authorization: ServerAuthorization | undefined;
  readonly #calls = new Set<RunningCall>();
  /** The call that a message of the server belongs to, where the transport knows it. */
  readonly #ofCall = new AsyncLocalStorage<RunningCall>();
  #openQuestions = 0;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    const { spec, signIns, clock } = options;
    const { link } = spec;
    if (link.kind === 'http' && link.oauth && signIns)
      this.#authorization = new ServerAuthorization({
        ...{ spec, store: signIns, clock },
        link: { ...link, oauth: link.oauth },
      });
    this.#flood = new FloodGuard(options.clock);
  }

  /** Why the connection ended; `undefined` while it is open. */
  get ending(): string | undefined {
    return this.#ending;
  }

  /** The version that the server reports. */
  get serverVersion(): string | undefined {
    return this.#client?.getServerVersion()?.version;
  }

  /** The process id of a child, which leads its process group. */
  get pid(): number | undefined {
    const transport = this.#wire?.transport;
    return transport instanceof StdioTransport ? (transport.pid ?? undefined) : undefined;
  }

  /**
   * Starts the server and does the handshake. Over HTTP the SDK probes which revision the server supports. A child gets
   * the 2025 handshake first, which nearly all servers support, and the 2026 one when it refuses. Some servers exit on
   * a probe, and a second process would be needed.
   *
   * @throws Error with the server's own message where it has one; the caller must then close the connection
   */
  async open(): Promise<void> {
    try {
      await this.#connect(this.#options.spec.link.kind === 'http' ? 'auto' : 'legacy');
    } catch (thrown) {
      const signIn = this.#signInOf(thrown);
      if (signIn) throw signIn;
      const first = this.#explain(thrown);
      // A child that answers with an error may support only the newer handshake.
      if (this.#closing || this.#options.spec.link.kind === 'http' || !(thrown instanceof ProtocolError)) throw first;
      await this.#wire?.close();
      // The connection may have been closed meanwhile.
      if (this.#closing) throw first;
      try {
        await this.#connect({ pin: MODERN });
      } catch (again) {
        throw new Error(`${first.message}; with ${MODERN}: ${this.#explain(again).message}`);
      }
    }
    // Closed while the last answer was in transit.
    if (this.#closing) throw new Error('it was stopped');
    this.#isOpen = true;
  }

  async #connect(mode: VersionNegotiationMode): Promise<void> {
    const wire = this.#makeWire();
    this.#wire = wire;
    const { onToolsChanged, extensions, asksPerson } = this.#options;
    const changed = () => {
      if (this.#isOpen) onToolsChanged();
    };
    const client = new Client(
      { name: 'reveille', version: VERSION },
      {
        capabilities: {
          ...(extensions && { extensions }),
          ...(asksPerson && { elicitation: { form: {}, url: {} } }),
        },
        listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } },
        versionNegotiation: { mode },
      },
    );
    // Also for servers that send notifications they did not announce.
    client.setNotificationHandler('notifications/tools/list_changed', changed);
    if (asksPerson) client.setRequestHandler('elicitation/create', ({ params }) => this.#onQuestion(params));
    client.onerror = (error) => this.#onError(error);
    client.onclose = () => {
      if (this.#wire === wire) this.#onClose(wire.ending() ?? 'hung up');
    };
    this.#client = client;
    wire.transport.onmessage = (_message: JSONRPCMessage) => {
      if (this.#flood.message()) this.fail('sent too many unsolicited messages');
    };
    await client.connect(wire.transport, NO_LIMIT);
  }

  #makeWire(): Wire {
    const { spec, cwd, sandbox, clock, output } = this.#options;
    const { link } = spec;
    if (link.kind === 'stdio') {
      const transport = new StdioTransport({ link, cwd, sandbox, clock, output, answers: this.#answers });
      return { transport, ending: () => transport.ending, close: () => transport.close() };
    }
    output.clearLast();
    const onTooLong = (reason: string) => this.fail(reason);
    const { transport, destroy } = httpWire(link, this.#answers, onTooLong, this.#authorization);
    const close = async () => {
      const sessionEnd = withDeadline(clock, SESSION_END_MS, undefined, () => transport.terminateSession());
      await sessionEnd.catch((error: unknown) => {
        output.line('host', `the session was not ended: ${describeError(error)}`);
      });
      await transport.close();
      await destroy();
    };
    return { transport, ending: () => undefined, close };
  }

  #onError(error: Error): void {
    this.#options.output.line('host', describeError(error));
    // The failed call reports the missing sign-in.
    if (this.#signInOf(error)) return;
    if (this.#isOpen && !this.#closing) this.#options.onSuspectedLoss();
  }

  #onClose(ending: string): void {
    // Until the connection is open, `open` reports the error.
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#ending ??= ending;
    this.#options.onClosed(this.#ending);
  }

  /** Explains a failed start. The server's last output says more than the error of the closed pipe. */
  #explain(thrown: unknown): Error {
    const { output, spec } = this.#options;
    const ending = this.#ending ?? this.#wire?.ending();
    const lastOutput = output.lastOutput;
    let text = ending ? `it ${ending}` : describeError(thrown);
    for (const secret of spec.secrets) if (secret.length >= 6) text = text.replaceAll(secret, '[hidden]');
    // No cause: the text contains it already, and `describeError` would repeat it.
    return new Error(lastOutput === '' ? text : `${text}; its last output: ${lastOutput}`);
  }

  /** The missing sign-in that caused an error; `undefined` for other errors. */
  #signInOf(thrown: unknown): SignInRequired | undefined {
    if (thrown instanceof InsufficientScopeError) return this.#authorization?.insufficient(thrown);
    if (this.#authorization && thrown instanceof SdkHttpError && thrown.status === 401)
      return new SignInRequired('the server does not accept the sign-in');
    return signInRequired(thrown);
  }

  /**
   * Passes a question of the server on to the conversation of its call. If the call is not certain, the question gets
   * `cancel`, because it must not reach another user.
   */
  async #onQuestion(params: ElicitRequestParams): Promise<ElicitResult> {
    const { output } = this.#options;
    const call = this.#ofCall.getStore() ?? this.#onlyCall();
    const read = readQuestion(params);
    if ('refusal' in read) {
      output.line('host', `a question of the server was refused: ${read.refusal}`);
      return { action: 'decline' };
    }
    if (call?.ask === undefined || call.signal.aborted) return { ...NOT_ASKED };
    if (++call.asked > QUESTIONS_PER_CALL || this.#openQuestions >= QUESTIONS_AT_ONCE) {
      if (call.asked === QUESTIONS_PER_CALL + 1) output.line('host', 'the server asks too many questions');
      return { ...NOT_ASKED };
    }
    this.#openQuestions++;
    try {
      return { ...(await call.ask(read.question, call.signal)) };
    } finally {
      this.#openQuestions--;
    }
  }

  /** The newest running call, if all running calls have the same audience. */
  #onlyCall(): RunningCall | undefined {
    const calls = [...this.#calls];
    return calls.every(({ audience }) => audience === calls[0]!.audience) ? calls.at(-1) : undefined;
  }

  /** Ends the connection because of an error of the server. @param reason finishes the sentence "the server …" */
  fail(reason: string): void {
    this.#ending ??= reason;
    void this.close();
  }

  /** Lists the tools again, all pages. @throws Error when there is no answer, or the pages do not end */
  async listTools(signal: AbortSignal): Promise<ToolDefinition[]> {
    const client = this.#client!;
    // The SDK would write a line to stdout about it.
    if (!client.getServerCapabilities()?.tools) return [];
    // The SDK would use cached tools to check results; see below.
    const { tools } = await client.listTools(undefined, { ...NO_LIMIT, signal, cacheMode: 'bypass' });
    this.#flood.answered();
    if (tools.length > MOST_TOOLS) throw new Error(`it has ${tools.length} tools; at most ${MOST_TOOLS} are accepted`);
    return tools.map((tool) => definitionOf(tool as ToolDefinition));
  }

  /**
   * Calls a tool. Throws the errors of the SDK.
   *
   * @param slot receives the digest of the answer; with a slot exactly one request is sent, and a server that requires
   *   more input is not called again
   * @throws InputRequired only with a slot
   */
  async call(
    { name, inputSchema }: ToolDefinition,
    args: Readonly<Record<string, unknown>>,
    {
      signal,
      slot,
      user,
      conversation,
      ask,
    }: {
      signal: AbortSignal;
      slot?: AnswerSlot | undefined;
      user?: string | undefined;
      conversation?: string | undefined;
      /** Answers the questions of the server during this call. */
      ask?: AskPerson | undefined;
    },
  ): Promise<CallToolResult> {
    const running: RunningCall = { ask, signal, audience: JSON.stringify([user, conversation]), asked: 0 };
    this.#calls.add(running);
    try {
      return await this.#ofCall.run(running, async () => {
        const once = () => this.#call({ name, inputSchema }, args, { signal, slot, user, conversation });
        return await once().catch(async (thrown: unknown) => {
          if (!(thrown instanceof UrlElicitationRequiredError) || slot) throw thrown;
          // The server refuses the call until the user has opened its addresses.
          for (const elicitation of thrown.elicitations) {
            const { action } = await this.#onQuestion(elicitation);
            if (action !== 'accept') throw thrown;
          }
          return await once();
        });
      });
    } catch (thrown) {
      throw this.#signInOf(thrown) ?? thrown;
    } finally {
      this.#calls.delete(running);
    }
  }

  async #call(
    { name, inputSchema }: Pick<ToolDefinition, 'name' | 'inputSchema'>,
    args: Readonly<Record<string, unknown>>,
    {
      signal,
      slot,
      user,
      conversation,
    }: {
      signal: AbortSignal;
      slot: AnswerSlot | undefined;
      user: string | undefined;
      conversation: string | undefined;
    },
  ): Promise<CallToolResult> {
    // The input schema may require that some arguments also travel as headers. Without an output schema the result is
    // not checked: a result that fails the check would be lost after the tool has run.
    const toolDefinition = { name, inputSchema } as Tool;
    const options = { ...NO_LIMIT, signal, toolDefinition };
    const wantsConversation =
      this.#client!.getServerCapabilities()?.experimental?.[CONVERSATION_CAPABILITY] !== undefined;
    const meta = {
      ...(this.#options.spec.isPerUser && user !== undefined && { [USER_META]: user }),
      ...(wantsConversation && conversation !== undefined && { [CONVERSATION_META]: conversation }),
      ...traceHeaders(),
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
    if (isInputRequiredResult(result)) throw new InputRequired();
    return result;
  }

  /**
   * Sends a request of an extension, once.
   *
   * @returns the JSON text of its result, with all its digits
   * @throws ProtocolError the server's own error
   */
  async request(method: string, params: Record<string, unknown>, signal: AbortSignal): Promise<string> {
    const slot: AnswerSlot = { isWhole: true };
    const call = () => this.#client!.request({ method, params }, z.looseObject({}), { ...NO_LIMIT, signal });
    await this.#answers.during(slot, call);
    this.#flood.answered();
    if (slot.raw?.source === undefined) throw new Error('its answer could not be read');
    return slot.raw.source;
  }

  /** Sends a ping. Any answer counts, even an error. @throws Error when there is no answer */
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

  /** Ends the connection; pending requests fail at once. Resolves when a child and its process group have ended. */
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

/** The progress notifications of many concurrent calls stay far below this. */
const MOST_MESSAGES = 10_000;
const WINDOW_MS = 10_000;

class FloodGuard {
  readonly #clock: Clock;
  #windowFrom: number;
  #unsolicited = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#windowFrom = clock.monotonic();
  }

  /** Counts a received message. @returns whether there are too many */
  message(): boolean {
    const now = this.#clock.monotonic();
    if (now - this.#windowFrom > WINDOW_MS) {
      this.#windowFrom = now;
      this.#unsolicited = 0;
    }
    return ++this.#unsolicited > MOST_MESSAGES;
  }

  /** One of the messages was the answer to one of our requests. */
  answered(): void {
    if (this.#unsolicited > 0) this.#unsolicited--;
  }
}
