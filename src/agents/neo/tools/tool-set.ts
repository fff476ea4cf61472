/**
 * Neo's tool surface: natural tools are functions of the model, escalated ones are reached through `core_execute`
 * alone, and `memory_recall` searches the memory.
 */
import type { Logger } from '../../../kit/log/log.ts';
import type { ToolSchema } from '../../../kit/model/model.ts';
import { DESCRIPTION_MAX, providerSafe, type SafeParameters } from '../../../kit/model/provider-safe.ts';
import { classify, unpinnedWarning } from '../../../mcp-host/classify.ts';
import type { AskPerson } from '../../../mcp-host/elicitation.ts';
import { ReveilleError, thrownText } from '../../../wire/errors.ts';
import type { ToolSurface as Declared, SideEffectClass } from '../../../wire/manifest.ts';
import { beginningOf } from '../../../wire/text.ts';
import { CORE_EXECUTE, missingTools, type SurfaceView } from '../../../wire/tool-surface.ts';
import type { Questions } from '../questions.ts';
import {
  CORE_EXECUTE_SCHEMA,
  MEMORY_RECALL,
  MEMORY_RECALL_SCHEMA,
  OWN_FUNCTIONS,
  type Parsed,
  parseArguments,
  parseIntent,
  parseQuery,
} from './own-functions.ts';
import type { Skill } from './skill.ts';
import {
  type ToolAnswer,
  type ToolCallContext,
  ToolFailure,
  type ToolPart,
  type ToolSurface,
  textAnswer,
} from './surface.ts';
import { givenToAlarm, isNoTools, widerAlarm } from './turn-tools.ts';

/** A tool of a running server that the manifest allows. */
type HostTool = {
  readonly alias: string;
  /** Its own name on the server. */
  readonly tool: string;
  /** `alias__tool`, adapted for model endpoints; no two tools share one. */
  readonly functionName: string;
  /** `matrix://tool/mcp/<alias>/<tool>@<version>` */
  readonly uri: string;
  readonly sideEffectClass?: SideEffectClass | undefined;
  readonly surface?: Declared | undefined;
  /** Whether its definition is pinned. */
  readonly isPinned?: boolean | undefined;
  /** As the server sends it. */
  readonly definition: {
    readonly description?: string | undefined;
    readonly inputSchema: object;
    /** Untrusted hints. */
    readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  };
};

/**
 * A result in the form of MCP; the host has capped it to a length that a model can read, and its text says so.
 * Structured content is among its blocks.
 */
type HostAnswer = {
  readonly content: readonly HostContent[];
  readonly isError?: boolean | undefined;
};

/** A piece of a result; its members follow from `type`, and servers may send unknown types. */
export type HostContent = {
  readonly type: string;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly mimeType?: unknown;
  readonly uri?: unknown;
  readonly name?: unknown;
  readonly resource?: unknown;
};

type ToolHost = {
  /** The tools that can be called now; another array as soon as that changes. */
  tools(): readonly HostTool[];
  /** Rejects when no answer came; the error's `mayHaveRun` says whether the call may have been executed. */
  call(
    alias: string,
    tool: string,
    args: Record<string, unknown>,
    options: { signal: AbortSignal; conversation?: string | undefined; ask?: AskPerson | undefined },
  ): Promise<HostAnswer>;
  /** Sentences about servers that do not run and tools that are withheld. */
  warnings(): readonly string[];
  /** Servers at which the user must sign in. */
  signedOut?(): readonly { alias: string; why: string }[];
  /** Servers with a missing requirement. */
  off?(): readonly { alias: string; why: string }[];
  /** The limits of its servers as text. */
  limits?(): string;
  close(): Promise<void>;
};

/** The image types that models support; others are only mentioned. */
const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** The longest description of a part that cannot be shown, from the server's own text. */
const SHORT_CHARACTERS = 200;

const shortText = (value: unknown): string =>
  typeof value === 'string' ? value.slice(0, SHORT_CHARACTERS).toWellFormed() : '';
const text = (value: string): ToolPart => ({ type: 'text', text: value.toWellFormed() });

function describePart(what: string, ...facts: string[]): ToolPart {
  return text(`[${[what, ...facts.filter((fact) => fact !== '')].join(', ')}; not shown]`);
}

/** The number of bytes that base64 encodes. */
function sizeOf(data: unknown): string {
  if (typeof data !== 'string') return '';
  const padding = /={0,2}$/.exec(data)![0].length;
  return `${Math.max(0, Math.floor((data.length * 3) / 4) - padding)} bytes`;
}

function resourcePart(resource: unknown): ToolPart {
  const members = typeof resource === 'object' && resource !== null ? (resource as Record<string, unknown>) : {};
  if (typeof members.text === 'string') return text(`[resource ${shortText(members.uri)}]\n${members.text}`);
  return describePart(`resource ${shortText(members.uri)}`, shortText(members.mimeType), sizeOf(members.blob));
}

function partOf(content: HostContent): ToolPart {
  switch (content.type) {
    case 'text':
      return text(typeof content.text === 'string' ? content.text : '');
    case 'image':
      if (typeof content.data === 'string' && IMAGE_TYPES.has(shortText(content.mimeType).toLowerCase())) {
        return { type: 'image', mediaType: shortText(content.mimeType).toLowerCase(), data: content.data };
      }
      return describePart('a picture', shortText(content.mimeType), sizeOf(content.data));
    case 'audio':
      return describePart('a sound', shortText(content.mimeType), sizeOf(content.data));
    case 'resource_link':
      return text(
        `[resource ${shortText(content.uri)}${content.name === undefined ? '' : ` (${shortText(content.name)})`}]`,
      );
    case 'resource':
      return resourcePart(content.resource);
    default:
      return describePart(`content of the type ${JSON.stringify(shortText(content.type))}`);
  }
}

export function answerOf({ content, isError = false }: HostAnswer): ToolAnswer {
  const parts = content.map(partOf);
  // A model would take an empty result for a failure.
  if (parts.length === 0)
    parts.push(text(isError ? 'the tool failed and gave no reason' : 'done; the tool said nothing'));
  return { content: parts, isError };
}

/** Hands a task to the executor and returns its outcome. Rejects like {@link ToolSurface.dispatch}. */
export type Delegate = (intent: string, context: ToolCallContext) => Promise<ToolAnswer>;

/** Searches the memory: a digest of the findings and the profile. */
export type Recall = (query: string | undefined) => Promise<string>;

export type ToolSetOptions = {
  /** Runs the servers of the manifest; absent without one. */
  host?: ToolHost | undefined;
  /** Parts of names that escalate, beside the built-in ones. */
  patterns: readonly string[];
  /** The agent's skill. A limiting skill removes all other tools. */
  skill?: Skill | undefined;
  delegate?: Delegate | undefined;
  recall?: Recall | undefined;
  /** Asks the user questions of servers; without it, servers cannot ask. */
  questions?: Pick<Questions, 'ofCall'> | undefined;
  /** Warnings from before the surface existed. */
  warnings?: readonly string[];
  log: Logger;
};

/** The agent's tool that sets an alarm for itself. */
const ALARM_SET = 'alarm_set';

type EscalatedTool = SurfaceView['escalated'][number];

/** A tool with the function that the model sees. */
type NaturalTool = HostTool & { readonly schema: ToolSchema; readonly restore: SafeParameters['restore'] };

type Bound = {
  readonly natural: ReadonlyMap<string, NaturalTool>;
  readonly escalated: ReadonlyMap<string, EscalatedTool>;
  readonly warnings: readonly string[];
};

const byName = ([one]: [string, unknown], [other]: [string, unknown]) => (one < other ? -1 : 1);

/** Sorts the servers' tools into natural and escalated ones. */
function bind(tools: readonly HostTool[], patterns: readonly string[]): Bound {
  const natural: [string, NaturalTool][] = [];
  const escalated: [string, EscalatedTool][] = [];
  const warnings: string[] = [];
  for (const tool of tools) {
    const { functionName: name, uri, definition, surface, sideEffectClass } = tool;
    if (OWN_FUNCTIONS.has(name)) {
      warnings.push(`${uri} is left out: ${name} is a function of Neo's own`);
      continue;
    }
    const { annotations } = definition;
    const found = classify({ name: tool.tool, surface, sideEffectClass, annotations }, patterns);
    const warning = unpinnedWarning(`${tool.alias}/${tool.tool}`, found, tool.isPinned === true);
    if (warning !== undefined) warnings.push(warning);
    if (found.surface === 'natural') natural.push([name, { ...tool, ...safeFunction(tool) }]);
    else escalated.push([name, { name, uri, reason: found.reason }]);
  }
  return { natural: new Map(natural.sort(byName)), escalated: new Map(escalated.sort(byName)), warnings };
}

function safeFunction({ functionName, definition, alias }: HostTool): Pick<NaturalTool, 'schema' | 'restore'> {
  const { schema: parameters, restore } = providerSafe(definition.inputSchema);
  const description = beginningOf(definition.description ?? `A tool of the server ${alias}.`, DESCRIPTION_MAX);
  return { schema: { name: functionName, description, parameters }, restore };
}

const allows = (limit: ReadonlySet<string> | undefined, { functionName, uri }: HostTool) =>
  limit === undefined || limit.has(functionName) || limit.has(uri);

/** Whether a call may be made twice. The manifest overrides the server's own hint. */
function isRepeatable({ sideEffectClass, definition: { annotations } }: HostTool): boolean {
  if (sideEffectClass === 'read' || annotations?.idempotentHint === true) return true;
  return sideEffectClass === undefined && annotations?.readOnlyHint === true;
}

/** Translates a failure of the host for the turn. */
function failureOf(thrown: unknown, tool: HostTool): ToolFailure {
  const message = thrownText(thrown);
  const reported = typeof thrown === 'object' && thrown !== null ? Reflect.get(thrown, 'mayHaveRun') : undefined;
  const mayHaveRun = reported !== false;
  return new ToolFailure(message, { mayHaveRun, repeatable: !mayHaveRun || isRepeatable(tool), cause: thrown });
}

export function createToolSet(options: ToolSetOptions): ToolSurface {
  const { host, patterns, skill, delegate, recall, questions, log } = options;
  let sorted: readonly HostTool[] = [];
  let latest = bind(sorted, patterns);

  /** The current tools; sorted again only when the host's tools have changed. */
  function bound(): Bound {
    const tools = host?.tools() ?? [];
    if (tools !== sorted) {
      latest = bind(tools, patterns);
      sorted = tools;
    }
    return latest;
  }

  /** An alarm for tools that the agent does not have would only fail when it fires. */
  function refusedAlarm(given: Record<string, unknown>, turn: ToolCallContext['turn']): string | undefined {
    const args = givenToAlarm(given);
    const isNamed = Array.isArray(args.tools) && !isNoTools(args.tools);
    const names = isNamed ? (args.tools as unknown[]).filter((name) => typeof name === 'string') : [];
    const view = surface.describe();
    const problem = missingTools(names, view) ?? widerAlarm(args, turn, view);
    return problem && `nothing was set: ${problem}`;
  }

  /** The arguments as the server expects them. */
  function restoredArguments(tool: NaturalTool, args: unknown): Parsed<Record<string, unknown>> {
    const read = parseArguments(tool.functionName, args);
    if ('problem' in read) return read;
    try {
      return { value: tool.restore(read.value) };
    } catch (thrown) {
      if (thrown instanceof ReveilleError) return { problem: thrown.message };
      throw thrown;
    }
  }

  async function callTool(tool: NaturalTool, args: unknown, context: ToolCallContext): Promise<ToolAnswer> {
    const { signal, turn } = context;
    const read = restoredArguments(tool, args);
    if ('problem' in read) return textAnswer(read.problem, true);
    const refusal = tool.tool === ALARM_SET ? refusedAlarm(read.value, turn) : undefined;
    if (refusal !== undefined) return textAnswer(refusal, true);
    const asking = questions?.ofCall(context, { server: tool.alias, tool: tool.tool });
    const how = { signal, conversation: turn.conversationId, ask: asking?.ask };
    try {
      const { content, isError } = answerOf(await host!.call(tool.alias, tool.tool, read.value, how));
      const remark = asking?.remark();
      return { content: remark === undefined ? content : [...content, { type: 'text', text: remark }], isError };
    } catch (thrown) {
      signal.throwIfAborted();
      throw failureOf(thrown, tool);
    }
  }

  async function execute(args: unknown, context: ToolCallContext): Promise<ToolAnswer> {
    const read = parseIntent(args);
    return 'problem' in read ? textAnswer(read.problem, true) : delegate!(read.value, context);
  }

  async function lookUp(args: unknown, { signal }: ToolCallContext): Promise<ToolAnswer> {
    const read = parseQuery(args);
    if ('problem' in read) return textAnswer(read.problem, true);
    try {
      return textAnswer(await recall!(read.value));
    } catch (cause) {
      signal.throwIfAborted();
      log.warn({ err: cause }, 'the memory could not be searched');
      throw new ToolFailure(`the memory could not be searched: ${thrownText(cause)}`, {
        mayHaveRun: false,
        repeatable: true,
        cause,
      });
    }
  }

  function refusal(name: string, { escalated, natural }: Bound): ToolAnswer {
    const quoted = JSON.stringify(name.slice(0, 200));
    if (escalated.has(name)) {
      const remedy = delegate
        ? `use ${CORE_EXECUTE}`
        : `use ${CORE_EXECUTE}, which needs an executor: none is configured`;
      return textAnswer(`${quoted} moves funds or commits the user and cannot be called directly — ${remedy}`, true);
    }
    const reason = natural.has(name) ? 'the skill at work does not list it' : 'it is not available';
    return textAnswer(`unknown tool ${quoted} — ${reason}`, true);
  }

  /** A skill with missing tools is a warning, whether they are misspelt or their server is down. */
  function missing(): string[] {
    const available = new Set((host?.tools() ?? []).map(({ uri }) => uri));
    return (skill?.entries ?? [])
      .map(({ uri }) => uri)
      .filter((uri) => !available.has(uri))
      .map((uri) => `the skill lists ${uri}, which no server has now`);
  }

  const surface: ToolSurface = {
    guide: skill?.text,

    schemas(limit = skill?.limit) {
      const natural = [...bound().natural.values()].filter((tool) => allows(limit, tool)).map(({ schema }) => schema);
      return [...natural, ...(delegate ? [CORE_EXECUTE_SCHEMA] : []), ...(recall ? [MEMORY_RECALL_SCHEMA] : [])];
    },

    async dispatch(name, args, context) {
      context.signal.throwIfAborted();
      if (name === CORE_EXECUTE && delegate) return execute(args, context);
      if (name === MEMORY_RECALL && recall) return lookUp(args, context);
      const now = bound();
      const tool = now.natural.get(name);
      return tool && allows(context.limit ?? skill?.limit, tool) ? callTool(tool, args, context) : refusal(name, now);
    },

    repeatable(name) {
      // The executor recognizes a task by the id of its call.
      if (OWN_FUNCTIONS.has(name)) return true;
      const tool = bound().natural.get(name);
      return tool !== undefined && isRepeatable(tool);
    },

    describe() {
      const now = bound();
      return {
        tools: surface.schemas().map((schema) => {
          const uri = now.natural.get(schema.name)?.uri;
          return uri === undefined ? schema : { ...schema, uri };
        }),
        escalate: [...now.escalated.keys()],
        escalated: [...now.escalated.values()],
        off: [...(host?.off?.() ?? [])],
        sign_in: [...(host?.signedOut?.() ?? [])],
        ...(host?.limits && { limits: host.limits() }),
        warnings: [...surface.warnings()],
      };
    },

    warnings: () => [...(options.warnings ?? []), ...(host?.warnings() ?? []), ...bound().warnings, ...missing()],

    async close() {
      await host?.close();
    },
  };
  return surface;
}
