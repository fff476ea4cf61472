/** Neo: wires store, runner, model and HTTP server from a configuration. Nothing else does. */
import type { Clock } from '../clock/clock.ts';
import type { RunningServer } from '../http-kit/server.ts';
import type { Logger } from '../log/log.ts';
import type { NeoConfig } from './config.ts';
import { openConversationStore } from './conversations/store.ts';
import { eventFeed } from './events.ts';
import { startNeoServer } from './http/server.ts';
import { chooseModel } from './model/choose.ts';
import type { Model } from './model/model.ts';
import { createRunner, type Runner } from './runner.ts';

/** How long a drain waits for running turns; what is left runs again at the next start. */
const DRAIN_MS = 10_000;

export type NeoOptions = {
  config: NeoConfig;
  clock: Clock;
  log: Logger;
  /** Answers instead of the model that the configuration names. */
  model?: Model;
  drainMs?: number;
};

export type RunningNeo = {
  readonly port: number;
  readonly url: string;
  /** Accepts nothing more, lets running turns finish for a while, then closes the server and the store. */
  close(): Promise<void>;
};

/**
 * Starts Neo; resolves when it accepts requests. Turns that the last process left behind are taken up at once.
 *
 * @throws ReveilleError `unavailable` when the data folder is in use or damaged or the address is taken, `conflict` when the data
 *   folder is a newer version's
 */
export async function startNeo({ config, clock, log, model, drainMs = DRAIN_MS }: NeoOptions): Promise<RunningNeo> {
  for (const warning of config.warnings) log.warn(warning);
  const speaker = model ?? chooseModel(config.model, clock);
  const store = openConversationStore({ dataDir: config.dataDir, clock, onEvents: () => feed.wake() });
  const feed = eventFeed(store);
  let runner: Runner;
  let server: RunningServer;
  try {
    runner = createRunner({ store, model: speaker, clock, log });
    server = await startNeoServer({ config, store, runner, feed, log, clock, drainMs });
  } catch (error) {
    await store.close();
    throw error;
  }
  runner.start();
  log.info({ url: server.url, model: speaker.name, data: config.dataDir }, 'neo is ready');

  let closed: Promise<void> | undefined;
  const close = async () => {
    await Promise.all([server.close(), runner.stop(drainMs)]);
    await store.close();
  };
  return {
    port: server.port,
    url: server.url,
    close() {
      closed ??= close();
      return closed;
    },
  };
}
