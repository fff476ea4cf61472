/** The hours of this computer's user that phrases leave open, from the profile. */
import { lazyProfile } from '../../chronometric/lazy-profile.ts';
import { DEFAULT_HOURS, type PhraseHours } from '../../kit/phrase/reading.ts';
import { DAYS, type Day } from '../../wire/chronometric-vocabulary.ts';
import type { CliContext } from '../context.ts';

const SUNDAY_FIRST: readonly Day[] = [DAYS[6], ...DAYS.slice(0, 6)];

/** Reads the hours at each call: the profile may change. */
export function hoursOfUser({ settings, clock }: Pick<CliContext, 'settings' | 'clock'>): () => Promise<PhraseHours> {
  const source = lazyProfile(settings, clock);
  return async () => {
    await source.ready();
    const { profile } = source.read();
    return {
      ...DEFAULT_HOURS,
      usual: profile.usualTime ?? DEFAULT_HOURS.usual,
      endOfDay: SUNDAY_FIRST.map((day, at) => profile.rulesOf(day).endOfDay?.value ?? DEFAULT_HOURS.endOfDay[at]!),
    };
  };
}
