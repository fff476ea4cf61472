/** What an agent can do, as `GET /tools` and `reveille neo tools` show it (docs/contracts.md §5). */
import { z } from 'zod';

export const surfaceViewSchema = z.object({
  /** The functions that the model is shown, in that order. */
  tools: z.array(
    z.object({
      name: z.string(),
      description: z.string(),
      /** JSON Schema of the arguments. */
      parameters: z.record(z.string(), z.unknown()),
      /** `matrix://tool/mcp/…`; absent for functions that no server serves. */
      uri: z.string().optional(),
    }),
  ),
  /** The names of the tools that are reached through `core_execute` alone. */
  escalate: z.array(z.string()),
  /** The same with where they come from and why they are escalated. */
  escalated: z.array(z.object({ name: z.string(), uri: z.string(), reason: z.string() })),
  /** Servers that need something that is not there, with what would turn them on. Absent in answers of older versions. */
  off: z.array(z.object({ alias: z.string(), why: z.string() })).optional(),
  /** What holds for the servers: how long they may take, and how much of a result is shown. Absent in answers of older versions. */
  limits: z.string().optional(),
  /** Which model answers; `offline`: none is configured. Absent in answers of older versions. */
  model: z.string().optional(),
  /** Sentences about servers that do not run, and tools that are held back. */
  warnings: z.array(z.string()),
});
export type SurfaceView = z.infer<typeof surfaceViewSchema>;
