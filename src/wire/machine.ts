/** Machines: where a user's agent lives and how it is started (contracts §4). */
import { z } from 'zod';
import { LIST_LIMIT_MAX } from './alarm.ts';
import { labelSchema } from './did.ts';
import { wholeNumber } from './settings.ts';

export const MACHINE_PROVIDERS = ['http', 'process'] as const;
export const MACHINE_STATES = ['active', 'provisioning', 'suspended', 'deleted'] as const;
export type MachineState = (typeof MACHINE_STATES)[number];

const healthPath = z
  .string()
  .regex(/^\/[\x21-\x7e]{0,200}$/, 'must be a path that starts with /')
  .optional();
const port = z.int().min(1).max(65535);

/** The base address of a daemon: its routes stand below it, so it has no query, and secrets travel in `token`. */
const baseUrl = z
  // Without `abort` the next check would run on text that is no address.
  .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address', abort: true })
  .refine((text) => {
    const url = new URL(text);
    return url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  }, 'must be an address without user, password, query or fragment; give a password as token');

/** What the kernel can hand to a process: it ends every string at a NUL. */
const argument = z.string().refine((text) => !text.includes('\0'), 'must not contain a NUL character');

export const httpSpecSchema = z.strictObject({ url: baseUrl, health_path: healthPath });
export type HttpSpec = z.output<typeof httpSpecSchema>;

export const processSpecSchema = z.strictObject({
  command: z.array(argument.min(1)).min(1),
  cwd: argument.min(1).optional(),
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name'), argument).optional(),
  port: port.optional(),
  health_path: healthPath,
});
export type ProcessSpec = z.output<typeof processSpecSchema>;

const machineCommon = {
  idle_seconds: z
    .int()
    .min(1)
    .max(30 * 24 * 3600)
    .optional(),
  state: z.enum(['active', 'provisioning']).optional(),
  /** The bearer token that the daemon expects; the router makes one when there is none. */
  token: z.string().min(16).max(512).optional(),
};

/** The body of `PUT /admin/machines/{user_id}`. */
export const machinePutSchema = z.discriminatedUnion('provider', [
  z.strictObject({ provider: z.literal('http'), spec: httpSpecSchema, ...machineCommon }),
  z.strictObject({ provider: z.literal('process'), spec: processSpecSchema, ...machineCommon }),
]);
export type MachinePut = z.output<typeof machinePutSchema>;

/** The query of `GET /admin/machines`; without `state` the deleted ones are left out. */
export const machineListQuerySchema = z.strictObject({
  limit: wholeNumber(1, LIST_LIMIT_MAX).optional(),
  cursor: labelSchema.optional(),
  state: z.enum(MACHINE_STATES).optional(),
});

/** A machine as the router shows it; the token never leaves the registry but once, in the answer that made it. */
export const machineViewSchema = z.object({
  user_id: z.string(),
  provider: z.enum(MACHINE_PROVIDERS),
  spec: z.record(z.string(), z.unknown()),
  state: z.enum(MACHINE_STATES),
  idle_seconds: z.number().optional(),
  created_at: z.string(),
  updated_at: z.string(),
  /** What goes on right now: `asleep`, `starting`, `ready`, `stopping`. */
  running: z.string().optional(),
});
export type MachineView = z.infer<typeof machineViewSchema>;
