/** The names of the user's notification channels, where this computer has the notifier's data. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseNotifyConfig } from '../../notify/config.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { userOf } from './chronos.ts';

/**
 * Checks names of channels. Without data of a notifier nothing is known: it runs on another computer.
 *
 * @throws UsageError with the names of the user's channels, when one is not among them
 */
export async function checkChannels(context: CliContext, names: readonly string[] | null | undefined): Promise<void> {
  if (!names || names.length === 0) return;
  const { dataDir: dir } = parseNotifyConfig(context.settings);
  if (!existsSync(join(dir, 'notify.db'))) return;
  const { NotifyStore } = await import('../../notify/store.ts');
  const store = new NotifyStore({ dir, clock: context.clock, lock: 'shared' });
  const known = (() => {
    try {
      return store.channels(userOf(context, undefined)).map(({ name }) => name);
    } finally {
      store.close();
    }
  })();
  const wrong = names.find((name) => !known.includes(name));
  if (wrong === undefined) return;
  const choice =
    known.length === 0 ? 'you have none; add one with: reveille notify add' : `you have ${known.join(', ')}`;
  throw new UsageError(`--deliver must name channels of yours (got ${JSON.stringify(wrong)}; ${choice})`);
}
