/** Chronometric's data about the user of this computer, for commands that show it: profile and state. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ChronometricError } from '../../chronometric/chronometric-error.ts';
import { lazyProfile } from '../../chronometric/lazy-profile.ts';
import { openState } from '../../chronometric/state/open-state.ts';
import type { ChronometricState } from '../../chronometric/state/state.ts';
import { type CallContext, callContextOf } from '../../chronometric/tools/call-context.ts';
import { nextDayAfter } from '../../kit/clock/wall-clock.ts';
import { machineZone } from '../../kit/clock/zone.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';

export type ChronometricAccess = {
  /** The current time and the user's profile. */
  readonly callContext: CallContext;
  /** Whether any state was ever written. */
  readonly hasState: boolean;
  /** Opened on first use; the caller closes it. */
  readonly state: ChronometricState;
};

/** The zone of this computer's user: of the profile, else of the computer; `undefined` when neither is known. */
export async function zoneOfUser({ settings, clock }: Pick<CliContext, 'settings' | 'clock'>) {
  const profile = lazyProfile(settings, clock);
  await profile.ready();
  return profile.read().profile.timezone ?? machineZone(settings.TZ);
}

async function callContextNow({ settings, clock }: Pick<CliContext, 'settings' | 'clock'>): Promise<CallContext> {
  const profile = lazyProfile(settings, clock);
  await profile.ready();
  try {
    return callContextOf(clock.now(), machineZone(settings.TZ), profile.read());
  } catch (thrown) {
    if (thrown instanceof ChronometricError) throw new ReveilleError('unavailable', thrown.message, { cause: thrown });
    throw thrown;
  }
}

/**
 * @param busyMs how long to wait for another process's transaction; by default the state's own limit
 * @throws ReveilleError `unavailable` when there is no usable time or time zone
 */
export async function chronometricAccess(
  context: Pick<CliContext, 'settings' | 'clock'>,
  busyMs?: number,
): Promise<ChronometricAccess> {
  const { settings, clock } = context;
  const callContext = await callContextNow(context);
  const dataDir = settings.CHRONOMETRIC_DATA_DIR!;
  const state = openState({
    dataDir,
    clock,
    dayEnd: (instant) => nextDayAfter(callContext.timezone, instant, callContext.profile.logicalDayStart),
    ...(busyMs !== undefined && { busyMs }),
  });
  return { callContext, hasState: existsSync(join(dataDir, 'chronometric.db')), state };
}

/** A prompt of the user waits for this. */
const PROMPT_BUSY_MS = 250;

/**
 * Records that the user has sent a prompt to the agent.
 *
 * @param at epoch milliseconds
 * @throws ReveilleError `unavailable` when it could not be recorded
 */
export async function reportPrompt(context: Pick<CliContext, 'settings' | 'clock'>, at: number): Promise<void> {
  const { state } = await chronometricAccess(context, PROMPT_BUSY_MS);
  try {
    state.prompted(at);
  } finally {
    state.close();
  }
}
