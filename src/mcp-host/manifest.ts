/**
 * Loads an agent manifest (docs/reference/manifests.md): from a file to servers that can be started. All errors are found and
 * reported with file, line and column before any process is spawned.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  type JsonPosition,
  JsonSyntaxError,
  type PositionedJson,
  readJsonWithPositions,
} from '../kit/json/strict-json.ts';
import { CommandLineError, splitCommand } from '../kit/phrase/command-line.ts';
import { inheritedVariables, isWithheldFromServers } from '../kit/process/inherited-variables.ts';
import { isProgram } from '../kit/process/tools.ts';
import type { SandboxView } from '../kit/process/view.ts';
import { ReveilleError, thrownText } from '../wire/errors.ts';
import {
  agentManifestSchema,
  type ManifestLimits,
  type ManifestServer,
  type Rail,
  type SideEffectClass,
  type ToolSurface,
} from '../wire/manifest.ts';
import { checkInput, type Problem } from '../wire/validate.ts';
import { assignmentsOf, literalOf, looksSecret, namesSecret, resolveReferences, type Variables } from './references.ts';

/** The manifest's entry for a tool. */
export type DeclaredTool = {
  name: string;
  sideEffectClass: SideEffectClass | undefined;
  surface: ToolSurface | undefined;
  timeoutMs: number | undefined;
  /** Fields for the executor. */
  rail: Rail | undefined;
};

export type StdioLink = {
  kind: 'stdio';
  command: readonly [string, ...string[]];
  env: Readonly<Record<string, string>>;
  /** Folders that it may write to. */
  writable?: readonly string[] | undefined;
  /** The view of the sandbox in which it runs. */
  sandboxView?: SandboxView | undefined;
};
/** How the user signs in at a server; see `oauth` in the manifest. */
export type OAuthSettings = {
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly issuer?: string | undefined;
  readonly clientMetadataUrl?: string | undefined;
  readonly scope?: string | undefined;
  readonly grant?: 'authorization_code' | 'client_credentials' | undefined;
};
export type HttpLink = {
  kind: 'http';
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Absent: the server has no sign-in, because the manifest says so or has its own credentials. */
  oauth?: OAuthSettings | undefined;
};

/** A server that a manifest declares, with every variable resolved. */
export type ServerSpec = {
  alias: string;
  /** Part of the URIs of its tools. */
  version: string | undefined;
  /** Whether the host's start fails when this server does not start. */
  required: boolean;
  /** Whether the first call of one of its tools may start it. */
  isLazy: boolean;
  /** Whether each call names the user of its intent. */
  isPerUser?: boolean;
  /** A missing requirement and its remedy; a server with this is off. */
  unmetNeed: string | undefined;
  /** By name; `undefined` where the manifest declares none and accepts the server's tools. */
  tools: ReadonlyMap<string, DeclaredTool> | undefined;
  link: StdioLink | HttpLink;
  /** The variables that it refers to. */
  variables: readonly string[];
  /** The unset variables among them; with one it cannot start. */
  missing: readonly string[];
  /** Values that must not appear in a log. */
  secrets: readonly string[];
};

export type Manifest = {
  /** The file that it was read from. */
  path: string;
  /** SHA-256 of its text in lower-case hex. */
  sha256: string;
  agent: string | undefined;
  servers: readonly ServerSpec[];
  limits?: ManifestLimits | undefined;
  /** Checks of alarms that the agent may set by itself. */
  checks?: 'commands' | undefined;
};

const LONGEST_FILE_BYTES = 1024 * 1024;

/** Fields of a server whose values may be secrets, entered by mistake. */
const SENSITIVE_FIELDS = new Set(['env', 'headers', 'args', 'url', 'command', 'client_secret']);

/** The paths whose values must not be repeated in an error: possible secrets, and objects that may contain one. */
function hiddenFields(value: unknown, path: readonly string[] = []): string[] {
  const sensitive = path.some((key) => SENSITIVE_FIELDS.has(key));
  if (typeof value !== 'object' || value === null) return sensitive ? [path.join('.')] : [];
  return [path.join('.'), ...Object.entries(value).flatMap(([key, member]) => hiddenFields(member, [...path, key]))];
}

/** Collects the problems of a server; the paths start at the manifest's root. */
class Problems {
  readonly found: Problem[] = [];

  add(path: readonly (string | number)[], what: string): void {
    this.found.push({ path, ofName: false, sentence: `${path.join('.')} ${what}` });
  }
}

type ReadContext = { problems: Problems; path: readonly (string | number)[]; variables: Variables };
type References = { named: Set<string>; missing: Set<string>; secrets: Set<string> };

function resolveInto(references: References, text: string, variables: Variables, listed = false): string {
  const { value, named, missing, secrets } = resolveReferences(text, variables, listed);
  for (const name of named) references.named.add(name);
  for (const name of missing) references.missing.add(name);
  for (const secret of secrets) references.secrets.add(secret);
  return value;
}

/** `env` or `headers`, resolved; a literal secret is a problem. */
function readAssignments(
  member: 'env' | 'headers',
  server: ManifestServer,
  context: ReadContext,
  references: References,
) {
  const values: Record<string, string> = {};
  for (const { name, text, key } of assignmentsOf(server[member])) {
    const path = [...context.path, member, key];
    const listed = typeof key === 'number';
    const literal = literalOf(text, listed);
    const isLiteral = literal === text;
    if (looksSecret(literal) || (isLiteral && text !== '' && namesSecret(name))) {
      const variable = name.toUpperCase().replace(/[^A-Z0-9]+/g, '_');
      const remedy = listed ? `"${name}=$env:${variable}"` : `"\${${variable}}"`;
      context.problems.add(path, `holds a secret; write ${remedy} and set the variable ${variable} instead`);
    }
    if (Object.hasOwn(values, name)) context.problems.add(path, `sets ${name} a second time`);
    values[name] = resolveInto(references, text, context.variables, listed);
    if (namesSecret(name) && values[name] !== '') references.secrets.add(values[name]);
  }
  return values;
}

function readCommand(
  server: ManifestServer,
  context: ReadContext,
  references: References,
): readonly [string, ...string[]] {
  const { problems, path, variables } = context;
  try {
    const [program, ...words] = splitCommand(server.command ?? '');
    const resolve = (text: string, at: readonly (string | number)[]) => {
      if (looksSecret(literalOf(text))) {
        problems.add([...path, ...at], 'holds a secret; put it into "env", as a reference to a variable');
      }
      return resolveInto(references, text, variables);
    };
    return [
      resolve(program, ['command']),
      ...words.map((word) => resolve(word, ['command'])),
      ...(server.args ?? []).map((word, index) => resolve(word, ['args', index])),
    ];
  } catch (thrown) {
    if (!(thrown instanceof CommandLineError)) throw thrown;
    problems.add([...path, 'command'], thrown.message);
    return [''];
  }
}

function readUrl(server: ManifestServer, context: ReadContext, references: References): string {
  const path = [...context.path, 'url'];
  const text = server.url ?? '';
  if (looksSecret(literalOf(text))) {
    context.problems.add(path, 'holds a secret; put it into "headers", as a reference to a variable');
  }
  const before = references.missing.size;
  const url = resolveInto(references, text, context.variables);
  if (references.missing.size > before) return url;
  const parsed = URL.parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    context.problems.add(path, 'must be an http:// or https:// address');
  } else if (parsed.username !== '' || parsed.password !== '') {
    context.problems.add(path, 'must not hold a user name or a password; put them into "headers"');
  }
  return url;
}

/** The sign-in of a server; `undefined` where there is none. */
function readOAuth(
  { oauth, per_user: isPerUser }: ManifestServer,
  headers: Readonly<Record<string, string>>,
  context: ReadContext,
  references: References,
): OAuthSettings | undefined {
  const path = [...context.path, 'oauth'];
  const hasCredentials = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  if (oauth === false) return undefined;
  if (oauth === undefined) return hasCredentials || isPerUser ? undefined : {};
  if (hasCredentials)
    context.problems.add(path, 'is not for a server with an Authorization header; remove one of them');
  // A sign-in of one user must not act for another user.
  if (isPerUser)
    context.problems.add(
      path,
      'is not for a server with "per_user", because a sign-in belongs to one user; remove one of them',
    );
  const { client_id: clientId, client_secret: secretText, client_metadata_url: clientMetadataUrl, ...rest } = oauth;
  if (secretText !== undefined && literalOf(secretText) !== '')
    context.problems.add([...path, 'client_secret'], `holds a secret; write "\${CLIENT_SECRET}" and set that variable`);
  const needsClient = secretText !== undefined || rest.issuer !== undefined || rest.grant === 'client_credentials';
  if (needsClient && clientId === undefined) context.problems.add(path, 'needs "client_id"');
  if (rest.grant === 'client_credentials' && secretText === undefined)
    context.problems.add(path, 'needs "client_secret"');
  if (secretText === undefined) return { ...rest, clientId, clientMetadataUrl };
  const clientSecret = resolveInto(references, secretText, context.variables);
  if (clientSecret !== '') references.secrets.add(clientSecret);
  return { ...rest, clientId, clientMetadataUrl, clientSecret };
}

/** Fields of the other transport, and missing fields of this one. */
function checkShape(server: ManifestServer, kind: 'stdio' | 'http', { problems, path }: ReadContext): void {
  const [needed, foreign] =
    kind === 'stdio'
      ? (['command', ['url', 'headers', 'oauth']] as const)
      : (['url', ['command', 'args', 'env', 'writable', 'room']] as const);
  if (server[needed] === undefined) problems.add(path, `needs "${needed}", because its transport is ${kind}`);
  for (const member of foreign) {
    if (server[member] !== undefined) problems.add([...path, member], `is not for a server whose transport is ${kind}`);
  }
}

/** The unmet needs of a server as one sentence; `undefined` when all are met. */
function unmetNeedOf({ needs }: ManifestServer, variables: Variables): string | undefined {
  const { PATH } = inheritedVariables(variables);
  const unmet = needs?.find(
    ({ programs = [], variables: names = [] }) =>
      !programs.some((name) => isProgram(name, PATH)) && !names.some((name) => variables[name]),
  );
  if (unmet === undefined) return undefined;
  const { programs, variables: names, remedy } = unmet;
  const lacks = [
    ...(programs ? [`there is no program ${programs.join(' or ')}`] : []),
    ...(names ? [`${names.join(' or ')} is not set`] : []),
  ];
  return `${lacks.join(' and ')}; ${remedy}`;
}

/** Skips a folder whose variable is not set. */
function readWritable(writable: readonly string[], { variables }: ReadContext, references: References): string[] {
  return writable.flatMap((text) => {
    const path = resolveInto(references, text, variables);
    return path === '' ? [] : [`${resolve(path)}/`];
  });
}

function readSandboxView(
  { writable, network = false }: NonNullable<ManifestServer['room']>,
  { variables }: ReadContext,
  references: References,
): SandboxView {
  return { writable: writable.map((text) => resolve(resolveInto(references, text, variables))), readable: [], network };
}

function readTools(
  { tools }: ManifestServer,
  allowed: readonly SideEffectClass[] | undefined,
  { problems, path }: ReadContext,
): ReadonlyMap<string, DeclaredTool> | undefined {
  if (tools === undefined) return undefined;
  const declared = new Map<string, DeclaredTool>();
  for (const [index, tool] of tools.entries()) {
    const { name, side_effect_class: sideEffectClass, surface, timeout_ms: timeoutMs, rail } = tool;
    const at = [...path, 'tools', index];
    if (declared.has(name)) problems.add([...at, 'name'], `is listed twice (${JSON.stringify(name)})`);
    if (sideEffectClass !== undefined && allowed !== undefined && !allowed.includes(sideEffectClass)) {
      const what = `is ${sideEffectClass}, which allowed_side_effects does not name; add it there or remove the tool`;
      problems.add([...at, 'side_effect_class'], what);
    }
    declared.set(name, { name, sideEffectClass, surface, timeoutMs, rail });
  }
  return declared;
}

function readServer(
  server: ManifestServer,
  allowed: readonly SideEffectClass[] | undefined,
  context: ReadContext,
): ServerSpec {
  const kind = server.transport ?? (server.command === undefined && server.url !== undefined ? 'http' : 'stdio');
  const references: References = { named: new Set(), missing: new Set(), secrets: new Set() };
  const env = readAssignments('env', server, context, references);
  const headers = readAssignments('headers', server, context, references);
  checkShape(server, kind, context);
  const oauth = kind === 'http' ? readOAuth(server, headers, context, references) : undefined;
  const link: StdioLink | HttpLink =
    kind === 'http'
      ? {
          kind,
          url: server.url === undefined ? '' : readUrl(server, context, references),
          headers,
          ...(oauth && { oauth }),
        }
      : {
          kind,
          command: server.command === undefined ? [''] : readCommand(server, context, references),
          env: { ...inheritedVariables(context.variables), ...env },
          ...(server.writable && { writable: readWritable(server.writable, context, references) }),
          ...(server.room && { sandboxView: readSandboxView(server.room, context, references) }),
        };
  for (const name of new Set([...references.named, ...Object.keys(env)].filter(isWithheldFromServers))) {
    const what = `names ${name}, which is reserved for the daemons of Reveille and is never passed to an MCP server; remove it`;
    context.problems.add(context.path, what);
  }
  const required = server.required ?? false;
  const missing = [...references.missing];
  if (required && missing.length > 0) {
    const what = `is required and refers to ${missing.join(', ')}, which ${missing.length > 1 ? 'are' : 'is'} not set`;
    context.problems.add(context.path, what);
  }
  return {
    alias: server.alias,
    version: server.version,
    required,
    isLazy: server.start === 'lazy',
    isPerUser: server.per_user === true,
    unmetNeed: unmetNeedOf(server, context.variables),
    tools: readTools(server, allowed, context),
    link,
    variables: [...references.named],
    missing,
    secrets: [...references.secrets],
  };
}

/** Formats problems as lines that an editor can jump to. */
function reject(path: string, problems: readonly { place: JsonPosition; sentence: string }[]): never {
  const lines = problems.map(({ place, sentence }) => `${path}:${place.line}:${place.column}: ${sentence}`);
  throw new ReveilleError('invalid_request', [...new Set(lines)].join('\n'));
}

function readText(path: string): { text: string; sha256: string } {
  try {
    const bytes = readFileSync(path);
    if (bytes.length > LONGEST_FILE_BYTES)
      throw new Error(`it has ${bytes.length} bytes; the limit is ${LONGEST_FILE_BYTES}`);
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return { text, sha256: createHash('sha256').update(bytes).digest('hex') };
  } catch (cause) {
    const reason = thrownText(cause);
    throw new ReveilleError('invalid_request', `the agent manifest ${path} cannot be read: ${reason}`, { cause });
  }
}

function parse(path: string, text: string): PositionedJson {
  try {
    return readJsonWithPositions(text);
  } catch (thrown) {
    if (!(thrown instanceof JsonSyntaxError)) throw thrown;
    return reject(path, [{ place: thrown.position, sentence: `this is not JSON: ${thrown.message}` }]);
  }
}

/**
 * @param variables the values of `${NAME}` and `$env:NAME`; child servers get an allow-list of them
 * @throws ReveilleError `invalid_request` with one line per problem, `file:line:column: field …`; possible secrets are
 *   not repeated. An unset variable is a problem of a required server; otherwise the start reports it.
 */
export function loadManifest(path: string, variables: Variables): Manifest {
  const { text, sha256 } = readText(path);
  const { value, positionOf: placeOf } = parse(path, text);
  const checked = checkInput(agentManifestSchema, value, hiddenFields(value));
  const rejectAll = (found: readonly Problem[]): never =>
    reject(
      path,
      found.map((problem) => ({ place: placeOf(problem.path), sentence: problem.sentence })),
    );
  if ('problems' in checked) return rejectAll(checked.problems);
  const manifest = checked.value;
  const problems = new Problems();
  const seen = new Set<string>();
  const servers = manifest.servers.map((server, index) => {
    const at = ['servers', index];
    if (seen.has(server.alias)) problems.add([...at, 'alias'], `is used twice (${server.alias})`);
    seen.add(server.alias);
    return readServer(server, manifest.allowed_side_effects, { problems, path: at, variables });
  });
  if (problems.found.length > 0) return rejectAll(problems.found);
  return { path, sha256, agent: manifest.agent, servers, limits: manifest.limits, checks: manifest.checks };
}
