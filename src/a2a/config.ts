/** The settings of A2A (docs/reference/settings.md). The router's process reads them. */
import { z } from 'zod';
import { parseSettings, type Settings, switchSetting } from '../wire/settings.ts';

export const a2aSettingsSchema = z.object({
  /** Answers other agents at `/a2a` of the public listener, for users who give them a token. */
  ROUTER_A2A: switchSetting.default(false),
  /**
   * Hosts of private networks to which notifications about tasks may be sent, `host` or `host:port`, separated by commas.
   * Others must be https:// addresses on the internet.
   */
  ROUTER_A2A_ALLOW: z.string().optional(),
});

export type A2aConfig = Readonly<{ allow: string | undefined }>;

/** @returns `undefined` if A2A is disabled @throws ReveilleError `invalid_request` naming the setting */
export function parseA2aConfig(settings: Settings): A2aConfig | undefined {
  const { ROUTER_A2A, ROUTER_A2A_ALLOW } = parseSettings(a2aSettingsSchema, settings);
  return ROUTER_A2A ? Object.freeze({ allow: ROUTER_A2A_ALLOW }) : undefined;
}
