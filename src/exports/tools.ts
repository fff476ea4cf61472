/**
 * `reveille/tools`: alarms for an agent, in one line.
 *
 * For the AI SDK, whose `ai` package is not needed here:
 *
 * ```ts
 * import { alarmTools } from 'reveille/tools';
 *
 * const { text } = await generateText({ model, prompt, tools: alarmTools() });
 * ```
 *
 * For an MCP client, and for its configuration file:
 *
 * ```ts
 * import { mcpServers } from 'reveille/tools';
 *
 * await client.connect(new StdioClientTransport(mcpServers().chronos));
 * ```
 */
import { createForwarder, type ToolForwarder } from '../chronos-mcp/proxy.ts';
import { readChronosTools, TOOLS_FILE, type ToolDefinition, type ToolName } from '../chronos-mcp/tools.ts';
import { localChronosDefaults } from '../cli/access/chronos.ts';
import { createContext } from '../cli/context.ts';
import { PROGRAM } from '../cli/home/package-root.ts';
import { systemClock } from '../kit/clock/clock.ts';
import { silentLogger } from '../kit/log/log.ts';
import { ReveilleError, type WireError } from '../wire/errors.ts';
import { encodeJson } from '../wire/json.ts';

/** The chronosd and the identity; omitted fields are found as by `reveille mcp`: environment, then `reveille up`. */
export type AlarmAccess = {
  /** For example `http://127.0.0.1:9096`. */
  readonly url?: string;
  /** The transport bearer, `CHRONOS_TOKEN`. */
  readonly token?: string;
  /** The agent's label. */
  readonly userId?: string;
  /** The file with the agent's key. */
  readonly keyFile?: string;
  /** The home of a `reveille up`; `~/.reveille` by default. */
  readonly home?: string;
  /** Makes the tools fit for a model's strict mode, in which a call has every argument. */
  readonly strict?: boolean;
};

/** A JSON schema in the form of Standard Schema (https://standardschema.dev). */
type InputSchema = {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { value: Record<string, unknown> };
    readonly jsonSchema: Record<'input' | 'output', () => Record<string, unknown>>;
  };
};

/** A tool of the AI SDK. */
export type AlarmTool = {
  readonly description: string;
  readonly inputSchema: InputSchema;
  readonly strict?: true;
  /** @throws ReveilleError from chronosd or from the check of the arguments; the model reads it */
  execute(input: Record<string, unknown>, options?: { abortSignal?: AbortSignal }): Promise<Record<string, unknown>>;
};

/** The forwarder checks the arguments from their source text, so that its errors name field and remedy. */
function schemaOf({ inputSchema }: ToolDefinition, strict: boolean): InputSchema {
  const required = Object.keys(inputSchema.properties);
  const schema = (): Record<string, unknown> => (strict ? { ...inputSchema, required } : inputSchema);
  const validate = (value: unknown) => ({ value: value as Record<string, unknown> });
  return { '~standard': { version: 1, vendor: 'reveille', validate, jsonSchema: { input: schema, output: schema } } };
}

async function forwarderOf({ url, token, userId, keyFile, home }: AlarmAccess): Promise<ToolForwarder> {
  const given = {
    MATRIX_CHRONOS_URL: url,
    MATRIX_CHRONOS_TOKEN: token,
    MATRIX_USER_ID: userId,
    MATRIX_EXECUTOR_KEYFILE: keyFile,
    REVEILLE_HOME: home,
  };
  const context = await createContext(process, {}, given);
  const localDefaults = () => localChronosDefaults(context);
  const zone = async () => (await import('../cli/access/chronometric.ts')).zoneOfUser(context);
  return createForwarder({ settings: context.settings, localDefaults, zone, clock: systemClock, log: silentLogger });
}

/**
 * `alarm_set`, `alarm_list` and `alarm_cancel` as tools of the AI SDK. Nothing is read before the first call. Each call
 * proves the agent's identity again.
 */
export function alarmTools(access: AlarmAccess = {}): Record<ToolName, AlarmTool> {
  const { strict = false } = access;
  let forwarder: Promise<ToolForwarder> | undefined;
  const toolOf = (definition: ToolDefinition): AlarmTool => ({
    description: definition.description,
    inputSchema: schemaOf(definition, strict),
    ...(strict && { strict }),
    async execute(input, { abortSignal = new AbortController().signal } = {}) {
      forwarder ??= forwarderOf(access);
      const result = await (await forwarder)(definition, encodeJson(input), abortSignal);
      const said = (result.structuredContent ?? {}) as Record<string, unknown>;
      if (!result.isError) return said;
      const { code, message, retryable } = said as WireError;
      throw new ReveilleError(code, message, { retryable });
    },
  });
  const tools = [...readChronosTools(TOOLS_FILE)].map(([name, definition]) => [name, toolOf(definition)]);
  return Object.fromEntries(tools) as Record<ToolName, AlarmTool>;
}

/** The command of an MCP server on stdin and stdout. */
export type McpServer = { readonly command: string; readonly args: string[] };

/**
 * The MCP servers of this package, in the form of a client's `mcpServers`: alarms for the agent, and the user's time. They
 * run with this Node and these files, independent of the PATH.
 */
export function mcpServers(): Record<'chronos' | 'chronometric', McpServer> {
  const server = (command: string): McpServer => ({ command: process.execPath, args: [PROGRAM, command] });
  return { chronos: server('mcp'), chronometric: server('chronometric') };
}
