/**
 * Intents: what the executor is to do, as a closed shape in which nothing is left to be guessed (docs/contracts.md §6).
 */
import { z } from 'zod';
import { nodeIdSchema } from './executor.ts';
import { parseInstant } from './rfc3339.ts';
import { shortText } from './text.ts';

/** Nodes of one plan, all depths together. */
export const PLAN_NODES_MAX = 64;
/** How deep sequences and parallels may stand in one another. */
export const PLAN_DEPTH_MAX = 8;
/** The longest wait of a plan: 30 days. */
export const WAIT_SECONDS_MAX = 30 * 24 * 60 * 60;

/** One call of one tool, with the very arguments it gets. A read is such a call, too. */
export type CallNode = {
  readonly id: string;
  readonly kind: 'call';
  /** `<alias>/<tool>` */
  readonly tool: string;
  /**
   * Numbers are exact: what JavaScript would round is refused when the intent is read. In the place of a value,
   * `{"$ref": "<node id>#<JSON Pointer>"}` stands for a part of the result of a call that a sequence puts before.
   */
  readonly args: Readonly<Record<string, unknown>>;
};
/** A wait of so many seconds, or until an instant: one of the two. An instant that has passed is over at once. */
export type WaitNode = {
  readonly id: string;
  readonly kind: 'wait';
  readonly seconds?: number;
  /** RFC 3339 */
  readonly until?: string;
};
export type GroupNode = {
  readonly id: string;
  readonly kind: 'sequence' | 'parallel';
  readonly nodes: readonly PlanNode[];
};
export type PlanNode = CallNode | WaitNode | GroupNode;

const toolName = z.string().regex(/^[A-Za-z0-9_-]{1,64}\/.{1,128}$/u, 'must be <alias>/<tool>');

const instant = z
  .string()
  .refine((text) => parseInstant(text) !== undefined, 'must be an RFC 3339 instant with an offset');

const waitNodeSchema = z
  .strictObject({
    id: nodeIdSchema,
    kind: z.literal('wait'),
    seconds: z.int().min(1).max(WAIT_SECONDS_MAX).exactOptional(),
    until: instant.exactOptional(),
  })
  .refine(({ seconds, until }) => (seconds === undefined) !== (until === undefined), {
    message: 'is a wait and must have exactly one of seconds and until',
  });

export const planNodeSchema: z.ZodType<PlanNode> = z.lazy(() =>
  z.discriminatedUnion('kind', [
    z.strictObject({
      id: nodeIdSchema,
      kind: z.literal('call'),
      tool: toolName,
      args: z.record(z.string(), z.unknown()),
    }),
    waitNodeSchema,
    z.strictObject({
      id: nodeIdSchema,
      kind: z.enum(['sequence', 'parallel']),
      nodes: z.array(planNodeSchema).min(1).max(PLAN_NODES_MAX),
    }),
  ]),
);

const particulars = z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())], {
  error: 'must be an object or a list',
});

/**
 * An intent given as JSON, or compiled from prose. `objects` and `constraints` are for people; only the plan is carried
 * out.
 */
export const intentSchema = z.strictObject({
  /** What is to be done, in a word or two: `transfer`, `rotate key`. */
  verb: shortText(100).min(1),
  /** What it is done to and with. */
  objects: particulars.optional(),
  /** What must hold. */
  constraints: particulars.optional(),
  /** RFC 3339; no call begins after it. */
  deadline: instant.optional(),
  plan: planNodeSchema,
});
export type Intent = z.output<typeof intentSchema>;
