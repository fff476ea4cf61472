/**
 * Agent manifests, `agents/*.json`: an agent's MCP servers and the tools that it may use on them (docs/reference/api.md
 * §8).
 */
import { z } from 'zod';

export const SIDE_EFFECT_CLASSES = ['read', 'write', 'network', 'shell'] as const;
export const TOOL_SURFACES = ['natural', 'escalate'] as const;

/** Kinds of side effects of a tool. */
export type SideEffectClass = (typeof SIDE_EFFECT_CLASSES)[number];
/**
 * `natural`: the agent calls the tool itself. `escalate`: only the executor calls it, after the policy or a person
 * allowed it.
 */
export type ToolSurface = (typeof TOOL_SURFACES)[number];

/** Member of a call's `_meta` that names the user of the intent. */
export const USER_META = 'reveille/user';

/** Member of a call's `_meta` that names the conversation. */
export const CONVERSATION_META = 'reveille/conversation';

/** Experimental capability with which a server requests {@link CONVERSATION_META}; other servers do not get it. */
export const CONVERSATION_CAPABILITY = 'reveille/conversation';

const variable = '[A-Za-z_][A-Za-z0-9_]*';

/** Variables or headers for a server: an object of values, or a list of `NAME=value`. */
const assignments = z.union(
  [z.record(z.string().min(1), z.string()), z.array(z.string().regex(/^[^=]+=/, 'must look like NAME=value'))],
  { error: `must be an object such as {"NAME": "\${NAME}"} or a list such as ["NAME=$env:NAME"]` },
);

/** A JSON Pointer (RFC 6901) into arguments or a result. */
const pointer = z.string().regex(/^(\/([^~/]|~[01])*)+$/, 'must be a JSON Pointer such as /amount');

/**
 * A call of another tool of the same server. A value that is exactly `$args/<pointer>` or `$result/<pointer>` refers to
 * the call's arguments or to its structured result. `$key` is the call's idempotency key.
 */
const companionCall = z.strictObject({ tool: z.string().min(1).max(128), args: z.record(z.string(), z.unknown()) });
export type CompanionCall = z.output<typeof companionCall>;

/** Meaning of an argument for the approver of a call. */
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

/** Facts about a tool that the executor needs to call it safely. */
export const railSchema = z.strictObject({
  /** The argument for the idempotency key, which the executor sets. */
  idempotency_key: z.string().min(1).optional(),
  /** Previews the call without executing it; the result is shown with the question. */
  dry_run: companionCall.optional(),
  /** Looks up the outcome of a call whose answer was lost. */
  status: companionCall
    .extend({
      /** Pointer to the state in the result. */
      field: pointer,
      /**
       * Values of `field` for an executed call (`done`), and for one that was not and will not be executed
       * (`not_done`). For any other value the outcome stays unknown.
       */
      done: z.array(z.string()).min(1),
      not_done: z.array(z.string()).min(1),
    })
    .optional(),
  /** Reads the changes of the call back. */
  read_back: companionCall.optional(),
  /** Pointers to the amount and the currency in the arguments. Limits of policies count them. */
  amount: pointer.optional(),
  currency: pointer.optional(),
  /** Pointer to the recipient in the arguments; shown with the question. */
  recipient: pointer.optional(),
  /**
   * Pointers to the arguments that determine the effect. The question shows them whole, directly above the prompt.
   * Without `effect`, it shows the amount and the recipient, or all arguments if one of the two is unknown.
   */
  effect: z
    .array(z.strictObject({ role: z.enum(EFFECT_ROLES), at: pointer }))
    .min(1)
    .optional(),
  /** Pointers to names of new external objects in the result, such as the id of a transaction. */
  references: z.array(pointer).optional(),
  /**
   * The call may be repeated if its answer was lost: a repetition changes nothing, or the idempotency key prevents it.
   * For natural tools.
   */
  repeatable: z.boolean().optional(),
  /**
   * Pointers to arguments that select how the others are interpreted, such as `/kind`. A compiler may choose one of the
   * schema's values there although the task does not name it.
   */
  chosen: z.array(pointer).optional(),
  /**
   * The server takes more than its schema says, and checks it itself: further arguments, and any JSON where the schema
   * has a text.
   */
  open: z.boolean().optional(),
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

/** Met if any one of the programs is on the PATH, or any one of the variables is set. */
const needSchema = z.strictObject({
  programs: z.array(z.string().min(1)).min(1).optional(),
  variables: z
    .array(z.string().regex(new RegExp(`^${variable}$`), 'must be the name of a variable'))
    .min(1)
    .optional(),
  /** How to meet the need: what to install or to set, as one sentence without its full stop. */
  remedy: z.string().min(1).max(300),
});

const sandboxSchema = z.strictObject({
  /** Folders that the server may write to; may refer to variables. */
  writable: z.array(z.string().min(1)).min(1),
  network: z.boolean().optional(),
});

/** How the user signs in at a server over HTTP. Without it, or without a member, the server's own metadata decides. */
const oauthSchema = z.strictObject({
  /** A client that the operator registered at the authorization server. Without it, the host registers itself. */
  client_id: z.string().min(1).max(512).optional(),
  /** May only refer to a variable. */
  client_secret: z.string().min(1).optional(),
  /** The authorization server of that client. Without it, the one of the first sign-in. */
  issuer: z.url({ protocol: /^https?$/ }).optional(),
  /** The HTTPS address of a Client ID Metadata Document, for authorization servers that support them. */
  client_metadata_url: z.url({ protocol: /^https$/ }).optional(),
  /** Scopes to request in addition to the required ones, separated by spaces. */
  scope: z.string().min(1).max(1000).optional(),
  /** `client_credentials`: the host gets a token for itself, without a user. Needs `client_secret`. */
  grant: z.enum(['authorization_code', 'client_credentials']).optional(),
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
  /** `false`: no sign-in, also if the server requires one. */
  oauth: z.union([z.literal(false), oauthSchema]).optional(),
  version: z.string().min(1).optional(),
  required: z.boolean().optional(),
  /**
   * `lazy`: the first call of one of its tools starts the server. Until then, its tools come from the manifest's stored
   * tool list. Without a stored list, and by default, it starts with the others.
   */
  start: z.enum(['eager', 'lazy']).optional(),
  /**
   * Each call names the intent's user in its `_meta` (`reveille/user`), which no argument overrides. For servers that
   * act for several users.
   */
  per_user: z.boolean().optional(),
  /** Requirements. If one is not met, the server is disabled and its remedy is reported. */
  needs: z.array(needSchema).optional(),
  /**
   * More folders that the server may write to, besides its `…_DATA_DIR` and `…_WORKSPACE` variables; may refer to
   * variables.
   */
  writable: z.array(z.string().min(1)).max(64).optional(),
  /**
   * Runs the server in a sandbox of its own: programs and these folders only, and no network unless `network` is set.
   */
  room: sandboxSchema.optional(),
  tools: z.array(manifestToolSchema).optional(),
});
export type ManifestServer = z.output<typeof manifestServerSchema>;

const limit = (least: number, most: number) => z.int().min(least).max(most).optional();

/** Limits for all servers; the daemon's environment takes precedence. */
export const manifestLimitsSchema = z.strictObject({
  /** From the start of a server until its tool list arrives. */
  spawn_timeout_ms: limit(100, 600_000),
  /** For tools without their own `timeout_ms`. */
  call_timeout_ms: limit(100, 3_600_000),
  /** Maximum of a result's tokens for the model. */
  output_tokens: limit(100, 1_000_000),
  /** Interval of health checks of an idle server, and their timeout. */
  health_interval_ms: limit(1000, 3_600_000),
  health_timeout_ms: limit(100, 600_000),
  /** Longest pause before a failed server is restarted. */
  restart_delay_ms: limit(1000, 3_600_000),
});
export type ManifestLimits = z.output<typeof manifestLimitsSchema>;

export const agentManifestSchema = z.strictObject({
  schema_version: z.union([z.string(), z.number()]).optional(),
  agent: z.string().optional(),
  description: z.string().optional(),
  allowed_side_effects: z.array(z.enum(SIDE_EFFECT_CLASSES)).optional(),
  limits: manifestLimitsSchema.optional(),
  /** Checks that the agent may set for its alarms by itself, besides addresses and paths: commands in a closed sandbox. */
  checks: z.literal('commands').optional(),
  servers: z.array(manifestServerSchema),
});

/** `${NAME}`, or `${NAME:-default}` with a default for an unset variable. */
const OBJECT_REFERENCE = new RegExp(`^\\$\\{(${variable})(?::-[^}]*)?\\}$`);
const LIST_REFERENCE = new RegExp(`^\\$env:(${variable})$`);

/**
 * The environment variable that each variable or header of a server refers to, in either spelling; `undefined` for a
 * literal. Literals are not returned, because they may be secrets.
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
