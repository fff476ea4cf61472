/** Access to the notifier's data on the same computer: for the command line, and for the console's approval links and browsers. */
import type { Clock } from '../kit/clock/clock.ts';
import { GuardedClient } from '../kit/http/guarded-client.ts';
import type { Resolve } from '../kit/http/guarded-lookup.ts';
import { quietHoursSchema } from '../wire/budget.ts';
import { parseOrThrow } from '../wire/validate.ts';
import { ApprovalLinks } from './approval-link.ts';
import type { ChannelTools } from './channels/channel.ts';
import { CHANNELS, type ChannelName, readSpec } from './channels/channels.ts';
import { GUARD_WORDS, linkSecret, vapidOf } from './daemon.ts';
import type { NotificationKind } from './news.ts';
import { type Channel, NotifyStore } from './store.ts';

/** The default kinds: all except fires. */
export const DEFAULT_KINDS: readonly NotificationKind[] = ['approvals', 'failures', 'missed'];

export type ChannelWish = {
  readonly user: string;
  readonly kind: ChannelName;
  /** By default the kind's own name, with a number if needed. */
  readonly name?: string | undefined;
  /** The destination; its form depends on the kind. */
  readonly spec: unknown;
  readonly told?: readonly NotificationKind[] | undefined;
  readonly quiet?: unknown;
  readonly quietAll?: boolean | undefined;
};

/** A channel in lists: without secrets. */
export type ChannelView = {
  readonly id: string;
  readonly user_id: string;
  readonly name: string;
  readonly kind: ChannelName;
  readonly place: string;
  readonly told: readonly NotificationKind[];
  readonly quiet?: Channel['quiet'];
  readonly quiet_all?: true;
  readonly paused?: true;
  /** Pending or deferred notifications. */
  readonly waiting: number;
  /** Epoch milliseconds. */
  readonly lastToldAt: number | undefined;
  readonly last_error?: string;
};

export class NotificationChannels {
  readonly #store: NotifyStore;
  readonly #clock: Clock;
  readonly #http: GuardedClient;
  readonly links: ApprovalLinks;

  /** @throws ReveilleError as `openDatabase` */
  constructor({ dir, clock, resolve }: { dir: string; clock: Clock; resolve?: Resolve }) {
    this.#store = new NotifyStore({ dir, clock, lock: 'shared' });
    this.#clock = clock;
    this.#http = new GuardedClient(GUARD_WORDS, ...(resolve ? [resolve] : []));
    this.links = new ApprovalLinks({ store: this.#store, secret: linkSecret(this.#store), clock });
  }

  /** The key for a browser's subscription: `applicationServerKey`, in base64url. */
  get pushKey(): string {
    return vapidOf(this.#store, undefined).publicKey;
  }

  /**
   * Adds a channel.
   *
   * @throws ReveilleError `invalid_request` naming the problem, `conflict` for a name in use
   */
  add({ user, kind, name, spec, told = DEFAULT_KINDS, quiet, quietAll = false }: ChannelWish): ChannelView {
    const read = readSpec(kind, spec, { http: this.#http });
    const hours = quiet === undefined ? undefined : parseOrThrow(quietHoursSchema, quiet);
    const called = name ?? this.#freeName(user, kind);
    const wish = { user, name: called, kind, spec: read, told, quiet: hours, quietAll };
    return this.#viewOf(this.#store.addChannel(wish, this.#clock.now()));
  }

  list(user?: string): ChannelView[] {
    return this.#store.channels(user).map((channel) => this.#viewOf(channel));
  }

  /** @returns the channel, and the number of its pending notifications */
  remove(user: string, nameOrId: string): { channel: ChannelView; lost: number } {
    const channel = this.#store.channel(user, nameOrId);
    const view = this.#viewOf(channel);
    return { channel: view, lost: this.#store.removeChannel(channel.id) };
  }

  /** Sends a test notification without the outbox. @returns why it failed; `undefined` on success */
  async test(
    user: string,
    nameOrId: string,
    tools: Pick<ChannelTools, 'variables' | 'signal'>,
  ): Promise<{ channel: ChannelView; why: string | undefined }> {
    const { kind, spec, ...channel } = this.#store.channel(user, nameOrId);
    const now = this.#clock.now();
    const message = {
      ...{ id: `ntf_test_${now}`, kinds: ['test'] as const, at: now, about: {}, links: [] },
      ...{ title: 'Reveille can reach you here', text: `This is a test of the channel ${channel.name}.` },
    };
    const vapid = vapidOf(this.#store, undefined);
    const delivery = await CHANNELS[kind].tell(spec, message, {
      ...{ http: this.#http, clock: this.#clock, vapid, ...tools },
    });
    const view = this.#viewOf({ kind, spec, ...channel });
    return { channel: view, why: delivery.result === 'done' ? undefined : delivery.why };
  }

  async close(): Promise<void> {
    await this.#http.close();
    this.#store.close();
  }

  #freeName(user: string, kind: string): string {
    const taken = new Set(this.#store.channels(user).map(({ name }) => name));
    for (let n = 1; ; n++) {
      const name = n === 1 ? kind : `${kind}-${n}`;
      if (!taken.has(name)) return name;
    }
  }

  #viewOf(channel: Channel): ChannelView {
    const { id, user, name, kind, spec, told, quiet, quietAll, paused, lastToldAt, lastError } = channel;
    return {
      ...{ id, user_id: user, name, kind, place: CHANNELS[kind].place(spec), told },
      ...(quiet === undefined ? {} : { quiet, ...(quietAll ? { quiet_all: true as const } : {}) }),
      ...(paused ? { paused: true as const } : {}),
      ...{ waiting: this.#store.waiting(id), lastToldAt },
      ...(lastError === undefined ? {} : { last_error: lastError }),
    };
  }
}
