/** The notifier's settings (docs/contracts.md §11). */
import { z } from 'zod';
import { parseSettings, type Settings, switchSetting, urlSetting } from '../wire/settings.ts';

/** The variables that it reads. */
export const notifySettingsSchema = z.object({
  /** The folder of channels and of what is on its way to them. */
  NOTIFY_DATA_DIR: z.string().min(1),
  /** Where phones reach the console; without it no message has links. */
  NOTIFY_CONSOLE_URL: urlSetting.optional(),
  /** Whether `reveille up` shows things on the desktop that it was started on. */
  NOTIFY_DESKTOP: switchSetting.default(true),
});

export type NotifyConfig = {
  /** The folder of channels and of what is on its way to them. */
  readonly dataDir: string;
  /** Where phones reach the console; without it, no message has links. */
  readonly consoleUrl: string | undefined;
  /** Whether `reveille up` shows things on the desktop that it was started on. */
  readonly desktop: boolean;
};

/** @throws ReveilleError `invalid_request` naming the variable */
export function parseNotifyConfig(settings: Settings): NotifyConfig {
  const { NOTIFY_DATA_DIR, NOTIFY_CONSOLE_URL, NOTIFY_DESKTOP } = parseSettings(notifySettingsSchema, settings);
  return { dataDir: NOTIFY_DATA_DIR, consoleUrl: NOTIFY_CONSOLE_URL, desktop: NOTIFY_DESKTOP };
}
