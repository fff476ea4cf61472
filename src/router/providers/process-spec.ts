/** The specification of a machine of provider `process`. */
import { z } from 'zod';
import { argument, checks, healthPath, port, sandbox, variables, writable } from './descriptor.ts';

export const MEMORY_MB = [16, 1_048_576] as const;
export const PROCESSES = [1, 100_000] as const;
export const OPEN_FILES = [16, 1_048_576] as const;
export const NICENESS = [0, 19] as const;
const whole = ([min, max]: readonly [number, number]) => z.int().min(min).max(max).optional();

/** The limits of a process with its descendants; they are ended when they exceed one. */
const processLimitsSchema = z.strictObject({
  /** Resident memory, in MiB, checked once a second. */
  memory_mb: whole(MEMORY_MB),
  /** The number of processes, checked once a second. */
  processes: whole(PROCESSES),
  /** Open files of each process; the kernel enforces it. Linux only. */
  open_files: whole(OPEN_FILES),
  /** Priority: 0 is that of the router, 19 the lowest. */
  niceness: whole(NICENESS),
});
export type ProcessLimits = z.output<typeof processLimitsSchema>;

const userNumber = z.int().min(1, 'must be the number of a user other than root').max(4_294_967_294);
const runAsSchema = z.strictObject({ uid: userNumber, gid: userNumber });

export const processSpecSchema = z.strictObject({
  command: z.array(argument.min(1)).min(1),
  cwd: argument.min(1).optional(),
  env: variables,
  port: port.optional(),
  /**
   * Another program listens for it (`docker run -p`), so the router must not require that the listener is the program
   * itself.
   */
  foreign_listener: z.boolean().optional(),
  health_path: healthPath,
  limits: processLimitsSchema.optional(),
  /** The system user that it runs as; the router must be able to become that user. */
  run_as: runAsSchema.optional(),
  writable,
  sandbox,
  checks,
});
export type ProcessSpec = z.output<typeof processSpecSchema>;
