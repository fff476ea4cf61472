/**
 * The servers of a manifest and their tools as one set: concurrent start, function names, calls by name, status.
 * Daemons use this module; the other files of this folder are its parts.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Sandbox } from '../kit/process/isolation.ts';
import { type ErrorCode, ReveilleError, thrownText } from '../wire/errors.ts';
import type { Rail, SideEffectClass, ToolSurface } from '../wire/manifest.ts';
import { writeToolUri } from '../wire/tool-uri.ts';
import { bundledPrograms, programFolders } from './bundled-programs.ts';
import { offeredBeforeStart, pinsOf, readLockedManifest, rejectDrift } from './drift.ts';
import { bindNames } from './function-names.ts';
import { HostedServer, type ServerState, type StartOutcome } from './hosted-server.ts';
import { describeLimits, type HostLimits, resolveLimits } from './limits.ts';
import type { Manifest, ServerSpec } from './manifest.ts';
import { TokenStore } from './oauth/token-store.ts';
import { capOutput, inBandError, SpillFolder, spillFolderPath, type ToolResult } from './output-cap.ts';
import type { Variables } from './references.ts';
import { SeenTools } from './seen-tools.ts';
import { ServerLog } from './server-log.ts';
import type { CallOptions } from './tool-calls.ts';
import type { ToolDefinition } from './tool-definition.ts';
import type { KnownTools, ToolLock } from './tool-lock.ts';

export type ServerPoolOptions = Partial<HostLimits> & {
  clock: Clock;
  log: Logger;
  /** Contains `mcp-logs/<alias>.log` and `tool-output/`. */
  dataDir: string;
  /** The pinned definitions; servers that it does not name are not pinned. */
  lock?: ToolLock;
  /** The definitions behind the pins, by alias. Servers that may start at their first call do so. */
  known?: KnownTools | undefined;
  /** Working directory of child servers; that of this process by default. */
  cwd?: string;
  /** Paths that child servers must not see. */
  sandbox?: Sandbox | undefined;
  /** Programs by their manifest name that need not be on the PATH: `reveille` itself. */
  programs?: Readonly<Record<string, readonly [string, ...string[]]>>;
  /** Paths that a sandboxed server may read besides the programs of the system. */
  programFolders?: readonly string[];
  /** Aborts a running start. */
  signal?: AbortSignal;
  /** Whether calls may ask the user, with `ask`. */
  asksPerson?: boolean | undefined;
  /** The command with which the user signs in; the alias of the server follows it. */
  signInCommand?: string | undefined;
};

/** A tool that can be called now. */
export type HostedTool = {
  alias: string;
  /** The server's own name for it. */
  tool: string;
  /** The model's name for it. */
  functionName: string;
  uri: string;
  definition: ToolDefinition;
  /** As the manifest declares them. */
  sideEffectClass: SideEffectClass | undefined;
  surface: ToolSurface | undefined;
  rail: Rail | undefined;
  timeoutMs: number;
  /** Whether its definition is pinned. */
  isPinned: boolean;
};

export type ServerStatus = {
  alias: string;
  state: ServerState;
  problem: string | undefined;
  tools: number;
  restarts: number;
  /** Of a child, the leader of its process group. */
  pid: number | undefined;
  /** The file with its stderr output. */
  log: string;
};

/** The command of Neo's servers. */
export const SIGN_IN_COMMAND = 'reveille neo server login';

const DRAIN_MS = 5000;
/** The version of a server that has none. */
const NO_VERSION = '0.0.0';
/** The entry of a tool that the manifest does not name. */
const UNDECLARED = { sideEffectClass: undefined, surface: undefined, rail: undefined };

/** A server whose program path is known. */
function withProgram(spec: ServerSpec, { programs = {}, programFolders = [] }: ServerPoolOptions): ServerSpec {
  const { link } = spec;
  if (link.kind !== 'stdio') return spec;
  const [program, ...args] = link.command;
  if (!Object.hasOwn(programs, program)) return spec;
  const view = link.sandboxView && { ...link.sandboxView, readable: programFolders };
  return { ...spec, link: { ...link, command: [...programs[program]!, ...args], sandboxView: view } };
}

/** The error that stops the start with this outcome; `undefined` when it continues. */
function fatalReason({ alias, required }: ServerSpec, outcome: StartOutcome): string[] {
  if (outcome.ready) return [];
  if (outcome.differences) return outcome.differences.map((difference) => `server "${alias}": ${difference}`);
  return required ? [`server "${alias}" is required and did not start: ${outcome.reason}`] : [];
}

/** Whether its tools can be called. */
const isAvailable = ({ state }: HostedServer) => state === 'ready' || state === 'idle';

export class ServerPool {
  readonly #options: ServerPoolOptions;
  readonly #limits: HostLimits;
  readonly #servers: ReadonlyMap<string, HostedServer>;
  readonly #logs = new Map<string, string>();
  readonly #spill: SpillFolder;
  readonly #seen: SeenTools;
  readonly #signIns: TokenStore;
  readonly #listeners = new Set<() => void>();
  #tools: readonly HostedTool[] = [];
  /** Between start and end; changes before and after are not reported. */
  #isRunning = false;
  #closing: Promise<void> | undefined;

  private constructor(manifest: Manifest, options: ServerPoolOptions) {
    this.#options = options;
    this.#limits = resolveLimits(options);
    this.#spill = new SpillFolder(spillFolderPath(options.dataDir));
    this.#seen = new SeenTools(options.dataDir, options.log);
    this.#signIns = new TokenStore(options.dataDir, options.clock);
    this.#servers = new Map(manifest.servers.map((spec) => [spec.alias, this.#host(withProgram(spec, options))]));
  }

  /**
   * Starts every server concurrently and waits until each is ready or has failed. A failed server gives a warning and
   * is restarted in the background. A server that lists a tool twice gives a warning and stays off, where nothing is
   * declared or pinned.
   *
   * @throws ReveilleError `conflict` naming every difference when a server's tools differ from the declared and pinned
   *   ones, or when two tools get the same name; `unavailable` when a required server does not start. Every server is
   *   stopped then.
   */
  static async start(manifest: Manifest, options: ServerPoolOptions): Promise<ServerPool> {
    const pool = new ServerPool(manifest, options);
    const { signal } = options;
    const abort = () => void pool.close();
    if (signal?.aborted) abort();
    signal?.addEventListener('abort', abort, { once: true });
    try {
      const servers = [...pool.#servers.values()];
      const outcomes = await Promise.all(servers.map((server) => server.start()));
      const fatal = servers.flatMap(({ spec }, index) => fatalReason(spec, outcomes[index]!));
      const collisions = bindNames(pool.#availableTools()).collisions.map(
        ({ name, tools: [one, other] }) =>
          `${one.alias}/${one.tool} and ${other.alias}/${other.tool} both have the function name ${name}; rename one of the aliases`,
      );
      const isMismatch = collisions.length > 0 || outcomes.some((outcome) => !outcome.ready && outcome.differences);
      const code: ErrorCode = isMismatch ? 'conflict' : 'unavailable';
      if (signal?.aborted) throw new ReveilleError('unavailable', 'the start of the MCP servers was cancelled');
      if (fatal.length + collisions.length > 0) {
        throw new ReveilleError(code, [...fatal, ...collisions].join('\n'), { retryable: false });
      }
      pool.#isRunning = true;
      pool.#rebuild();
      return pool;
    } catch (thrown) {
      await pool.close();
      throw thrown;
    } finally {
      signal?.removeEventListener('abort', abort);
    }
  }

  /** The tools that can be called now, sorted by function name. The array changes only when they do. */
  tools(): readonly HostedTool[] {
    return this.#tools;
  }

  /** The current problems, one sentence for each server that is not ready or has changed while unpinned. */
  warnings(): string[] {
    return [...this.#servers.values()].flatMap(({ spec: { alias }, state, problem, changes }) => {
      if (state === 'off') return [];
      // `signedOut` lists them too, with the command for the user. This line is for the model.
      const remedy = `review it with "reveille neo server review ${alias}", or run "reveille tools pin" with its manifest`;
      return [
        ...(problem === undefined ? [] : [`server "${alias}" ${problem}`]),
        ...(changes.length === 0
          ? []
          : [`server "${alias}" is not pinned and has changed its tools: ${changes.join('; ')}; ${remedy}`]),
      ];
    });
  }

  /** The servers with a missing requirement, and its remedy. */
  off(): { alias: string; why: string }[] {
    return [...this.#servers.values()].flatMap(({ spec: { alias, unmetNeed: lack }, state }) =>
      state === 'off' && lack !== undefined ? [{ alias, why: lack }] : [],
    );
  }

  /** The servers that need a sign-in, each with the reason. */
  signedOut(): { alias: string; why: string }[] {
    return [...this.#servers.values()].flatMap(({ spec: { alias }, state, problem }) =>
      state === 'signed_out' && problem !== undefined ? [{ alias, why: problem }] : [],
    );
  }

  /** The effective limits as text. */
  limits(): string {
    return describeLimits(this.#limits);
  }

  /** The status of each server, in the order of the manifest. */
  servers(): ServerStatus[] {
    return [...this.#servers.values()].map(({ spec, state, problem, definitions, restarts, pid }) => ({
      alias: spec.alias,
      state,
      problem,
      tools: definitions.length,
      restarts,
      pid,
      log: this.#logs.get(spec.alias)!,
    }));
  }

  /** Called after tools, states or warnings have changed. @returns a function that unsubscribes */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Calls a tool within its time limit.
   *
   * @param args numbers beyond the precision of JavaScript may be given as `JSON.rawJSON` objects
   * @param options with `definitionSha256` a tool whose definition has changed is not called; with `once` exactly one
   *   request is sent, and the result carries the digest of its answer
   * @returns its result with capped text; a missing tool answers in-band
   * @throws ToolCallFailure when there is no answer, saying whether the tool may have run
   */
  async call(
    alias: string,
    tool: string,
    args: Readonly<Record<string, unknown>>,
    options: { signal?: AbortSignal } & Pick<
      CallOptions,
      'definitionSha256' | 'once' | 'user' | 'conversation' | 'ask'
    > = {},
  ): Promise<ToolResult> {
    const server = this.#servers.get(alias);
    const unsent = (inBand: string) => inBandError({ inBand, withoutResult: 'unsent' });
    if (!server) return unsent(`there is no server ${JSON.stringify(alias)}`);
    const isKnown = server.definitions.some(({ name }) => name === tool);
    if (isAvailable(server) && !isKnown) return unsent(`server "${alias}" has no tool ${JSON.stringify(tool)}`);
    const { signal, ...about } = options;
    const timeoutMs = this.#timeoutOf(server, tool);
    const { raw, ...outcome } = await server.call(tool, args, { timeoutMs, signal, ...about });
    const result =
      'inBand' in outcome ? inBandError(outcome) : capOutput(outcome.result, this.#limits.outputTokens, this.#spill);
    return raw === undefined ? result : { ...result, raw };
  }

  /**
   * Refuses new calls, waits up to five seconds for running ones, and ends every server. Resolves when all have ended.
   */
  close(): Promise<void> {
    this.#isRunning = false;
    this.#closing ??= Promise.all([...this.#servers.values()].map((server) => server.close(DRAIN_MS))).then(() => {
      this.#tools = [];
    });
    return this.#closing;
  }

  #host(spec: ServerSpec): HostedServer {
    const { clock, log, dataDir, cwd, sandbox, lock, known, asksPerson = false } = this.#options;
    const { signInCommand = SIGN_IN_COMMAND } = this.#options;
    const { startTimeoutMs, healthIntervalMs, healthTimeoutMs, restartDelayMs } = this.#limits;
    const { alias, secrets } = spec;
    const output = new ServerLog({ folder: join(dataDir, 'mcp-logs'), alias, secrets, clock, log });
    this.#logs.set(alias, output.path);
    return new HostedServer({
      spec,
      pins: pinsOf(lock, alias),
      known: offeredBeforeStart(spec, { lock, known }),
      seen: this.#seen,
      ...{ signIns: this.#signIns, signInCommand: `${signInCommand} ${spec.alias}`, asksPerson },
      cwd,
      sandbox,
      clock,
      log,
      output,
      ...{ startTimeoutMs, healthIntervalMs, healthTimeoutMs, restartDelayMs },
      onChange: () => this.#onChange(),
    });
  }

  #timeoutOf({ spec }: HostedServer, tool: string): number {
    return spec.tools?.get(tool)?.timeoutMs ?? this.#limits.callTimeoutMs;
  }

  /** The tools of all ready servers, without their function names. */
  #availableTools(): Omit<HostedTool, 'functionName'>[] {
    return [...this.#servers.values()].filter(isAvailable).flatMap((server) => {
      const { alias, version = server.serverVersion ?? NO_VERSION, tools } = server.spec;
      return server.definitions.map((definition) => {
        const tool = definition.name;
        const { sideEffectClass, surface, rail } = tools?.get(tool) ?? UNDECLARED;
        const uri = writeToolUri({ alias, tool, version });
        const timeoutMs = this.#timeoutOf(server, tool);
        const isPinned = pinsOf(this.#options.lock, alias) !== undefined;
        return { alias, tool, uri, definition, sideEffectClass, surface, rail, timeoutMs, isPinned };
      });
    });
  }

  #rebuild(): void {
    const { byName, collisions } = bindNames(this.#availableTools());
    this.#tools = [...byName]
      .map(([functionName, tool]) => ({ ...tool, functionName }))
      .sort((one, other) => (one.functionName < other.functionName ? -1 : 1));
    for (const { name, tools } of collisions) {
      const [one, other] = tools.map(({ alias, tool }) => `${alias}/${tool}`);
      this.#servers.get(tools[1].alias)?.quarantine([`${one} and ${other} both have the function name ${name}`]);
    }
  }

  #onChange(): void {
    if (!this.#isRunning) return;
    this.#rebuild();
    for (const listener of this.#listeners) listener();
  }
}

type ManifestStart = {
  manifestPath: string;
  /** The values for references in the manifest; servers get an allow-list of them. */
  variables: Variables;
  /** Contains `mcp-logs/` and `tool-output/`. */
  dataDir: string;
  clock: Clock;
  log: Logger;
  /** Cancels the start. */
  signal?: AbortSignal | undefined;
  /** Limits that override those of the manifest. */
  limits?: Partial<HostLimits> | undefined;
  /** Whether the lock beside the manifest is enforced if it exists; true by default. */
  pinned?: boolean;
  /** Also starts servers that could wait for their first call: for a check of the whole configuration. */
  eager?: boolean | undefined;
  /** Starts only these servers and accepts their tools, whatever the manifest declares: for a review by a person. */
  only?: ReadonlySet<string> | undefined;
  /** More folders that servers need, by their names in error messages. */
  folders?: Readonly<Record<string, string>>;
  /** Paths that child servers must not see. */
  sandbox?: Sandbox | undefined;
  /** Whether calls may ask the user. */
  asksPerson?: boolean | undefined;
  /** The command with which the user signs in; the alias of the server follows it. */
  signInCommand?: string | undefined;
  /** Inspects the manifest before anything is started. @throws ReveilleError to cancel the start */
  inspect?: (manifest: Manifest) => void;
};

function makeFolder(name: string, folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    throw new ReveilleError('unavailable', `${name} ${folder} cannot be created: ${thrownText(cause)}`, { cause });
  }
}

const forReview = (servers: Manifest['servers'], only: ReadonlySet<string>) =>
  servers.flatMap((spec) => (only.has(spec.alias) ? [{ ...spec, tools: undefined, required: false }] : []));

/**
 * @throws ReveilleError `invalid_request`: the manifest or lock is invalid, and nothing is started. `conflict`: a
 *   server's tools differ from the declared and pinned ones. `unavailable`: a required server does not start.
 */
export async function startManifest(start: ManifestStart): Promise<{ pool: ServerPool; manifest: Manifest }> {
  const { manifestPath, variables, dataDir, clock, log, signal } = start;
  const { manifest: whole, lock, known } = readLockedManifest(manifestPath, variables, start.pinned);
  const { only } = start;
  const manifest = only === undefined ? whole : { ...whole, servers: forReview(whole.servers, only) };
  start.inspect?.(manifest);
  if (lock && only === undefined) rejectDrift({ manifest, lock });
  for (const [name, folder] of Object.entries(start.folders ?? {})) makeFolder(name, folder);
  // A files server that serves this folder does not start without it.
  makeFolder('the folder for tool output', spillFolderPath(dataDir));
  const pool = await ServerPool.start(manifest, {
    ...{ clock, log, dataDir, sandbox: start.sandbox, programs: bundledPrograms(), programFolders: programFolders() },
    ...(lock && { lock }),
    ...(!start.eager && only === undefined && { known }),
    ...(signal && { signal }),
    ...{ asksPerson: start.asksPerson, signInCommand: start.signInCommand },
    ...resolveLimits(start.limits, manifest.limits),
  });
  return { pool, manifest };
}
