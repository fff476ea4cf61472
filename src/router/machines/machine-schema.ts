/**
 * A machine as the routes of operators take and show it (docs/contracts.md §4): what all machines have, and the
 * specification of each provider.
 */
import { z } from 'zod';
import { budgetSchema } from '../../wire/budget.ts';
import { MACHINE_STATES } from '../../wire/machine.ts';
import { PROVIDERS, type ProviderName, type Target } from '../providers/descriptors.ts';

const BASE64_PREFIX = 'whsec_';
/** Text that does not begin with the prefix, or base64 after it. Without look-ahead: it is published as JSON Schema. */
const TOKEN_FORM = new RegExp(
  `^(?:${BASE64_PREFIX}[A-Za-z0-9+/]+={0,2}$|${[...BASE64_PREFIX]
    .map((letter, at) => `${BASE64_PREFIX.slice(0, at)}(?:[^${letter}]|$)`)
    .join('|')})`,
);

/**
 * It travels in a header and in the environment of a process; `whsec_` announces base64, as Standard Webhooks has it.
 */
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
  /** How often and when its agent may be woken; without it, what the router's own setting says. */
  budget: budgetSchema.optional(),
  /** The bearer token that the daemon expects; the router makes one when there is none. */
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

/** A machine as the router shows it; the token never leaves the registry but once, in the answer that made it. */
export const machineViewSchema = z.object({
  user_id: z.string(),
  provider: z.enum(PROVIDERS.map(({ name }) => name) as [ProviderName]),
  spec: z.record(z.string(), z.unknown()),
  state: z.enum(MACHINE_STATES),
  idle_seconds: z.number().optional(),
  budget: budgetSchema.optional(),
  /** The router's own setting, where it applies: the machine has no budget of its own. */
  default_budget: budgetSchema.optional(),
  created_at: z.string(),
  updated_at: z.string(),
  /** What goes on right now: `asleep`, `starting`, `ready`, `stopping`. */
  running: z.string().optional(),
});
export type MachineView = z.infer<typeof machineViewSchema>;

/** The answer to a PUT. */
export const machinePutAnswerSchema = machineViewSchema.extend({
  /** The secret that the router made for the machine, shown this once. */
  token: z.string().optional(),
  /** Sentences about what is not there yet and must be before the machine can be woken. */
  warnings: z.array(z.string()).optional(),
});
export type MachinePutAnswer = z.infer<typeof machinePutAnswerSchema>;
