/** What chronosd sends to the router beside a check, what the router answers, and what the agent gets. */
import { z } from 'zod';
import { type Check, COMMAND_SECONDS, checkSchema, runSchema, VALUE_MAX_BYTES } from './conditions.ts';
import { labelSchema } from './did.ts';
import { isObject } from './json.ts';
import { beginningOf, instantSchema, utf8Bytes } from './text.ts';

/** In the router's answer to a wake with a check: the verdict, as {@link encodeVerdict} writes it. */
export const CHECK_HEADER = 'x-reveille-check';
const HEADER_MAX = 4096;

/** Characters of a reason. */
const REASON_CHARACTERS = 240;

/** What chronosd remembers of a check. */
export const checkStateSchema = z.strictObject({
  /** The value at the last accepted wake. */
  value: z.string().max(VALUE_MAX_BYTES).optional(),
  /** The last accepted wake. */
  woken_at: instantSchema.optional(),
  /** Fires skipped since then. */
  skips: z.int().min(0).optional(),
  /** Why the agent is woken, whatever the check says. */
  must_wake: z.string().max(500).optional(),
  /** A person set the check. */
  by_person: z.boolean().optional(),
});
export type CheckStateOfWake = z.output<typeof checkStateSchema>;

/** How the router's refusals of a check and of a command begin. */
export const REFUSALS = { check: 'check: ', run: 'run: ' } as const;

/** A check and a command before they are stored, for the router to refuse. */
export const checkRequestSchema = z.strictObject({
  user_id: labelSchema,
  check: checkSchema.optional(),
  run: runSchema.optional(),
  /** A person sets them. */
  by_person: z.boolean(),
});
export type CheckRequest = z.output<typeof checkRequestSchema>;

export type CheckVerdict = {
  readonly verdict: 'wake' | 'skip';
  /** In plain words. */
  readonly reason: string;
  /** The value that an accepted wake stores; absent: the earlier one stays. */
  readonly value?: string;
  readonly duration_ms: number;
};

/** What the agent gets of a check that woke it. */
export const checkNewsSchema = z.strictObject({
  verdict: z.literal('wake'),
  reason: z.string().max(1000),
  /** What the check read or printed. Data of others. */
  output: z
    .string()
    .max(256 * 1024)
    .optional(),
});
export type CheckNews = z.output<typeof checkNewsSchema>;

/** A verdict as the text of a header. */
export function encodeVerdict({ verdict, reason, value, duration_ms }: CheckVerdict): string {
  const short = beginningOf(reason.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' '), REASON_CHARACTERS);
  const encode = (members: object) => Buffer.from(JSON.stringify(members)).toString('base64url');
  const whole = encode({ verdict, reason: short, ...(value !== undefined && { value }), duration_ms });
  return whole.length <= HEADER_MAX ? whole : encode({ verdict, reason: short, duration_ms });
}

/** The verdict in a header; `undefined` where there is none that can be read. */
export function readVerdict(header: unknown): CheckVerdict | undefined {
  if (typeof header !== 'string' || header.length > HEADER_MAX) return undefined;
  let read: unknown;
  try {
    read = JSON.parse(Buffer.from(header, 'base64url').toString('utf8'));
  } catch {
    return undefined;
  }
  if (!isObject(read)) return undefined;
  const { verdict, reason, value, duration_ms } = read;
  if ((verdict !== 'wake' && verdict !== 'skip') || typeof reason !== 'string') return undefined;
  const isValue = typeof value === 'string' && utf8Bytes(value) <= VALUE_MAX_BYTES;
  const ms = typeof duration_ms === 'number' && duration_ms >= 0 ? Math.round(duration_ms) : 0;
  return { verdict, reason, ...(isValue && { value }), duration_ms: ms };
}

/** How long a command waits for its turn, at most. */
export const CHECK_QUEUE_MS = 10_000;
/** How long an address or a path may take. */
export const CHECK_READ_MS = 20_000;

/** How long a check may take in all, milliseconds. */
export function longestCheckMs({ command }: Check): number {
  const ownMs = command === undefined ? CHECK_READ_MS : (command.timeout_seconds ?? COMMAND_SECONDS) * 1000;
  return CHECK_QUEUE_MS + ownMs;
}
