/** Machines: where a user's agent lives and how it is started (contracts §4). */
import { z } from 'zod';
import { LIST_LIMIT_MAX } from './alarm.ts';
import { budgetSchema } from './budget.ts';
import { labelSchema } from './did.ts';
import { wholeNumber } from './settings.ts';

export const MACHINE_PROVIDERS = ['http', 'process', 'command', 'docker', 'fly'] as const;
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

/** What a process and its descendants may use together; more than that ends them. */
const processLimitsSchema = z.strictObject({
  /** Resident memory, in MiB, looked at once a second. */
  memory_mb: z.int().min(16).max(1_048_576).optional(),
  /** How many processes, looked at once a second. */
  processes: z.int().min(1).max(100_000).optional(),
  /** Open files of each process; the kernel holds it. Linux only. */
  open_files: z.int().min(16).max(1_048_576).optional(),
  /** Priority: 0 is that of the router, 19 the lowest. */
  niceness: z.int().min(0).max(19).optional(),
});
export type ProcessLimits = z.output<typeof processLimitsSchema>;

/** `false`: it runs without walls, whatever the router's own setting says short of `required`. */
const sandbox = z.boolean().optional();

const userNumber = z.int().min(1, 'must be the number of a user other than root').max(4_294_967_294);
const runAsSchema = z.strictObject({ uid: userNumber, gid: userNumber });
export type RunAs = z.output<typeof runAsSchema>;

export const processSpecSchema = z.strictObject({
  command: z.array(argument.min(1)).min(1),
  cwd: argument.min(1).optional(),
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name'), argument).optional(),
  port: port.optional(),
  /**
   * The program has somebody else listen for it (`docker run -p`), so the router must not insist that what listens on the port is the
   * program's own.
   */
  foreign_listener: z.boolean().optional(),
  health_path: healthPath,
  limits: processLimitsSchema.optional(),
  /** Another user of the system that it runs as; the router must be able to become that user. */
  run_as: runAsSchema.optional(),
  sandbox,
});
export type ProcessSpec = z.output<typeof processSpecSchema>;

export const dockerSpecSchema = z.strictObject({
  /** Its name or id. */
  container: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,127}$/, 'must be the name or id of a container: letters, digits, _ . -'),
  /** Where the daemon listens inside the container. */
  port,
  /** The engine's Unix socket; without it, where `DOCKER_HOST` says. */
  socket: argument.startsWith('/').optional(),
  /** How it is put to sleep; `stop` without it. */
  sleep: z.enum(['stop', 'pause']).optional(),
  health_path: healthPath,
});
export type DockerSpec = z.output<typeof dockerSpecSchema>;

export const flySpecSchema = z.strictObject({
  app: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be the name of a Fly app: a-z 0-9 -'),
  machine_id: z.string().regex(/^[a-zA-Z0-9]{1,64}$/, 'must be the id of a Fly machine: letters and digits'),
  /** Where the daemon listens on the machine's private address; 8080 without it. */
  port: port.optional(),
  /** How it is put to sleep; `suspend` without it. */
  sleep: z.enum(['suspend', 'stop']).optional(),
  /** Of a lease that the operator holds on the machine. */
  lease_nonce: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 visible ASCII characters')
    .optional(),
  health_path: healthPath,
});
export type FlySpec = z.output<typeof flySpecSchema>;

/** The name of a preset, and of the file it stands in. */
export const presetNameSchema = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,63}$/, 'must be the name of a preset: a-z 0-9 _ -');

/** An agent without a daemon of the house: a program that is run once for each wake, or somebody else's server. */
export const commandSpecSchema = z.strictObject({
  preset: presetNameSchema,
  /** Where the program runs, or the folder that the server is to work in. */
  cwd: argument.startsWith('/', 'must be an absolute path').optional(),
  /** The program: a name on the router's PATH, or an absolute path; the preset's own without it. */
  bin: argument.min(1).optional(),
  /** More arguments for the program. */
  args: z.array(argument).max(256).optional(),
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be a variable name'), argument).optional(),
  /** A turn that takes longer is ended. */
  timeout_seconds: z.int().min(1).max(86_400).optional(),
  /** Where the server listens, for the presets that have one. */
  url: z
    .url({ protocol: /^https?$/, error: 'must be an http:// or https:// address', abort: true })
    .refine((text) => {
      const url = new URL(text);
      return url.username === '' && url.password === '' && url.hash === '';
    }, 'must be an address without user, password or fragment; give a password as token')
    .optional(),
  /** Lets a webhook go to an address of this computer or of a private network. */
  allow_private: z.boolean().optional(),
  sandbox,
});
export type CommandSpec = z.output<typeof commandSpecSchema>;

/** It travels in a header and in the environment of a process; `whsec_` announces base64, as Standard Webhooks has it. */
const machineToken = z
  .string()
  .min(16)
  .max(512)
  .regex(/^[\x21-\x7e]*$/, 'must be visible ASCII without spaces')
  .regex(/^(?!whsec_)|^whsec_[A-Za-z0-9+/]+={0,2}$/, 'must be base64 after whsec_');

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

/** The body of `PUT /admin/machines/{user_id}`. */
export const machinePutSchema = z.discriminatedUnion('provider', [
  z.strictObject({ provider: z.literal('http'), spec: httpSpecSchema, ...machineCommon }),
  z.strictObject({ provider: z.literal('process'), spec: processSpecSchema, ...machineCommon }),
  z.strictObject({ provider: z.literal('command'), spec: commandSpecSchema, ...machineCommon }),
  z.strictObject({ provider: z.literal('docker'), spec: dockerSpecSchema, ...machineCommon }),
  z.strictObject({ provider: z.literal('fly'), spec: flySpecSchema, ...machineCommon }),
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
