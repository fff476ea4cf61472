/**
 * Agent manifests, `agents/*.json`: the MCP servers an agent has, and the tools it may use on them (docs/contracts.md
 * §8).
 */
import { z } from 'zod';

export const SIDE_EFFECT_CLASSES = ['read', 'write', 'network', 'shell'] as const;
export const TOOL_SURFACES = ['natural', 'escalate'] as const;

/** What a tool may do to the world. */
export type SideEffectClass = (typeof SIDE_EFFECT_CLASSES)[number];
/** `natural`: the agent calls it itself; `escalate`: only the executor does, with a person's consent. */
export type ToolSurface = (typeof TOOL_SURFACES)[number];

/** The member of a call's `_meta` that says whose intent it is made for. */
export const USER_META = 'reveille/user';

/** The member of a call's `_meta` that says in which conversation it is made. */
export const CONVERSATION_META = 'reveille/conversation';

/** An experimental capability of a server that wants {@link CONVERSATION_META}; other servers are not given it. */
export const CONVERSATION_CAPABILITY = 'reveille/conversation';

const variable = '[A-Za-z_][A-Za-z0-9_]*';

/** Variables or headers handed to a server: an object of values, or a list of `NAME=value`. */
const assignments = z.union(
  [z.record(z.string().min(1), z.string()), z.array(z.string().regex(/^[^=]+=/, 'must look like NAME=value'))],
  { error: `must be an object such as {"NAME": "\${NAME}"} or a list such as ["NAME=$env:NAME"]` },
);

/** A JSON Pointer (RFC 6901) into arguments or a result. */
const pointer = z.string().regex(/^(\/([^~/]|~[01])*)+$/, 'must be a JSON Pointer such as /amount');

/**
 * Another tool of the same server and what it is called with. A value that is exactly `$args/<pointer>`,
 * `$result/<pointer>` or `$key` stands for a part of the call's arguments, of its structured result, or for its
 * idempotency key.
 */
const companionCall = z.strictObject({ tool: z.string().min(1).max(128), args: z.record(z.string(), z.unknown()) });
export type CompanionCall = z.output<typeof companionCall>;

/** What an argument is to the person who approves a call. */
export const EFFECT_ROLES = [
  'amount',
  'payer',
  'recipient',
  'command',
  'code',
  'url',
  'path',
  'content',
  'name',
] as const;
export type EffectRole = (typeof EFFECT_ROLES)[number];

/** What the executor has to know of a tool to use it with care. */
export const railSchema = z.strictObject({
  /** The argument that takes an idempotency key; the executor fills it in. */
  idempotency_key: z.string().min(1).optional(),
  /** Tries the call out without doing it; its answer is shown with the question. */
  dry_run: companionCall.optional(),
  /** Tells what became of a call whose answer got lost. */
  status: companionCall
    .extend({
      /** Where the answer says how it stands. */
      field: pointer,
      /** The values there that mean: it was carried out; it was not, and will not be. Any other leaves it unknown. */
      done: z.array(z.string()).min(1),
      not_done: z.array(z.string()).min(1),
    })
    .optional(),
  /** Reads back what the call has changed. */
  read_back: companionCall.optional(),
  /** Where the arguments say how much is at stake, and of what; limits of policies count these. */
  amount: pointer.optional(),
  currency: pointer.optional(),
  /** Where the arguments say who or what it goes to; shown with the question. */
  recipient: pointer.optional(),
  /**
   * Where the arguments say what the call does. The question shows these arguments whole, right above the prompt. Without
   * it the question shows the amount and the recipient, or every argument where one of them is not known.
   */
  effect: z
    .array(z.strictObject({ role: z.enum(EFFECT_ROLES), at: pointer }))
    .min(1)
    .optional(),
  /** Where the result names what it made elsewhere, such as a transaction's id. */
  references: z.array(pointer).optional(),
  /**
   * The same call may be made again where its answer got lost: it changes nothing more, or its idempotency key sees to
   * that. For tools of the natural class.
   */
  repeatable: z.boolean().optional(),
  /**
   * Where the arguments only say how others are to be read, such as `/kind`: of the values that the schema lists there,
   * a compiler may pick one that the task does not name.
   */
  chosen: z.array(pointer).optional(),
});
export type Rail = z.output<typeof railSchema>;

export const manifestToolSchema = z.strictObject({
  name: z.string().min(1).max(128),
  description: z.string().optional(),
  side_effect_class: z.enum(SIDE_EFFECT_CLASSES).optional(),
  surface: z.enum(TOOL_SURFACES).optional(),
  timeout_ms: z.int().min(1).optional(),
  rail: railSchema.optional(),
});

export type ManifestTool = z.output<typeof manifestToolSchema>;

/** Met by any one of the programs on the PATH, or any one of the variables. */
const needSchema = z.strictObject({
  programs: z.array(z.string().min(1)).min(1).optional(),
  variables: z
    .array(z.string().regex(new RegExp(`^${variable}$`), 'must be the name of a variable'))
    .min(1)
    .optional(),
  /** What to install or to set, as one sentence without its full stop. */
  remedy: z.string().min(1).max(300),
});

const roomSchema = z.strictObject({
  /** Folders that it may write to; may refer to variables. */
  writable: z.array(z.string().min(1)).min(1),
  network: z.boolean().optional(),
});

export const manifestServerSchema = z.strictObject({
  alias: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 of A-Z a-z 0-9 _ -'),
  transport: z.enum(['stdio', 'http']).optional(),
  /** May carry its arguments in one string. */
  command: z.string().min(1).optional(),
  args: z.array(z.string()).optional(),
  url: z.string().min(1).optional(),
  env: assignments.optional(),
  headers: assignments.optional(),
  version: z.string().min(1).optional(),
  required: z.boolean().optional(),
  /**
   * `lazy`: the server is started by the first call of one of its tools. Until then its tools are those that are written
   * down beside the manifest; without that, and by default, it is started with the others.
   */
  start: z.enum(['eager', 'lazy']).optional(),
  /**
   * Each call says in its `_meta` whose intent it is made for (`reveille/user`), where no argument can say otherwise. For
   * servers that act for several users.
   */
  per_user: z.boolean().optional(),
  /** What it cannot do without. Where one of these is not met, the server is off and the remedy says how it is not. */
  needs: z.array(needSchema).optional(),
  /**
   * Folders that it may write to besides those of its `…_DATA_DIR` and `…_WORKSPACE` variables; may refer to variables.
   */
  writable: z.array(z.string().min(1)).max(64).optional(),
  /** It runs in a room of its own: of the file system only programs and these folders, of the network nothing unless told. */
  room: roomSchema.optional(),
  tools: z.array(manifestToolSchema).optional(),
});
export type ManifestServer = z.output<typeof manifestServerSchema>;

const limit = (least: number, most: number) => z.int().min(least).max(most).optional();

/** Limits for all servers; the environment of the daemon goes before them. */
export const manifestLimitsSchema = z.strictObject({
  /** From the start of a server to the list of its tools. */
  spawn_timeout_ms: limit(100, 600_000),
  /** For tools without a `timeout_ms` of their own. */
  call_timeout_ms: limit(100, 3_600_000),
  /** What a model gets to read of one result. */
  output_tokens: limit(100, 1_000_000),
  /** Between two looks at a server that nobody calls, and what it has to answer one. */
  health_interval_ms: limit(1000, 3_600_000),
  health_timeout_ms: limit(100, 600_000),
  /** The longest pause before a server that failed is started again. */
  restart_delay_ms: limit(1000, 3_600_000),
});
export type ManifestLimits = z.output<typeof manifestLimitsSchema>;

export const agentManifestSchema = z.strictObject({
  schema_version: z.union([z.string(), z.number()]).optional(),
  agent: z.string().optional(),
  description: z.string().optional(),
  allowed_side_effects: z.array(z.enum(SIDE_EFFECT_CLASSES)).optional(),
  limits: manifestLimitsSchema.optional(),
  servers: z.array(manifestServerSchema),
});

/** `${NAME}`, or `${NAME:-otherwise}` with what stands in its place where the variable is not set. */
const OBJECT_REFERENCE = new RegExp(`^\\$\\{(${variable})(?::-[^}]*)?\\}$`);
const LIST_REFERENCE = new RegExp(`^\\$env:(${variable})$`);

/**
 * What each variable or header of a server is set to, in either spelling: the name of the environment variable it
 * refers to, or `undefined` where a literal stands. Literals are not given back; they may be secrets.
 */
export function referencesOf(given: ManifestServer['env']): { name: string; variable: string | undefined }[] {
  if (given === undefined) return [];
  if (!Array.isArray(given))
    return Object.entries(given).map(([name, value]) => ({ name, variable: OBJECT_REFERENCE.exec(value)?.[1] }));
  return given.map((entry) => {
    const at = entry.indexOf('=');
    return { name: entry.slice(0, at), variable: LIST_REFERENCE.exec(entry.slice(at + 1))?.[1] };
  });
}
