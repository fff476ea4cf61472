/** Neo: wires store, runner, model and HTTP server from a configuration. Nothing else does. */
import { closeSync, writeSync } from 'node:fs';
import type { Clock } from '../kit/clock/clock.ts';
import type { RunningServer } from '../kit/http/server.ts';
import { receiptKey } from '../kit/identity/webhook-signature.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Outbox } from '../kit/outbox/outbox.ts';
import { createReceiptSender, type ReceiptSenderOptions } from '../kit/outbox/receipt-sender.ts';
import type { Walls } from '../kit/process/separation.ts';
import type { ReveilleError } from '../wire/errors.ts';
import type { Settings } from '../wire/settings.ts';
import { type Capabilities, createCapabilities } from './capabilities.ts';
import type { NeoConfig } from './config.ts';
import { openConversationStore } from './conversations/store.ts';
import { createApprovers } from './delegate/approvers.ts';
import { eventFeed } from './events.ts';
import { startNeoServer } from './http/server.ts';
import type { NeoModel } from './model.ts';
import { chooseModel } from './model.ts';
import { createRunner, type Runner } from './runner.ts';

/** How long a drain waits for running turns; what is left runs again at the next start. */
const DRAIN_MS = 10_000;

/**
 * The first turn starts its capabilities itself; without one they are started after this long. Loading them keeps the
 * process busy just when the router looks whether Neo is there.
 */
const CAPABILITIES_AFTER_MS = 1000;

export type NeoOptions = {
  config: NeoConfig;
  clock: Clock;
  log: Logger;
  /** What references in the agent manifest refer to; nothing unless told. */
  variables?: Settings;
  /** What MCP servers that it starts must not see. */
  walls?: Walls;
  /** Answers instead of the model that the configuration names. */
  model?: NeoModel;
  /**
   * Told when Neo has closed itself because its tools are not what the manifest says, or a required server does not
   * start.
   */
  onFatal?: (error: ReveilleError) => void;
  /** Told of each prompt of a person, once it is stored; epoch milliseconds. Must not throw. */
  onPrompt?: ((at: number) => void) | undefined;
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
 * @throws ReveilleError `unavailable` when the data folder is in use or damaged, the address is taken or a required server
 *   does not start, `conflict` when the data folder is a newer version's, or when manifest, registry and skill disagree
 */
export async function startNeo(options: NeoOptions): Promise<RunningNeo> {
  const { config, variables = {}, clock, log, model, onFatal, drainMs = DRAIN_MS } = options;
  for (const warning of config.warnings) log.warn(warning);
  const speaker = model ?? chooseModel(config.model, clock);
  const { chronosUrl, token } = config;
  const store = openConversationStore({
    dataDir: config.dataDir,
    clock,
    onEvents: () => feed.wake(),
    ...(chronosUrl === undefined || token === undefined ? {} : { onReceipt: () => receipts?.wake() }),
  });
  const feed = eventFeed(store);
  const receipts = receiptSender(config, { outbox: store.outbox, clock, log });
  const approvers = createApprovers(clock);
  let capabilities: Capabilities | undefined;
  let runner: Runner;
  let server: RunningServer;
  try {
    capabilities = await createCapabilities({
      config,
      variables,
      walls: options.walls,
      store,
      approvers,
      clock,
      log,
      onFatal: giveUp,
    });
    await capabilities.check();
    const { ready: surface, memory, learnFrom: onFinished } = capabilities;
    const { contextTokens, ladder } = config;
    runner = createRunner({ store, model: speaker, surface, memory, onFinished, contextTokens, ladder, clock, log });
    server = await startNeoServer({
      config,
      store,
      runner,
      model: speaker.name,
      receipts,
      capabilities,
      approvers,
      feed,
      onPrompt: options.onPrompt,
      log,
      clock,
      drainMs,
    });
  } catch (error) {
    await capabilities?.close();
    await store.close();
    throw error;
  }
  sayPort(server.port, config.portChannel, log);
  // A model that calls nothing needs no servers; they are started when somebody asks what there would be.
  const cancelStart = speaker.callsTools ? clock.after(CAPABILITIES_AFTER_MS, capabilities.start) : () => {};
  runner.start();
  receipts?.start();
  log.info({ url: server.url, model: speaker.name, data: config.dataDir }, 'neo is ready');

  let closed: Promise<void> | undefined;
  const close = async (graceMs: number) => {
    cancelStart();
    capabilities.stopStarting();
    await Promise.all([server.close(), runner.stop(graceMs)]);
    await capabilities.close();
    await receipts?.close();
    await store.close();
  };
  /** Turns that run are put back: the next Neo, with the tools as they should be, runs them. */
  function giveUp(error: ReveilleError): void {
    log.fatal({ err: error }, 'Neo cannot have the tools that its manifest declares; it ends');
    closed ??= close(0);
    void closed.finally(() => onFatal?.(error));
  }
  return {
    port: server.port,
    url: server.url,
    close() {
      closed ??= close(drainMs);
      return closed;
    },
  };
}

/** Says where Neo listens to whoever started it, as a number and a line feed. */
function sayPort(port: number, channel: number | undefined, log: Logger): void {
  if (channel === undefined) return;
  try {
    writeSync(channel, `${port}\n`);
    closeSync(channel);
  } catch (err) {
    // Whoever asked has gone, or the number stood in the environment of somebody who passed it on.
    log.warn({ err, channel }, 'nobody hears on REVEILLE_PORT_FD where this Neo listens');
  }
}

/** Who sends receipts; nobody, unless it is known where to and there is a token to sign with. */
function receiptSender(
  { chronosUrl, token }: NeoConfig,
  options: Pick<ReceiptSenderOptions, 'outbox' | 'clock' | 'log'>,
): Outbox | undefined {
  if (chronosUrl === undefined || token === undefined) return undefined;
  const key = receiptKey(token);
  return createReceiptSender({ ...options, url: () => chronosUrl, keyOf: () => key, random: Math.random });
}
