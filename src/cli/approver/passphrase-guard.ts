/**
 * Limits for passphrases on pages. One guess is checked at a time, a few wait, and more are rejected: each takes 128 MiB.
 * Five wrong ones in a row lock the key for pages, also across a restart. A terminal can still open it, because a user
 * who can run commands here can read the sealed key anyway.
 */
import { z } from 'zod';
import { backoff } from '../../kit/clock/backoff.ts';
import { readPrivateFile, replacePrivateFile } from '../../kit/identity/private-file.ts';
import { KeyedQueue } from '../../kit/queue/keyed-queue.ts';
import { ReveilleError } from '../../wire/errors.ts';

/** Wrong passphrases in a row before the first lock. */
export const WRONG_MAX = 5;
/** Guesses that may wait. */
export const WAITING_MAX = 3;
/** A guess takes about a third of a second. */
const BUSY_SECONDS = 2;
/** After the fifth wrong one; doubled after each further one. */
const lockSeconds = backoff({ first: 15 * 60, longest: 24 * 3600 });

const recordSchema = z.object({ wrong: z.int().min(0), locked_until: z.number() });
type GuessRecord = z.output<typeof recordSchema>;
const NO_GUESSES: GuessRecord = { wrong: 0, locked_until: 0 };

/** The guesses of this process for all keys: memory is shared, too. */
let waiting = 0;
const guesses = new KeyedQueue();

/** Checks one guess at a time. @throws ReveilleError `unavailable` when too many wait */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (waiting > WAITING_MAX) {
    const message = 'too many passphrases are being tried at this moment; try again in a few seconds';
    throw new ReveilleError('unavailable', message, { retryAfterSeconds: BUSY_SECONDS });
  }
  waiting++;
  try {
    return await guesses.run('any key', work);
  } finally {
    waiting--;
  }
}

function readRecord(file: string): GuessRecord {
  try {
    return recordSchema.parse(JSON.parse(readPrivateFile(file) ?? '{}'));
  } catch {
    // Writing the count needs the same rights as reading the sealed key.
    return NO_GUESSES;
  }
}

function refuseLocked({ locked_until }: GuessRecord, now: number): void {
  const leftMs = locked_until - now;
  if (leftMs <= 0) return;
  const minutes = Math.ceil(leftMs / 60_000);
  const message = `the key is locked for pages for ${minutes} min after ${WRONG_MAX} wrong passphrases; answer in a terminal (reveille intent list), or wait`;
  throw new ReveilleError('rate_limited', message, { retryAfterSeconds: leftMs / 1000 });
}

/**
 * Checks a passphrase from a page.
 *
 * @param file stores the count of wrong ones, beside the key
 * @param open opens the key; `forbidden` means that the passphrase is wrong
 * @throws ReveilleError `rate_limited` while the key is locked, `unavailable` when too many guesses wait; the errors of
 *   `open`
 */
export async function guardGuess<T>(file: string, now: () => number, open: () => Promise<T>): Promise<T> {
  refuseLocked(readRecord(file), now());
  return inTurn(async () => {
    const before = readRecord(file);
    refuseLocked(before, now());
    try {
      const opened = await open();
      if (before.wrong > 0) replacePrivateFile(file, JSON.stringify(NO_GUESSES));
      return opened;
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError && thrown.code === 'forbidden')) throw thrown;
      const wrong = before.wrong + 1;
      const lockedMs = wrong < WRONG_MAX ? 0 : 1000 * lockSeconds(wrong - WRONG_MAX + 1);
      replacePrivateFile(file, JSON.stringify({ wrong, locked_until: now() + lockedMs } satisfies GuessRecord));
      throw thrown;
    }
  });
}
