/**
 * `reveille/tools`: a sense of time for an agent, in one line.
 *
 * For the AI SDK, whose `ai` package is not needed here:
 *
 * ```ts
 * import { alarmTools } from 'reveille/tools';
 *
 * const { text } = await generateText({ model, prompt, tools: alarmTools() });
 * ```
 *
 * For an MCP client, and for the configuration file of one:
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

/** Which chronosd, and as whom; what is left out is found as `reveille mcp` finds it: environment, then `reveille up`. */
export type AlarmAccess = {
  /** As in `http://127.0.0.1:9096`. */
  readonly url?: string;
  /** The transport bearer, `CHRONOS_TOKEN`. */
  readonly token?: string;
  /** The agent's label. */
  readonly userId?: string;
  /** The file with the agent's key. */
  readonly keyFile?: string;
  /** The folder of a `reveille up`, `~/.reveille` unless told. */
  readonly home?: string;
};

/** A JSON schema as libraries take it from each other (Standard Schema, https://standardschema.dev). */
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
  /** @throws ReveilleError with what chronosd, or the check of the arguments, says; the model reads it */
  execute(input: Record<string, unknown>, options?: { abortSignal?: AbortSignal }): Promise<Record<string, unknown>>;
};

/** The arguments are checked by the forwarder, from their source: that is where a complaint names field and remedy. */
function schemaOf({ inputSchema }: ToolDefinition): InputSchema {
  const schema = () => inputSchema as Record<string, unknown>;
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
  return createForwarder({ settings: context.settings, localDefaults, clock: systemClock, log: silentLogger });
}

/**
 * `alarm_set`, `alarm_list` and `alarm_cancel` as tools of the AI SDK. Nothing is connected or read before the first
 * call; each call proves the agent's identity anew.
 */
export function alarmTools(access: AlarmAccess = {}): Record<ToolName, AlarmTool> {
  let forwarder: Promise<ToolForwarder> | undefined;
  const toolOf = (definition: ToolDefinition): AlarmTool => ({
    description: definition.description,
    inputSchema: schemaOf(definition),
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

/** How to start an MCP server on stdin and stdout. */
export type McpServer = { readonly command: string; readonly args: string[] };

/**
 * The MCP servers of this package, in the form of a client's `mcpServers`: alarms for the agent, and the person's time.
 * They run with this very Node and these very files, whatever is on the PATH.
 */
export function mcpServers(): Record<'chronos' | 'chronometric', McpServer> {
  const server = (command: string): McpServer => ({ command: process.execPath, args: [PROGRAM, command] });
  return { chronos: server('mcp'), chronometric: server('chronometric') };
}
