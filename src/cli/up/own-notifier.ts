/** The notifier of `reveille up`: sends notifications to this installation's user, also on a desktop session. */
import { createChronosClient, holdPrincipal } from '../../chronos/client.ts';
import { createExecutorClient } from '../../executor/client.ts';
import { machineZone } from '../../kit/clock/zone.ts';
import type { Logger } from '../../kit/log/log.ts';
import { noDesktop } from '../../notify/channels/local-channels.ts';
import { parseNotifyConfig } from '../../notify/config.ts';
import { type Notifier, startNotifier } from '../../notify/daemon.ts';
import { type News, NOTIFICATION_KINDS } from '../../notify/news.ts';
import { NotifyStore } from '../../notify/store.ts';
import { taskEndpoint } from '../access/executor.ts';
import type { CliContext } from '../context.ts';
import type { LocalStack } from './local-stack.ts';

const DESKTOP = 'desktop';

/** The desktop channel that `up` creates. It is active on a terminal of a desktop session, and paused elsewhere. */
function setDesktop({ settings, out, clock }: CliContext, store: NotifyStore, user: string, wanted: boolean): void {
  const isThere = wanted && out.live && noDesktop(process.platform, settings) === undefined;
  const channel = store.channels(user).find(({ name, kind }) => name === DESKTOP && kind === DESKTOP);
  if (channel) store.pauseChannel(channel.id, !isThere);
  else if (isThere) {
    const add = {
      user,
      name: DESKTOP,
      kind: DESKTOP,
      spec: {},
      told: NOTIFICATION_KINDS,
      quiet: undefined,
      quietAll: false,
    };
    store.addChannel(add as Parameters<NotifyStore['addChannel']>[0], clock.now());
  }
}

/**
 * @param onQuestion called for a new waiting question
 * @throws ReveilleError for wrong settings or unusable data
 */
export function startOwnNotifier(
  context: CliContext,
  { chronos, chronosToken, executor, identity }: Pick<LocalStack, 'chronos' | 'chronosToken' | 'executor' | 'identity'>,
  { log, onQuestion }: { log: Logger; onQuestion: (news: News) => void },
): Notifier {
  const { settings, clock, environment } = context;
  const { dataDir, consoleUrl, desktop } = parseNotifyConfig(settings);
  const user = identity.owner;
  const store = new NotifyStore({ dir: dataDir, clock, lock: 'exclusive' });
  try {
    setDesktop(context, store, user, desktop);
    const notifier = startNotifier({
      ...{ store, user, consoleUrl, variables: settings, clock, log, random: Math.random },
      alarms: createChronosClient({
        url: chronos.url,
        token: chronosToken,
        identity,
        principal: holdPrincipal(),
        clock,
      }),
      tasks: createExecutorClient({ ...taskEndpoint(context, executor.url), userId: user }),
      zone: machineZone(environment.TZ) ?? 'UTC',
      onNews: (news) => {
        if (news.question) onQuestion(news);
      },
    });
    const close = async () => {
      await notifier.close();
      store.close();
    };
    return { close };
  } catch (error) {
    store.close();
    throw error;
  }
}
