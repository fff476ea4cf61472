/** The notifier's settings (docs/reference/settings.md). */
import { z } from 'zod';
import { parseSettings, type Settings, switchSetting, urlSetting } from '../wire/settings.ts';

/** The settings of the notifier. */
export const notifySettingsSchema = z.object({
  /** The folder of channels and pending notifications. */
  NOTIFY_DATA_DIR: z.string().min(1),
  /** The console's address for phones; without it no notification has links. */
  NOTIFY_CONSOLE_URL: urlSetting.optional(),
  /** Whether `reveille up` shows notifications on its desktop. */
  NOTIFY_DESKTOP: switchSetting.default(true),
});

export type NotifyConfig = {
  /** The folder of channels and pending notifications. */
  readonly dataDir: string;
  /** The console's address for phones; without it, no notification has links. */
  readonly consoleUrl: string | undefined;
  /** Whether `reveille up` shows notifications on its desktop. */
  readonly desktop: boolean;
};

/** @throws ReveilleError `invalid_request` naming the setting */
export function parseNotifyConfig(settings: Settings): NotifyConfig {
  const { NOTIFY_DATA_DIR, NOTIFY_CONSOLE_URL, NOTIFY_DESKTOP } = parseSettings(notifySettingsSchema, settings);
  return { dataDir: NOTIFY_DATA_DIR, consoleUrl: NOTIFY_CONSOLE_URL, desktop: NOTIFY_DESKTOP };
}
