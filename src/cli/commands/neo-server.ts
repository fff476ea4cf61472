/** `reveille neo server add`, `review` and `remove`: the MCP servers of Neo's manifest and the class of each tool. */
import { statSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { startHost } from '../../agents/neo/tools/start-host.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { RESTART_NOTE } from '../../mcp-host/hosted-server.ts';
import { loadManifest } from '../../mcp-host/manifest.ts';
import { withoutServer, withServer, withTools } from '../../mcp-host/manifest-edit.ts';
import { SeenTools } from '../../mcp-host/seen-tools.ts';
import { digestOf, type ToolDefinition } from '../../mcp-host/tool-definition.ts';
import type { ToolLock } from '../../mcp-host/tool-lock.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type ManifestServer, manifestServerSchema } from '../../wire/manifest.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import {
  asFile,
  changedLines,
  manifestInUse,
  type NeoManifest,
  saveManifest,
  toolOptions,
} from '../home/neo-manifest.ts';
import {
  type Ask,
  askForWords,
  asManifestTool,
  type ClassWord,
  isScripted,
  needsWord,
  personAt,
  type ReviewedTool,
  type ReviewFlags,
  renderTool,
  reviewOf,
  wordsOfFlags,
} from './neo-server-review.ts';

export type ServerAddFlags = ReviewFlags & { url?: string; env?: readonly string[]; header?: readonly string[] };

/** The tools of a server, and the accepted definitions. */
type Look = {
  readonly alias: string;
  readonly live: readonly ToolDefinition[];
  readonly tools: readonly ReviewedTool[];
};

/**
 * Starts the servers of a manifest and reads their tools.
 *
 * @returns also why some did not start, and whether all of those are merely disabled
 */
async function lookAt(context: CliContext, manifest: NeoManifest, text: string, aliases: ReadonlySet<string>) {
  context.out.progress('Starting…');
  return asFile(manifest, text, async (draft) => {
    const options = await toolOptions(context, draft);
    // Read before the start: the pool records a new server's tools.
    const seen = new SeenTools(options.dataDir, options.log);
    const before = new Map([...aliases].map((alias) => [alias, seen.of(alias)]));
    const { pool } = await startHost(
      { ...options, config: { ...options.config, manifest: { path: draft } } },
      false,
      aliases,
    );
    try {
      const variables = { ...options.variables, NEO_WORKSPACE: '.', NEO_TOOL_OUTPUT: '.' };
      const { servers } = loadManifest(draft, variables);
      const ready = pool.servers().filter(({ state }) => state === 'ready');
      const looks = ready.map(({ alias }): Look => {
        const live = pool.tools().flatMap((tool) => (tool.alias === alias ? [tool.definition] : []));
        const declared = servers.find((server) => server.alias === alias)?.tools;
        const pins = Object.hasOwn(manifest.lock.servers, alias) ? manifest.lock.servers[alias] : undefined;
        return { alias, live, tools: reviewOf(live, declared, pins, before.get(alias)) };
      });
      const silent = pool.servers().filter(({ problem }) => problem);
      const problems = silent.map(({ alias, problem }) => `server "${alias}" ${problem!.replace(RESTART_NOTE, '')}`);
      const isSignedOut = silent.some(({ state }) => state === 'signed_out');
      return { looks, problems, isOff: silent.every(({ state }) => state === 'off'), isSignedOut, seen };
    } finally {
      await pool.close();
    }
  });
}

/** The changes for a server, once each tool has a decision. */
function settled({ alias, live, tools }: Look, words: ReadonlyMap<string, ClassWord>, text: string, lock: ToolLock) {
  const said = tools.flatMap((tool) => {
    const word = words.get(tool.name) ?? tool.word;
    return tool.definition && word ? [asManifestTool(tool.name, word)] : [];
  });
  const pins = Object.fromEntries(live.map((definition) => [definition.name, digestOf(definition)]));
  return { text: withTools(text, alias, said), lock: { ...lock, servers: { ...lock.servers, [alias]: pins } } };
}

const viewOf = (words: ReadonlyMap<string, ClassWord>) => (tool: ReviewedTool) => ({
  name: tool.name,
  state: tool.state,
  class: words.get(tool.name) ?? tool.word,
  proposed: tool.proposal?.proposedClass,
  because: tool.proposal?.reason,
  ...(tool.definition && {
    description: tool.definition.description,
    annotations: tool.definition.annotations,
    input_schema: tool.definition.inputSchema,
    sha256: digestOf(tool.definition),
  }),
});

const REMEDY =
  'decide with --read, --natural or --escalate and the names, accept proposed reads with --yes-reads, accept changed tools with --accept, or run the command on a terminal';

type Reviewed = {
  manifest: NeoManifest;
  text: string;
  looks: readonly Look[];
  problems: readonly string[];
  seen: SeenTools;
};

/** Asks for the user's decisions and writes them. */
async function decide(context: CliContext, flags: ReviewFlags, { manifest, text, looks, problems, seen }: Reviewed) {
  const { out } = context;
  const scripted = isScripted(flags);
  const person = scripted ? undefined : personAt(context);
  const words = new Map<string, ReadonlyMap<string, ClassWord>>();
  const isOpen = (tool: ReviewedTool) => tool.state !== 'same';
  try {
    for (const { alias, tools } of looks) {
      const given = person ? await askForWords(context, alias, tools, person.ask) : wordsOfFlags(flags, tools);
      if (given === undefined) throw new ReveilleError('forbidden', 'nothing was written');
      words.set(alias, given);
    }
    const wordsFor = (alias: string) => words.get(alias)!;
    const left = looks.flatMap(({ alias, tools }) =>
      tools.filter((tool) => needsWord(tool) && !wordsFor(alias).has(tool.name)).map(({ name }) => `${alias}/${name}`),
    );
    let next = { text, lock: manifest.lock };
    for (const look of looks) next = settled(look, wordsFor(look.alias), next.text, next.lock);
    const isSame =
      next.text === manifest.text &&
      looks.every(({ tools }) => !tools.some(isOpen)) &&
      [...words.values()].every((given) => given.size === 0);
    const lines = looks.flatMap(({ alias, tools }) => tools.flatMap((tool) => renderTool(alias, tool, context)));
    const report = (written: boolean, backup?: string) => ({
      ...{ manifest: manifest.path, written, backup },
      servers: looks.map(({ alias, tools }) => ({ alias, tools: tools.map(viewOf(wordsFor(alias))) })),
      problems,
    });
    const isUnsaid = left.length > 0 || (!isSame && !person && !scripted);
    if (isSame || isUnsaid) {
      out.result(report(false), isSame ? [...lines, 'No changes.'] : lines);
      if (!isUnsaid) return;
      const what =
        left.length > 0 ? `no decision for ${left.map(oneLine).join(', ')}` : 'the tools are not accepted yet';
      throw new ReveilleError('conflict', `nothing was written: ${what}; ${REMEDY}`, { retryable: false });
    }
    const diff = changedLines(manifest.text, next.text).map(oneLine);
    if (person) await confirmed(context, manifest, diff, person.ask);
    const known = { ...manifest.known, ...Object.fromEntries(looks.map(({ alias, live }) => [alias, live])) };
    const backup = await saveManifest(context, manifest, next.text, next.lock, known);
    for (const { alias, live } of looks) seen.approve(alias, live);
    const where = manifest.isShipped
      ? ', a copy of the built-in one, which is used from now on'
      : backup
        ? `; backup: ${backup}`
        : '';
    out.result(report(true, backup), [
      ...(person ? [] : [...lines, '', ...diff]),
      `Written to ${manifest.path}${where}. Each tool is pinned. Neo applies it at its next start.`,
    ]);
  } finally {
    person?.close();
  }
}

async function confirmed({ out }: CliContext, { path }: NeoManifest, diff: readonly string[], ask: Ask): Promise<void> {
  for (const line of ['', ...diff, '']) out.line(line);
  if ((await ask(`Write this to ${path} and pin the tools? Type yes: `)).trim().toLowerCase() === 'yes') return;
  throw new ReveilleError('forbidden', 'nothing was written');
}

const aliasesOf = ({ text }: NeoManifest) =>
  (JSON.parse(text) as { servers: ManifestServer[] }).servers.map(({ alias }) => alias);

/** A word for `command` of a manifest. */
function commandWord(word: string): string {
  const program = word.includes('/') ? resolve(word) : word;
  return /[\s"'\\]/.test(program) ? `"${program.replace(/["\\]/g, '\\$&')}"` : program;
}

/**
 * A word after the program, in the form for the server. Neo starts servers in a folder of its own, so a file in the
 * current folder needs its whole path. A word without an extension may be the name of a package.
 */
function argumentWord(word: string): string {
  const looksLikeFile = extname(word) !== '' || /^\.{1,2}\//.test(word);
  return looksLikeFile && statSync(word, { throwIfNoEntry: false }) ? resolve(word) : word;
}

function assignmentsFlag(name: string, given: readonly string[] | undefined): Record<string, string> | undefined {
  if (given === undefined) return undefined;
  return Object.fromEntries(
    given.map((text) => {
      const at = text.indexOf('=');
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
      // Not quoted: it may be a secret.
      throw new UsageError(`${name} must be NAME=value, such as ${name} 'TOKEN=\${MY_TOKEN}'`);
    }),
  );
}

function serverOf(alias: string, command: readonly string[], flags: ServerAddFlags): ManifestServer {
  const { url } = flags;
  const [program, ...args] = command;
  if ((url === undefined) === (program === undefined))
    throw new UsageError(
      'give either --url, or the command after --, such as: reveille neo server add notes -- npx -y notes-mcp',
    );
  const [env, headers] = [assignmentsFlag('--env', flags.env), assignmentsFlag('--header', flags.header)];
  const link =
    program === undefined
      ? { transport: 'http' as const, url, ...(headers && { headers }) }
      : {
          transport: 'stdio' as const,
          command: commandWord(program),
          ...(args.length > 0 && { args: args.map(argumentWord) }),
          ...(env && { env }),
        };
  if (program === undefined ? env : headers)
    throw new UsageError(
      program === undefined ? '--env is for a server with a command' : '--header is for a server with --url',
    );
  return parseOrThrow(manifestServerSchema, { alias, ...link });
}

export async function serverAdd(context: CliContext, flags: ServerAddFlags, words: readonly string[]): Promise<void> {
  const [alias = '', ...command] = words;
  const server = serverOf(alias, command, flags);
  const manifest = await manifestInUse(context);
  if (aliasesOf(manifest).includes(alias))
    throw new ReveilleError(
      'conflict',
      `the manifest ${manifest.path} already has a server "${alias}"; see: reveille neo server review ${alias}`,
    );
  const text = withServer(manifest.text, server);
  let found = await lookAt(context, manifest, text, new Set([alias]));
  if (found.isSignedOut) {
    const { url = '' } = flags;
    if (!context.out.live || context.process.stdin.isTTY !== true)
      throw new ReveilleError(
        'unavailable',
        `server "${alias}" needs sign-in; run: reveille neo server login ${alias} --url ${url}\nThen repeat this command; nothing was written`,
        { retryable: false },
      );
    const { serverLogin } = await import('./neo-server-login.ts');
    await serverLogin(context, { url }, alias);
    found = await lookAt(context, manifest, text, new Set([alias]));
  }
  if (found.problems.length > 0)
    throw new ReveilleError('unavailable', `${found.problems.join('\n')}\nnothing was written`, { retryable: false });
  await decide(context, flags, { manifest, text, ...found });
}

export async function serverReview(context: CliContext, flags: ReviewFlags, alias: string | undefined): Promise<void> {
  const manifest = await manifestInUse(context);
  const all = aliasesOf(manifest);
  if (alias !== undefined && !all.includes(alias)) throw noServer(manifest, alias, all);
  const { text } = manifest;
  const found = await lookAt(context, manifest, text, new Set(alias === undefined ? all : [alias]));
  await decide(context, flags, { manifest, text, ...found });
  for (const problem of found.problems) context.out.remark(`Not checked: ${oneLine(problem)}`);
  // A disabled server is a failure only when it was named.
  if (found.problems.length > 0 && (alias !== undefined || !found.isOff)) context.process.exitCode = EXIT.failed;
}

function noServer({ path }: NeoManifest, alias: string, all: readonly string[]): ReveilleError {
  return new ReveilleError(
    'not_found',
    `the manifest ${path} has no server ${JSON.stringify(alias)}; it has ${all.join(', ') || 'none'}`,
  );
}

export async function serverRemove(context: CliContext, alias: string): Promise<void> {
  const manifest = await manifestInUse(context);
  const all = aliasesOf(manifest);
  if (!all.includes(alias)) throw noServer(manifest, alias, all);
  const text = withoutServer(manifest.text, alias);
  const { [alias]: _, ...servers } = manifest.lock.servers;
  const backup = await saveManifest(context, manifest, text, { lock_version: 1, servers });
  const what = backup === undefined ? '' : ` Backup: ${backup}.`;
  context.out.result({ manifest: manifest.path, removed: alias, backup }, [
    ...changedLines(manifest.text, text).map(oneLine),
    `Removed "${alias}" from ${manifest.path}.${what} Neo applies it at its next start.`,
  ]);
}
