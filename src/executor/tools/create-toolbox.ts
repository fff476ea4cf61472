/** The executor's tools: the servers of its own manifest, which Neo does not see. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Sandbox } from '../../kit/process/isolation.ts';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { classify, unpinnedWarning } from '../../mcp-host/classify.ts';
import { hasServersToStart, readLockedManifest, rejectAnyDrift } from '../../mcp-host/drift.ts';
import type { HostLimits } from '../../mcp-host/limits.ts';
import type { Manifest } from '../../mcp-host/manifest.ts';
import type { ToolResult } from '../../mcp-host/output-cap.ts';
import { type HostedTool, type ServerPool, SIGN_IN_COMMAND, startManifest } from '../../mcp-host/server-pool.ts';
import { ToolCallFailure } from '../../mcp-host/tool-call-failure.ts';
import { digestOf } from '../../mcp-host/tool-definition.ts';
import { editDistance } from '../../wire/edit-distance.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { parseUntrustedJson } from '../../wire/json.ts';
import type { Settings } from '../../wire/settings.ts';
import { railMismatches, railProblems } from './rail-check.ts';
import { type CallReport, type RailTool, splitName, type Toolbox } from './toolbox.ts';

type ToolboxOptions = {
  /** The executor's own manifest; `bundled` is the one of the package. */
  manifest: { readonly path: string } | 'bundled';
  /** The workspace of the manifest's servers; created, and passed as EXECUTOR_WORKSPACE. None by default. */
  workspace?: string | undefined;
  /** The environment that references in the manifest read and from which servers get an allow-list. */
  variables: Settings;
  /** The sandbox of servers that run as child processes. */
  sandbox?: Sandbox | undefined;
  /** The folder of `mcp-logs/` and `tool-output/`. */
  dataDir: string;
  clock: Clock;
  log: Logger;
  signal?: AbortSignal | undefined;
  /** Called before a call of a server that acts for several users. @throws ReveilleError when it cannot act for this one */
  beforeUser?: ((user: string) => void) | undefined;
  /** Limits that override those of the manifest. */
  limits?: Partial<HostLimits> | undefined;
};

const nameOf = (alias: string, tool: string) => `${alias}/${tool}`;

/** Refuses a manifest with inconsistent declarations for the executor. */
function inspect({ path, servers }: Manifest): void {
  const problems = servers.flatMap(({ alias, tools }) => {
    const declared = [...(tools?.values() ?? [])];
    const neighbours = new Map(declared.map((tool) => [tool.name, { ...tool, surface: classify(tool).surface }]));
    return declared.flatMap(({ name, rail }) =>
      (rail ? railProblems(rail, neighbours, neighbours.get(name)!) : []).map(
        (problem) => `${path}: ${nameOf(alias, name)}: ${problem}`,
      ),
    );
  });
  if (problems.length > 0) throw new ReveilleError('invalid_request', problems.join('\n'));
}

/** The usable tools, and sentences about the unusable ones. */
type Bound = {
  readonly tools: ReadonlyMap<string, RailTool>;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
};

function bind(hosted: readonly HostedTool[]): Bound {
  const found = hosted.map(({ alias, tool, uri, definition, sideEffectClass, surface: declared, rail, isPinned }) => {
    const { annotations } = definition;
    const classified = classify({ name: tool, surface: declared, sideEffectClass, annotations });
    const { surface } = classified;
    const name = nameOf(alias, tool);
    const definitionSha256 = digestOf(definition);
    const warning = unpinnedWarning(name, classified, isPinned);
    return { alias, tool, warning, entry: { name, uri, definition, definitionSha256, surface, sideEffectClass, rail } };
  });
  const tools = new Map<string, RailTool>();
  const problems: string[] = [];
  for (const { alias, entry } of found) {
    const neighbours = new Map(found.flatMap((one) => (one.alias === alias ? [[one.tool, one.entry]] : [])));
    const wrong = entry.rail ? railMismatches(entry.rail, entry.definition, neighbours) : [];
    problems.push(...wrong.map((problem) => `${entry.name}: ${problem}`));
    if (wrong.length === 0) tools.set(entry.name, entry);
  }
  return { tools, problems, warnings: found.flatMap(({ warning }) => warning ?? []) };
}

class HostedToolbox implements Toolbox {
  readonly manifestSha256: string;
  readonly #pool: ServerPool;
  #hosted: readonly HostedTool[] = [];
  #latest: Bound = { tools: new Map(), problems: [], warnings: [] };

  readonly #perUser: ReadonlySet<string>;
  readonly #beforeUser: ToolboxOptions['beforeUser'];

  constructor(pool: ServerPool, manifest: Manifest, beforeUser: ToolboxOptions['beforeUser']) {
    this.#pool = pool;
    this.#perUser = new Set(manifest.servers.flatMap(({ alias, isPerUser }) => (isPerUser ? [alias] : [])));
    this.#beforeUser = beforeUser;
    this.manifestSha256 = manifest.sha256;
  }

  /** Computed again only when the pool's tools have changed. */
  get bound(): Bound {
    const hosted = this.#pool.tools();
    if (hosted !== this.#hosted) {
      this.#latest = bind(hosted);
      this.#hosted = hosted;
    }
    return this.#latest;
  }

  tools(): readonly RailTool[] {
    return [...this.bound.tools.values()];
  }

  find(name: string): RailTool | undefined {
    return this.bound.tools.get(name);
  }

  absence(name: string): string {
    const { tools, problems } = this.bound;
    const [alias] = splitName(name);
    const server = this.#pool.servers().find((one) => one.alias === alias);
    const ownProblem = problems.find((problem) => problem.startsWith(`${name}: `));
    const problem = server?.problem === undefined ? ownProblem : `server "${alias}" ${server.problem}`;
    return absenceText(name, [...tools.keys()], problem);
  }

  async call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    { signal, definitionSha256, user }: Parameters<Toolbox['call']>[2],
  ): ReturnType<Toolbox['call']> {
    if (!this.find(name)) return { status: 'not_run', message: this.absence(name) };
    const [alias, tool] = splitName(name);
    try {
      if (this.#perUser.has(alias)) this.#beforeUser?.(user);
    } catch (thrown) {
      return { status: 'not_run', message: `it cannot be called for ${user}: ${thrownText(thrown)}` };
    }
    const options = { signal, definitionSha256, once: true, user };
    try {
      return reportOf(await this.#pool.call(alias, tool, args, options));
    } catch (thrown) {
      return reportOfFailure(thrown);
    }
  }

  warnings(): readonly string[] {
    const { problems, warnings } = this.bound;
    return [...this.#pool.warnings(), ...warnings, ...problems.map((problem) => `${problem}; the tool is left out`)];
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

const manifestPathOf = (manifest: ToolboxOptions['manifest']) =>
  manifest === 'bundled' ? bundledManifest('executor') : manifest.path;

/**
 * Compares the manifest with the lock and registry files, before any server is started.
 *
 * @returns whether servers must be started for the comparison
 * @throws ReveilleError `invalid_request` for a wrong manifest or lock, including its declarations for the executor;
 *   `conflict` naming each difference
 */
export function mustStart(manifest: ToolboxOptions['manifest'], variables: Settings): boolean {
  const files = readLockedManifest(manifestPathOf(manifest), variables);
  inspect(files.manifest);
  rejectAnyDrift(files);
  return hasServersToStart(files);
}

/**
 * Starts the servers of the manifest.
 *
 * @throws ReveilleError `invalid_request` for a wrong manifest or lock, including its declarations for the executor,
 *   before any server is started. Throws `conflict` when tools differ from the declared and pinned ones, or contradict
 *   the manifest; `unavailable` when a required server does not start
 */
export async function createToolbox(options: ToolboxOptions): Promise<Toolbox> {
  const { manifest: given, workspace, beforeUser, ...rest } = options;
  const folders = workspace === undefined ? {} : { EXECUTOR_WORKSPACE: workspace };
  const { pool, manifest } = await startManifest({
    ...rest,
    manifestPath: manifestPathOf(given),
    signInCommand: `${SIGN_IN_COMMAND} --executor`,
    inspect,
    folders,
    variables: { ...options.variables, ...folders },
  });
  const toolbox = new HostedToolbox(pool, manifest, beforeUser);
  const { problems } = toolbox.bound;
  if (problems.length === 0) return toolbox;
  await pool.close();
  const lines = problems.map((problem) => `${manifest.path}: ${problem}`);
  throw new ReveilleError('conflict', lines.join('\n'));
}

const MOST_NAMES = 20;

const serverOf = (name: string) => splitName(name)[0];
const toolOf = (name: string) => splitName(name)[1].toLowerCase();

/** Similar names, the nearest first. */
function nearNames(name: string, available: readonly string[]): string[] {
  const wanted = toolOf(name.slice(0, 200));
  const maxDistance = Math.max(2, Math.floor(wanted.length / 3));
  return available
    .map((one) => ({ one, steps: editDistance(wanted, toolOf(one)) }))
    .filter(({ one, steps }) => steps <= maxDistance || toolOf(one).includes(wanted) || wanted.includes(toolOf(one)))
    .sort((a, b) => a.steps - b.steps || (a.one < b.one ? -1 : 1))
    .map(({ one }) => one)
    .slice(0, 3);
}

/** The sentence about a missing tool. @param problem the problem of its server or of the tool, if there is one */
function absenceText(name: string, available: readonly string[], problem: string | undefined): string {
  const quoted = JSON.stringify(name.slice(0, 200));
  if (problem !== undefined) return `${quoted} is not available: ${problem}`;
  const near = nearNames(name, available);
  if (available.length === 0) return `there is no tool ${quoted}, and no other tool either`;
  const meant = near.length > 0 ? ` (did you mean ${near.join(' or ')}?)` : '';
  const list = (names: readonly string[]) =>
    names.slice(0, MOST_NAMES).join(', ') + (names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : '');
  const alias = serverOf(name);
  const sameServer = available.filter((one) => serverOf(one) === alias);
  if (available.length <= MOST_NAMES) return `there is no tool ${quoted}${meant}; the tools are ${list(available)}`;
  if (sameServer.length > 0) return `there is no tool ${quoted}${meant}; the tools of ${alias} are ${list(sameServer)}`;
  return `there is no tool ${quoted}${meant}; the servers are ${list([...new Set(available.map(serverOf))])}`;
}

function textOf({ content }: ToolResult): string {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  return texts.join('\n\n').toWellFormed();
}

/** Servers of older MCP revisions have no structured content and write the same JSON as their only text. */
function structuredOf({ content, structuredContent }: ToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent;
  const [only, ...more] = content;
  if (only?.type !== 'text' || more.length > 0 || !/^\s*[[{]/.test(only.text)) return undefined;
  try {
    return parseUntrustedJson(only.text);
  } catch {
    return undefined;
  }
}

/** @param result of a call that was made `once` */
export function reportOf(result: ToolResult): CallReport {
  const text = textOf(result);
  const { withoutResult, raw, isError } = result;
  if (withoutResult === 'unsent') return { status: 'not_run', message: text };
  if (withoutResult === 'unclear') return { status: 'unknown', message: text };
  if (raw === undefined)
    return { status: 'unknown', message: 'an answer came whose bytes could not be separated from others' };
  const structured = withoutResult === undefined ? structuredOf(result) : undefined;
  const source = withoutResult === undefined ? raw.source : undefined;
  return { status: 'answered', isError, text, structured, source, rawSha256: raw.sha256, rawBytes: raw.bytes };
}

/** @param thrown by the call */
function reportOfFailure(thrown: unknown): CallReport {
  const message = thrownText(thrown);
  const isCertain = thrown instanceof ToolCallFailure && !thrown.mayHaveRun;
  return { status: isCertain ? 'not_run' : 'unknown', message };
}
