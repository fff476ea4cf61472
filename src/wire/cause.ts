/** Who caused a fire. The ledger, pending occurrences and waiting events keep it as one text. */
import { z } from 'zod';

/**
 * `person`, `agent`, `client`: the request of one, or the clock of a schedule that it set. `sender`: a request with a
 * valid signature. `address`: a request to a secret address. `source`: a file, a process or a server of the machine.
 */
export const CAUSERS = ['person', 'agent', 'client', 'sender', 'address', 'source'] as const;
export type Causer = (typeof CAUSERS)[number];

export const causeSchema = z.object({
  by: z.enum(CAUSERS),
  /** Of `client`: its id at its authorization server. */
  client_id: z.string().optional(),
  /** The clock of a schedule that it set. */
  clock: z.literal(true).optional(),
});
export type Cause = z.infer<typeof causeSchema>;

/** `person`, `clock agent`, `client https://chat.example/client.json`. */
export const storedCause = ({ by, client_id, clock }: Cause): string =>
  [...(clock ? ['clock'] : []), by, ...(client_id === undefined ? [] : [client_id])].join(' ');

/** @param stored by {@link storedCause} */
export function readCause(stored: string): Cause {
  const [, clock, by, client_id] = /^(clock )?(\w+)(?: (.*))?$/s.exec(stored)!;
  return {
    by: by as Causer,
    ...(client_id !== undefined && { client_id }),
    ...(clock !== undefined && { clock: true as const }),
  };
}
