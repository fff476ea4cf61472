/** The kinds of channels, and the reading of their specifications. */
import { ReveilleError } from '../../wire/errors.ts';
import { wording } from '../../wire/validate.ts';
import type { ChannelKind, ChannelTools } from './channel.ts';
import { ntfy, webhook, webPush } from './http-channels.ts';
import { command, desktop } from './local-channels.ts';

/** Each gets only the result of its own schema. */
export const CHANNELS: Readonly<Record<ChannelName, ChannelKind<unknown>>> = {
  ntfy,
  webpush: webPush,
  webhook,
  command,
  desktop,
};

export const CHANNEL_NAMES = ['ntfy', 'webpush', 'webhook', 'command', 'desktop'] as const;
export type ChannelName = (typeof CHANNEL_NAMES)[number];

/**
 * Reads a specification.
 *
 * @returns it, with its defaults
 * @throws ReveilleError `invalid_request` naming the field, or why the address is not allowed
 */
export function readSpec(kind: ChannelName, given: unknown, tools: Pick<ChannelTools, 'http'>): unknown {
  const read = CHANNELS[kind].spec.safeParse(given, { error: wording });
  if (!read.success) {
    const lines = read.error.issues.map(({ path, message }) => `${path.join('.') || kind}: ${message}`);
    throw new ReveilleError('invalid_request', lines.join('; '));
  }
  const refusal = CHANNELS[kind].refusal(read.data, tools);
  if (refusal !== undefined) throw new ReveilleError('invalid_request', refusal);
  return read.data;
}
