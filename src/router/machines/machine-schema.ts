/**
 * A machine in the routes of operators (docs/reference/routes.md): the common members, and the specification of each
 * provider.
 */
import { z } from 'zod';
import { budgetSchema } from '../../wire/budget.ts';
import { MACHINE_STATES } from '../../wire/machine.ts';
import { spendingSchema } from '../../wire/usage.ts';
import { PROVIDERS, type ProviderName, type Target } from '../providers/descriptors.ts';

const BASE64_PREFIX = 'whsec_';
/** Text without the prefix, or the prefix with base64. It has no look-ahead, because it is published as JSON Schema. */
const TOKEN_FORM = new RegExp(
  `^(?:${BASE64_PREFIX}[A-Za-z0-9+/]+={0,2}$|${[...BASE64_PREFIX]
    .map((letter, at) => `${BASE64_PREFIX.slice(0, at)}(?:[^${letter}]|$)`)
    .join('|')})`,
);

/** It is sent in a header and in the environment of a process. `whsec_` announces base64, as in Standard Webhooks. */
const machineToken = z
  .string()
  .min(16)
  .max(512)
  .regex(/^[\x21-\x7e]*$/, 'must be visible ASCII without spaces')
  .regex(TOKEN_FORM, 'must be base64 after whsec_');

const machineCommon = {
  idle_seconds: z
    .int()
    .min(1)
    .max(30 * 24 * 3600)
    .optional(),
  state: z.enum(['active', 'provisioning']).optional(),
  /** The budget of wakes. Without it the machine keeps its own; one that has none gets the router's setting. */
  budget: budgetSchema.optional(),
  /** The bearer token that the daemon expects; the router creates one when it is absent. */
  token: machineToken.optional(),
};

export type MachinePut = Target & z.output<z.ZodObject<typeof machineCommon>>;

const [first, ...others] = PROVIDERS.map(({ name, schema }) =>
  z.strictObject({ provider: z.literal(name), spec: schema, ...machineCommon }),
);

/** The body of `PUT /admin/machines/{user_id}`. */
export const machinePutSchema = z.discriminatedUnion('provider', [
  first!,
  ...others,
]) as unknown as z.ZodType<MachinePut>;

/** A machine as the router shows it. The token leaves the registry only in the answer that created it. */
export const machineViewSchema = z.object({
  user_id: z.string(),
  provider: z.enum(PROVIDERS.map(({ name }) => name) as [ProviderName]),
  spec: z.record(z.string(), z.unknown()),
  state: z.enum(MACHINE_STATES),
  idle_seconds: z.number().optional(),
  budget: budgetSchema.optional(),
  /** The router's own setting, when it applies: the machine has no budget of its own. */
  default_budget: budgetSchema.optional(),
  /** Where the budget limits what turns use. */
  spending: spendingSchema.optional(),
  created_at: z.string(),
  updated_at: z.string(),
  /** The current activity: `asleep`, `starting`, `ready`, `stopping`. */
  running: z.string().optional(),
});
export type MachineView = z.infer<typeof machineViewSchema>;

/** The answer to a PUT. */
export const machinePutAnswerSchema = machineViewSchema.extend({
  /** The secret that the router created for the machine, shown only this time. */
  token: z.string().optional(),
  /** Sentences about requirements that must be met before the machine can be woken. */
  warnings: z.array(z.string()).optional(),
});
export type MachinePutAnswer = z.infer<typeof machinePutAnswerSchema>;
