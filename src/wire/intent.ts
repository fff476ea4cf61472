/** Intents: the executor's tasks as a closed, unambiguous structure (docs/reference/api.md, "Executor"). */
import { z } from 'zod';
import { nodeIdSchema } from './executor.ts';
import { parseInstant } from './rfc3339.ts';
import { shortText } from './text.ts';

/** Maximum of nodes in a plan, at all depths together. */
export const PLAN_NODES_MAX = 64;
/** Maximum nesting depth of sequences and parallels. */
export const PLAN_DEPTH_MAX = 8;
/** The longest wait of a plan: 30 days. */
export const WAIT_SECONDS_MAX = 30 * 24 * 60 * 60;

/** One call of one tool, with its exact arguments. A read is a call, too. */
export type CallNode = {
  readonly id: string;
  readonly kind: 'call';
  /** `<alias>/<tool>` */
  readonly tool: string;
  /**
   * Numbers are exact: a number that JavaScript would round is refused when the intent is read. `{"$ref": "<node
   * id>#<JSON Pointer>"}` in place of a value refers to the result of an earlier call in a sequence.
   */
  readonly args: Readonly<Record<string, unknown>>;
};
/** A wait of some seconds or until an instant: exactly one of the two. A wait until a past instant ends at once. */
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

const details = z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())], {
  error: 'must be an object or a list',
});

/**
 * An intent given as JSON or compiled from prose. `objects` and `constraints` inform people; only the plan is executed.
 */
export const intentSchema = z.strictObject({
  /** The action in a word or two: `transfer`, `rotate key`. */
  verb: shortText(100).min(1),
  /** The objects of the action. */
  objects: details.optional(),
  /** Conditions that must hold. */
  constraints: details.optional(),
  /** RFC 3339; no call starts after it. */
  deadline: instant.optional(),
  plan: planNodeSchema,
});
export type Intent = z.output<typeof intentSchema>;
