/** An agent's tools, as `GET /tools` and `reveille neo tools` show them (docs/reference/api.md, "Delivery to a daemon"). */
import { z } from 'zod';

export const surfaceViewSchema = z.object({
  /** The functions that the model sees, in this order. */
  tools: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      /** JSON Schema of the arguments. */
      parameters: z.record(z.string(), z.unknown()),
      /** `matrix://tool/mcp/…`; absent for built-in functions. */
      uri: z.string().optional(),
    }),
  ),
  /** The names of the tools that only `core_execute` reaches. */
  escalate: z.array(z.string()),
  /** The same tools with their origin and the reason for the escalation. */
  escalated: z.array(z.object({ name: z.string(), uri: z.string(), reason: z.string() })),
  /** Disabled servers with the remedy. Absent in answers of older versions. */
  off: z.array(z.object({ alias: z.string(), why: z.string() })).optional(),
  /** Servers at which the user must sign in, and how. Absent in answers of older versions. */
  sign_in: z.array(z.object({ alias: z.string(), why: z.string() })).optional(),
  /** Limits of the servers: timeouts and the length of results. Absent in answers of older versions. */
  limits: z.string().optional(),
  /** The model that answers; `offline` if none is configured. Absent in answers of older versions. */
  model: z.string().optional(),
  /** Sentences about servers that do not run, and about withheld tools. */
  warnings: z.array(z.string()),
});
export type SurfaceView = z.infer<typeof surfaceViewSchema>;

/** The function that hands a task to the executor. */
export const CORE_EXECUTE = 'core_execute';
/** More names would hide the wrong one. */
const NAMES_SHOWN = 40;

type Named = Pick<SurfaceView, 'tools' | 'escalated'>;

/** The function of each name that an alarm can give a tool: its function name, and its URI. */
export function functionsOf({ tools }: Pick<Named, 'tools'>): ReadonlyMap<string, string> {
  return new Map(
    tools.flatMap(({ name, uri }) => [[name, name] as const, ...(uri === undefined ? [] : [[uri, name] as const])]),
  );
}

/**
 * Why an alarm cannot limit its turn to some tools: the names that the agent does not have, the names that it has, and
 * the remedy; `undefined` if it has all of them.
 */
export function missingTools(names: readonly string[], view: Named): string | undefined {
  const known = functionsOf(view);
  const missing = names.filter((name) => !known.has(name));
  if (missing.length === 0) return undefined;
  const escalated = new Set(view.escalated.flatMap(({ name, uri }) => [name, uri]));
  const all = view.tools.map(({ name }) => name);
  const more = all.length > NAMES_SHOWN ? ` and ${all.length - NAMES_SHOWN} more` : '';
  const has = all.length === 0 ? 'it has none' : `it has ${all.slice(0, NAMES_SHOWN).join(', ')}${more}`;
  const through = missing.some((name) => escalated.has(name))
    ? `; name ${CORE_EXECUTE} for a tool that moves funds or commits the user`
    : '';
  const got = missing.map((name) => JSON.stringify(name)).join(', ');
  return `tools must be tools of the agent (got ${got}; ${has}); omit tools for all of them${through}`;
}
