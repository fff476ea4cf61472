/** `reveille notify`: notification channels, and `reveille notifier`, which sends notifications. */
import { createExecutorClient } from '../../executor/client.ts';
import { shortTime } from '../../kit/clock/local-time.ts';
import { machineZone } from '../../kit/clock/zone.ts';
import { onTermination } from '../../kit/http/drain.ts';
import { signingSecret } from '../../kit/identity/secrets.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { CHANNEL_NAMES, type ChannelName } from '../../notify/channels/channels.ts';
import { type ChannelView, NotificationChannels } from '../../notify/client.ts';
import { parseNotifyConfig } from '../../notify/config.ts';
import { startNotifier } from '../../notify/daemon.ts';
import { NOTIFICATION_KINDS, type NotificationKind } from '../../notify/news.ts';
import { NotifyStore } from '../../notify/store.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { showValue } from '../../wire/validate.ts';
import { alarmClient, userOf } from '../access/chronos.ts';
import { taskEndpoint } from '../access/executor.ts';
import type { CliContext } from '../context.ts';
import { quietOf } from '../flags/budget-flags.ts';
import { fileFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

export type NotifyAddFlags = {
  name?: string;
  about?: string;
  quiet?: string;
  zone?: string;
  quietDays?: string;
  quietAll?: boolean;
  allowPrivate?: boolean;
  user?: string;
  server?: string;
  topic?: string;
  token?: string;
  tokenFile?: string;
  url?: string;
  secret?: string;
  subscriptionFile?: string;
};
export type NotifyUserFlags = { user?: string };

/** The flags of each kind of channel. */
const FLAGS_OF = {
  ntfy: ['server', 'topic', 'token', 'tokenFile', 'allowPrivate'],
  webhook: ['url', 'secret', 'allowPrivate'],
  webpush: ['subscriptionFile', 'allowPrivate'],
  command: [],
  desktop: [],
} as const satisfies Record<ChannelName, readonly (keyof NotifyAddFlags)[]>;

const flagName = (name: string) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

function kindOf(given: string): ChannelName {
  const kind = CHANNEL_NAMES.find((name) => name === given);
  if (kind !== undefined) return kind;
  throw new UsageError(`the channel must be one of ${CHANNEL_NAMES.join(', ')} (got ${showValue(given)})`);
}

function kindsOf(about: string | undefined): readonly NotificationKind[] | undefined {
  if (about === undefined) return undefined;
  if (about === 'all') return NOTIFICATION_KINDS;
  const words = about.split(',').map((word) => word.trim());
  const wrong = words.find((word) => !NOTIFICATION_KINDS.some((kind) => kind === word));
  if (wrong === undefined) return NOTIFICATION_KINDS.filter((kind) => words.includes(kind));
  throw new UsageError(`--about must be all, or some of ${NOTIFICATION_KINDS.join(',')} (got ${showValue(wrong)})`);
}

function subscriptionOf(file: string | undefined): object {
  if (file === undefined)
    throw new UsageError(
      '--subscription-file is missing: a file with the JSON of PushSubscription.toJSON() in the browser',
    );
  try {
    const read: unknown = JSON.parse(fileFlag('--subscription-file', file));
    if (typeof read === 'object' && read !== null) return read;
  } catch (error) {
    if (error instanceof UsageError) throw error;
  }
  throw new UsageError(
    `--subscription-file ${file} must contain a JSON object, as PushSubscription.toJSON() returns it`,
  );
}

function tokenOf({ token, tokenFile }: NotifyAddFlags): string | undefined {
  if (token !== undefined && tokenFile !== undefined)
    throw new UsageError('--token and --token-file exclude each other; give one of them');
  return tokenFile === undefined ? token : fileFlag('--token-file', tokenFile).trim();
}

/** The channel in a command line; its schema checks the values. */
function specOf(kind: ChannelName, flags: NotifyAddFlags, words: readonly string[]): object {
  const foreign = Object.values(FLAGS_OF)
    .flat()
    .find((name) => flags[name] !== undefined && !(FLAGS_OF[kind] as readonly string[]).includes(name));
  if (foreign !== undefined) throw new UsageError(`${flagName(foreign)} is not a flag of ${kind}; omit it`);
  if (kind !== 'command' && words.length > 0)
    throw new UsageError(`${kind} takes no arguments (got ${showValue(words[0]!)})`);
  const isPrivate = flags.allowPrivate ? { allow_private: true } : {};
  if (kind === 'command') {
    if (words.length === 0)
      throw new UsageError('the program is missing: reveille notify add command -- /usr/bin/notify-me --now');
    return { command: words };
  }
  if (kind === 'webpush') return { ...subscriptionOf(flags.subscriptionFile), ...isPrivate };
  if (kind === 'webhook') {
    if (flags.url === undefined) throw new UsageError('--url is missing: the address of the receiver');
    return { url: flags.url, secret: flags.secret ?? signingSecret(), ...isPrivate };
  }
  if (kind === 'desktop') return {};
  if (flags.topic === undefined)
    throw new UsageError(
      '--topic is missing: the topic that your phone subscribes to; anyone who knows it can read it',
    );
  const [{ server, topic }, token] = [flags, tokenOf(flags)];
  return { ...(server && { server }), topic, ...(token && { token }), ...isPrivate };
}

/** Opens the channel store for one command. */
async function withNotifier<T>(
  context: CliContext,
  work: (notifier: NotificationChannels) => T | Promise<T>,
): Promise<T> {
  const notifier = new NotificationChannels({ dir: parseNotifyConfig(context.settings).dataDir, clock: context.clock });
  try {
    return await work(notifier);
  } finally {
    await notifier.close();
  }
}

const inJson = ({ lastToldAt, ...view }: ChannelView) => ({
  ...view,
  ...(lastToldAt === undefined ? {} : { last_told_at: new Date(lastToldAt).toISOString() }),
});

const quietWords = ({ quiet }: ChannelView) => (quiet ? `, quiet ${quiet.from}-${quiet.to} ${quiet.timezone}` : '');

export async function notifyAdd(
  context: CliContext,
  flags: NotifyAddFlags,
  [given, ...words]: readonly string[],
): Promise<void> {
  const kind = kindOf(given!);
  const told = kindsOf(flags.about);
  const spec = specOf(kind, flags, words);
  const zone = flags.zone ?? (flags.quiet === undefined ? undefined : machineZone(context.environment.TZ));
  const quiet = quietOf({ ...flags, ...(zone === undefined ? {} : { zone }) });
  if (flags.quietAll && quiet === undefined) throw new UsageError('--quiet-all needs --quiet');
  const wish = { user: userOf(context, flags.user), kind, name: flags.name, spec, told, quiet };
  const view = await withNotifier(context, (notifier) => notifier.add({ ...wish, quietAll: flags.quietAll === true }));
  const made = kind === 'webhook' && flags.secret === undefined ? (spec as { secret: string }).secret : undefined;
  context.out.result({ ...inJson(view), ...(made === undefined ? {} : { secret: made }) }, [
    `${oneLine(view.name)} gets notifications about ${view.told.join(', ')} at ${oneLine(view.place)}${quietWords(view)}`,
    ...(made === undefined
      ? []
      : [`Its receiver checks signatures with this secret, which is not shown again: ${made}`]),
    `Try it: reveille notify test ${oneLine(view.name)}`,
  ]);
}

export async function notifyList(context: CliContext, flags: NotifyUserFlags): Promise<void> {
  const user = flags.user === undefined ? undefined : userOf(context, flags.user);
  const views = await withNotifier(context, (notifier) => notifier.list(user));
  context.out.list(views.map(inJson), () => renderChannels(views, readerOf(context)));
}

function renderChannels(views: readonly ChannelView[], look: Reader): string[] {
  if (views.length === 0)
    return ['No notification channels. Add your phone with: reveille notify add ntfy --topic <topic>'];
  const rows = views.map((view) => [
    ...[oneLine(view.name), view.kind, oneLine(view.place), view.told.join(',')],
    ...[view.lastToldAt === undefined ? 'never' : shortTime(view.lastToldAt, look), String(view.waiting)],
    oneLine(view.paused ? 'paused' : (view.last_error ?? quietWords(view).replace(', ', ''))),
  ]);
  return table(['NAME', 'KIND', 'WHERE', 'TOLD OF', 'TOLD', 'WAIT', 'NOTE'], rows, look);
}

export async function notifyTest(context: CliContext, flags: NotifyUserFlags, name: string): Promise<void> {
  const { signal } = new AbortController();
  const tools = { variables: context.settings, signal };
  const user = userOf(context, flags.user);
  const { channel, why } = await withNotifier(context, (notifier) => notifier.test(user, name, tools));
  if (why !== undefined)
    throw new ReveilleError('unavailable', `the test message to ${oneLine(channel.name)} failed: ${why}`);
  context.out.result({ name: channel.name, told: true }, `${oneLine(channel.name)} accepted it; check that it arrived`);
}

export async function notifyRemove(context: CliContext, flags: NotifyUserFlags, name: string): Promise<void> {
  const user = userOf(context, flags.user);
  const { channel, lost } = await withNotifier(context, (notifier) => notifier.remove(user, name));
  const words = lost === 0 ? '' : `; ${lost} pending ${lost === 1 ? 'notification is' : 'notifications are'} dropped`;
  context.out.result({ name: channel.name, removed: true, lost }, `Removed ${oneLine(channel.name)}${words}`);
}

/** Sends notifications in a process of its own, with the rights of this installation's user. */
export async function notifier(context: CliContext): Promise<void> {
  const { settings, clock, out, environment } = context;
  const { dataDir, consoleUrl } = parseNotifyConfig(settings);
  const log = await context.log('notifier', out.live ? 'warn' : 'info');
  const user = userOf(context, undefined);
  const place = taskEndpoint(context);
  const hasExecutor = place.token !== undefined;
  const store = new NotifyStore({ dir: dataDir, clock, lock: 'exclusive' });
  const running = startNotifier({
    ...{ store, user, consoleUrl, variables: settings, clock, log, random: Math.random },
    alarms: alarmClient(context),
    tasks: hasExecutor ? createExecutorClient({ ...place, userId: user }) : undefined,
    zone: machineZone(environment.TZ) ?? 'UTC',
  });
  const asked = hasExecutor ? '' : '; without approvals, because no executor is known (set NEO_EXECUTOR_TOKEN)';
  out.result(
    { system: 'notifier', user, pid: process.pid },
    `Sending notifications for ${user}${asked}; Ctrl-C ends it`,
  );
  const stop = async () => {
    await running.close();
    store.close();
  };
  onTermination(stop, { log, clock, hardLimitMs: 30_000 });
  await new Promise(() => {});
}
