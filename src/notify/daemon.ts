/**
 * The notifier: follows the events of one user's alarms and intents, and sends notifications to the user's channels. It
 * uses the user's own rights, and nothing waits for it: a failed notification does not affect a wake.
 */
import { createECDH } from 'node:crypto';
import type { ChronosClient } from '../chronos/client.ts';
import type { ExecutorClient } from '../executor/client.ts';
import { type Clock, wait } from '../kit/clock/clock.ts';
import { ALL_CHANGED, ChangedIds, type ChangedIdsOptions, type Changes } from '../kit/http/changed-ids.ts';
import type { FollowStreamOptions } from '../kit/http/follow-stream.ts';
import { GuardedClient } from '../kit/http/guarded-client.ts';
import type { Resolve } from '../kit/http/guarded-lookup.ts';
import { randomSecret } from '../kit/identity/secrets.ts';
import type { Logger } from '../kit/log/log.ts';
import { createOutbox, type Delivery } from '../kit/outbox/outbox.ts';
import type { IntentEvent, IntentEventType } from '../wire/intent-event.ts';
import type { Settings } from '../wire/settings.ts';
import { AlarmFeed, type Look } from './alarm-feed.ts';
import { APPROVAL_PATH, makeApprovalToken } from './approval-link.ts';
import type { ChannelTools, Message } from './channels/channel.ts';
import { CHANNELS } from './channels/channels.ts';
import type { News } from './news.ts';
import { type Outgoing, outgoingOf } from './outgoing.ts';
import type { NotifyStore } from './store.ts';
import { TaskFeed } from './task-feed.ts';

export type NotifierOptions = {
  /** Opened with `exclusive`: one process sends. */
  readonly store: NotifyStore;
  readonly user: string;
  readonly alarms: Pick<ChronosClient, 'events' | 'listAlarms' | 'getAlarm' | 'listFires'>;
  /** Without an executor, there are no questions. */
  readonly tasks: Pick<ExecutorClient, 'events' | 'list' | 'view' | 'gates'> | undefined;
  /** The console's address for phones, without a trailing slash; without it, no notification has links. */
  readonly consoleUrl: string | undefined;
  /** IANA; the time zone of summaries. */
  readonly zone: string;
  /** Our environment; programs get an allow-list of it. */
  readonly variables: Settings;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1); spreads retries. */
  readonly random: () => number;
  /** Called with all news, independent of channels. */
  readonly onNews?: ((news: News) => void) | undefined;
  /** The name resolution of channels; the system's by default. */
  readonly resolve?: Resolve;
  readonly firstPauseMs?: number;
};

export type Notifier = {
  /** Stops; the next process continues. */
  close(): Promise<void>;
};

/** Events after which a query can find news. */
const NEWS_TYPES = ['fire.delivered', 'fire.failed', 'fire.missed', 'turn.finished', 'turn.failed'] as const;
const TASK_NEWS_TYPES: ReadonlySet<IntentEventType> = new Set(['gate.invoked', 'intent.fail', 'reset']);
/** Limits the share of time spent on queries, however many alarms there are. */
const SHARE_OF_TIME = 20;
/** Several events in a row cause one query. */
const HINT_MS = 50;
const FAILED_MS = 10_000;
const PRUNE_EVERY_MS = 3_600_000;
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 15 * 60_000;
/** With these delays, retries last about a day. */
const MOST_ATTEMPTS = 104;
const CONCURRENCY = 16;
const NOBODY = 'mailto:nobody@reveille.invalid';

export const GUARD_WORDS = { who: 'a notification', remedy: 'to allow it, add the channel with --allow-private' };

/** Signs approval links; created once. */
export const linkSecret = (store: NotifyStore) => store.secret('links', randomSecret);

type VapidKeys = Pick<ChannelTools['vapid'], 'publicKey' | 'privateKey'>;

/** A key pair on P-256 (RFC 8292 §3.2), as JSON. */
function newVapidKeys(): string {
  const pair = createECDH('prime256v1');
  const keys: VapidKeys = {
    publicKey: pair.generateKeys('base64url'),
    // The library needs all 32 bytes, leading zeros included.
    privateKey: Buffer.concat([Buffer.alloc(32), pair.getPrivateKey()])
      .subarray(-32)
      .toString('base64url'),
  };
  return JSON.stringify(keys);
}

/** Identifies us to push services: created once, because a browser subscribes to this key. */
export function vapidOf(store: NotifyStore, consoleUrl: string | undefined): ChannelTools['vapid'] {
  const made = JSON.parse(store.secret('vapid', newVapidKeys)) as VapidKeys;
  // Push services require a contact address; one of them rejects addresses of this computer.
  return { ...made, subject: consoleUrl?.startsWith('https://') ? consoleUrl : NOBODY };
}

/** The events of intents after which a query can find news. */
async function* taskEvents(
  tasks: Pick<ExecutorClient, 'events'>,
  options: FollowStreamOptions,
): AsyncGenerator<IntentEvent> {
  for await (const event of tasks.events(options)) if (TASK_NEWS_TYPES.has(event.type)) yield event;
}

/** Starts the notifier with an immediate query. */
export function startNotifier(options: NotifierOptions): Notifier {
  const { store, user, alarms, tasks, consoleUrl, zone, variables, clock, log, random, onNews } = options;
  const over = new AbortController();
  const http = new GuardedClient(GUARD_WORDS, ...(options.resolve ? [options.resolve] : []));
  const vapid = vapidOf(store, consoleUrl);
  const begun = (source: string) => store.cursor(user, source, clock.now());
  const feeds = {
    alarms: new AlarmFeed({ client: alarms, clock, ...begun('alarms') }),
    tasks: tasks && new TaskFeed({ client: tasks, now: () => clock.now(), ...begun('tasks') }),
  };

  const deliver = async ({ id, channel, content }: Outgoing, signal: AbortSignal): Promise<Delivery> => {
    const { question } = content;
    if (question && feeds.tasks && !(await feeds.tasks.waits(question, signal)))
      return { result: 'drop', why: 'the question no longer waits' };
    const now = clock.now();
    const link = (approved: boolean) =>
      `${consoleUrl}${APPROVAL_PATH}${makeApprovalToken(linkSecret(store), { user, question: question!, approved }, now)}`;
    const links =
      question && consoleUrl !== undefined
        ? [
            { label: 'Approve …', url: link(true) },
            { label: 'Deny …', url: link(false) },
          ]
        : [];
    const { kinds, at, title, text, about } = content;
    const message: Message = { id, kinds, at, title, text, about, links };
    return CHANNELS[channel.kind].tell(channel.spec, message, { http, clock, signal, variables, vapid });
  };
  const outbox = createOutbox<Outgoing>({
    store: outgoingOf(store, { zone, now: () => clock.now() }),
    deliver,
    now: () => clock.now(),
    ...{ clock, log, random, concurrency: CONCURRENCY },
    ...{ firstPauseMs: options.firstPauseMs ?? FIRST_PAUSE_MS, longestPauseMs: LONGEST_PAUSE_MS, lastRoundMs: 0 },
    mostAttempts: () => MOST_ATTEMPTS,
    noun: 'a notification',
    about: ({ id: notification, channel }) => ({ notification, channel: channel.name }),
  });

  const take = (source: string, { news, settle }: Look, since: number) => {
    const fresh = store.record({ user, source, news, since }, clock.now());
    settle();
    if (fresh.length > 0) outbox.wake();
    for (const one of fresh) onNews?.(one);
  };

  /** Reads one source when its events announce changes; a failing source does not block others. */
  const follow = async (
    source: string,
    changed: ChangedIds,
    look: (changes: Changes, signal: AbortSignal) => Promise<Look>,
  ): Promise<void> => {
    await changed.opened;
    let isDown = false;
    for (let changes = ALL_CHANGED; !over.signal.aborted; changes = await changed.next()) {
      const began = { at: clock.now(), tick: clock.monotonic() };
      try {
        take(source, await look(changes, over.signal), began.at);
        if (isDown) log.info({ source }, 'news can be queried again');
        isDown = false;
      } catch (err) {
        if (over.signal.aborted) return;
        if (!isDown) log.warn({ err, source }, 'news cannot be queried; trying again');
        isDown = true;
        changed.giveBack(changes);
      }
      const pauseMs = Math.max(HINT_MS, SHARE_OF_TIME * (clock.monotonic() - began.tick));
      await wait(clock, isDown ? FAILED_MS : pauseMs, over.signal);
    }
  };

  const changedIds = (events: ChangedIdsOptions['events']) => new ChangedIds({ events, clock, signal: over.signal });
  const alarmsChanged = changedIds((options) => alarms.events({ ...options, types: NEWS_TYPES }));
  const tasksChanged = tasks && changedIds((options) => taskEvents(tasks, options));

  const prune = async () => {
    while (!over.signal.aborted) {
      try {
        store.prune(clock.now());
      } catch (err) {
        log.warn({ err }, 'old notifications could not be deleted; trying again');
      }
      await wait(clock, PRUNE_EVERY_MS, over.signal);
    }
  };

  outbox.start();
  const { alarms: alarmFeed, tasks: taskFeed } = feeds;
  const following = [
    follow('alarms', alarmsChanged, (changes, signal) => alarmFeed.look(changes, signal)),
    taskFeed && follow('tasks', tasksChanged!, (changes, signal) => taskFeed.look(changes, signal)),
    prune(),
  ];
  return {
    async close() {
      over.abort();
      await Promise.all([outbox.close(), ...following]);
      await http.close();
    },
  };
}
