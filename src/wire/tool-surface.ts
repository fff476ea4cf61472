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
  /** Limits of the servers: timeouts and the length of results. Absent in answers of older versions. */
  limits: z.string().optional(),
  /** The model that answers; `offline` if none is configured. Absent in answers of older versions. */
  model: z.string().optional(),
  /** Sentences about servers that do not run, and about withheld tools. */
  warnings: z.array(z.string()),
});
export type SurfaceView = z.infer<typeof surfaceViewSchema>;
