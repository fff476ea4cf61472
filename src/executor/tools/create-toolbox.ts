/** The executor's tools: the servers of its own manifest, which Neo does not see. */
import type { Clock } from '../../kit/clock/clock.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Walls } from '../../kit/process/separation.ts';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { classify, warningOf } from '../../mcp-host/classify.ts';
import type { Manifest } from '../../mcp-host/manifest.ts';
import type { HostedTool, ServerPool } from '../../mcp-host/server-pool.ts';
import { startManifest } from '../../mcp-host/start-manifest.ts';
import { digestOf } from '../../mcp-host/tool-definition.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { absenceWords } from './absence.ts';
import { reportOf, reportOfFailure } from './call-report.ts';
import { railMismatches, railProblems } from './rail-check.ts';
import type { RailTool, Toolbox } from './toolbox.ts';

export type ToolboxOptions = {
  /** The executor's own manifest; `bundled` is the one that ships. */
  manifest: { readonly path: string } | 'bundled';
  /** What references in the manifest refer to, and what servers get an allow-list of. */
  variables: Settings;
  /** What servers that run as children must not see. */
  walls?: Walls | undefined;
  /** Gets `mcp-logs/` and `tool-output/`. */
  dataDir: string;
  clock: Clock;
  log: Logger;
  /** Calls the start off. */
  signal?: AbortSignal | undefined;
  /** How long a server may take to start; 30 seconds unless told. */
  startTimeoutMs?: number | undefined;
};

const nameOf = (alias: string, tool: string) => `${alias}/${tool}`;

/** Refuses a manifest whose words for the executor cannot be true. */
function inspect({ path, servers }: Manifest): void {
  const problems = servers.flatMap(({ alias, tools }) => {
    const declared = [...(tools?.values() ?? [])];
    const neighbours = new Map(declared.map((tool) => [tool.name, { ...tool, surface: classify(tool).surface }]));
    return declared.flatMap(({ name, rail }) =>
      (rail ? railProblems(rail, neighbours) : []).map((problem) => `${path}: ${nameOf(alias, name)}: ${problem}`),
    );
  });
  if (problems.length > 0) throw new ReveilleError('invalid_request', problems.join('\n'));
}

/** The tools there are now, and sentences about those that are held back. */
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
    const warning = warningOf(name, classified, isPinned);
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

  constructor(pool: ServerPool, manifest: Manifest) {
    this.#pool = pool;
    this.manifestSha256 = manifest.sha256;
  }

  /** Sorted anew only when the pool has others. */
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
    const alias = name.slice(0, Math.max(0, name.indexOf('/')));
    const server = this.#pool.servers().find((one) => one.alias === alias);
    const held = problems.find((problem) => problem.startsWith(`${name}: `));
    const problem = server?.problem === undefined ? held : `server "${alias}" ${server.problem}`;
    return absenceWords(name, [...tools.keys()], problem);
  }

  async call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    { signal, definitionSha256 }: { signal: AbortSignal; definitionSha256: string },
  ): ReturnType<Toolbox['call']> {
    if (!this.find(name)) return { status: 'not_run', message: this.absence(name) };
    const at = name.indexOf('/');
    const options = { signal, definitionSha256, once: true };
    try {
      return reportOf(await this.#pool.call(name.slice(0, at), name.slice(at + 1), args, options));
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

/**
 * Starts the servers of the manifest.
 *
 * @throws ReveilleError `invalid_request` for a manifest or lock that is wrong, what it says for the executor included, before anything
 *   is started; `conflict` when tools are not those that are declared and pinned, or are not what the manifest takes them for;
 *   `unavailable` when a required server does not start
 */
export async function createToolbox(options: ToolboxOptions): Promise<Toolbox> {
  const { manifest: given, ...rest } = options;
  const { pool, manifest } = await startManifest({
    ...rest,
    manifestPath: given === 'bundled' ? bundledManifest('executor') : given.path,
    inspect,
  });
  const toolbox = new HostedToolbox(pool, manifest);
  const { problems } = toolbox.bound;
  if (problems.length === 0) return toolbox;
  await pool.close();
  const lines = problems.map((problem) => `${manifest.path}: ${problem}`);
  throw new ReveilleError('conflict', lines.join('\n'));
}
