/** The executor's events of this agent's user: one stream for all followed tasks and gates, open while there are any. */
import type { ExecutorClient } from '../../../executor/client.ts';
import type { Clock } from '../../../kit/clock/clock.ts';
import { ALL_CHANGED, ChangedIds, type Changes } from '../../../kit/http/changed-ids.ts';
import type { FollowStreamOptions } from '../../../kit/http/follow-stream.ts';
import type { IntentEvent } from '../../../wire/intent-event.ts';

/** Called with the intents that may have changed. */
type Listener = (changes: Changes) => void;

export type IntentNews = {
  /** Calls the listener until the returned function is called; also when the stream is opened, or opened again. */
  follow(listener: Listener): () => void;
};

/** Events of single calls change neither the status of an intent nor its gates. */
async function* relevantEvents(
  client: Pick<ExecutorClient, 'events'>,
  options: FollowStreamOptions,
): AsyncGenerator<IntentEvent> {
  for await (const event of client.events(options)) if (!event.type.startsWith('step.')) yield event;
}

export function createIntentNews(client: Pick<ExecutorClient, 'events'>, clock: Clock): IntentNews {
  const listeners = new Set<Listener>();
  let over: AbortController | undefined;

  async function run(signal: AbortSignal): Promise<void> {
    const changed = new ChangedIds({ events: (options) => relevantEvents(client, options), clock, signal });
    await changed.opened;
    // Before that, nothing was reported.
    for (let changes = ALL_CHANGED; !signal.aborted; changes = await changed.next())
      for (const listener of [...listeners]) listener(changes);
  }

  return {
    follow(listener) {
      listeners.add(listener);
      if (!over) {
        over = new AbortController();
        void run(over.signal);
      }
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        over?.abort();
        over = undefined;
      };
    },
  };
}
