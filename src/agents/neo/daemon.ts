/** Wires Neo's store, runner, model and HTTP server from a configuration. No other module does. */
import { closeSync, writeSync } from 'node:fs';
import type { Clock } from '../../kit/clock/clock.ts';
import type { RunningServer } from '../../kit/http/server.ts';
import { turnReportKey } from '../../kit/identity/webhook-signature.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Outbox } from '../../kit/outbox/outbox.ts';
import type { Sandbox } from '../../kit/process/isolation.ts';
import { eventFeed } from '../../turns/event-log.ts';
import { createTurnReportSender, type TurnReportSenderOptions } from '../../turns/turn-report-sender.ts';
import type { ReveilleError } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { type Capabilities, createCapabilities } from './capabilities.ts';
import type { NeoConfig } from './config.ts';
import { openConversationStore } from './conversations/store.ts';
import { createApprovers } from './delegate/approvers.ts';
import { startNeoServer } from './http/server.ts';
import type { NeoModel } from './model.ts';
import { chooseModel } from './model.ts';
import { createQuestions } from './questions.ts';
import { createRunner, type Runner } from './runner.ts';

/** How long a drain waits for running turns; unfinished turns run again at the next start. */
const DRAIN_MS = 10_000;

/**
 * The first turn starts its capabilities itself; without a turn they start after this delay. Loading them keeps the
 * process busy while the router probes it.
 */
const CAPABILITIES_AFTER_MS = 1000;

export type NeoOptions = {
  config: NeoConfig;
  clock: Clock;
  log: Logger;
  /** The values for references in the agent manifest; none by default. */
  variables?: Settings;
  /** Paths that its MCP servers must not see. */
  sandbox?: Sandbox;
  /** Answers instead of the configured model. */
  model?: NeoModel;
  /**
   * Called when Neo has closed itself because its tools differ from the manifest, or a required server does not start.
   */
  onFatal?: (error: ReveilleError) => void;
  /** Called for each prompt of a person, once it is stored; epoch milliseconds. Must not throw. */
  onPrompt?: ((at: number) => void) | undefined;
  drainMs?: number;
};

export type RunningNeo = {
  readonly port: number;
  readonly url: string;
  /** Stops accepting requests, waits a while for running turns, then closes the server and the store. */
  close(): Promise<void>;
};

/**
 * Starts Neo; resolves when it accepts requests. Unfinished turns of the last process continue at once.
 *
 * @throws ReveilleError `unavailable`: the data folder is in use or damaged, the address is in use, or a required server
 *   does not start. `conflict`: the data folder belongs to a newer version, or manifest, registry and skill disagree.
 */
export async function startNeo(options: NeoOptions): Promise<RunningNeo> {
  const { config, variables = {}, clock, log, model, onFatal, drainMs = DRAIN_MS } = options;
  for (const warning of config.warnings) log.warn(warning);
  const answeringModel = model ?? chooseModel(config.model, clock);
  const { chronosUrl, token } = config;
  const store = openConversationStore({
    dataDir: config.dataDir,
    clock,
    onEvents: () => feed.wake(),
    ...(chronosUrl === undefined || token === undefined ? {} : { onTurnReport: () => turnReports?.wake() }),
  });
  const feed = eventFeed(store);
  const traceOf = (turnId: string) => store.turnById(turnId)?.traceparent;
  const turnReports = turnReportSender(config, { outbox: store.outbox, traceOf, clock, log });
  const approvers = createApprovers(clock);
  const questions = createQuestions({ store: store.questions, approvers, clock, log });
  let capabilities: Capabilities | undefined;
  let runner: Runner;
  let server: RunningServer;
  try {
    capabilities = await createCapabilities({
      config,
      variables,
      sandbox: options.sandbox,
      store,
      approvers,
      questions,
      clock,
      log,
      onFatal: giveUp,
    });
    await capabilities.check();
    const { ready: surface, memory, learnFrom: onFinished } = capabilities;
    const { prices, contextTokens, retryPolicy } = config;
    runner = createRunner({
      store,
      model: answeringModel,
      prices,
      surface,
      memory,
      questions,
      onFinished,
      contextTokens,
      retryPolicy,
      clock,
      log,
    });
    server = await startNeoServer({
      config,
      store,
      runner,
      model: answeringModel.name,
      turnReports,
      capabilities,
      approvers,
      questions,
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
  reportPort(server.port, config.portChannel, log);
  // A model without calls needs no servers; they are started when a client lists the tools.
  const cancelStart = answeringModel.callsTools ? clock.after(CAPABILITIES_AFTER_MS, capabilities.start) : () => {};
  runner.start();
  turnReports?.start();
  log.info({ url: server.url, model: answeringModel.name, data: config.dataDir }, 'neo is ready');

  let closed: Promise<void> | undefined;
  const close = async (graceMs: number) => {
    cancelStart();
    capabilities.stopStarting();
    await Promise.all([server.close(), runner.stop(graceMs)]);
    await capabilities.close();
    await turnReports?.close();
    await store.close();
  };
  /** Running turns are put back: the next Neo runs them, with correct tools. */
  function giveUp(error: ReveilleError): void {
    log.fatal({ err: error }, 'Neo cannot start the tools that its manifest declares; it stops');
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

/** Reports Neo's port to the parent process, as a number and a line feed. */
function reportPort(port: number, channel: number | undefined, log: Logger): void {
  if (channel === undefined) return;
  try {
    writeSync(channel, `${port}\n`);
    closeSync(channel);
  } catch (err) {
    // The reader has ended, or the number comes from an inherited environment.
    log.warn({ err, channel }, 'no process reads the port from REVEILLE_PORT_FD');
  }
}

/** The sender of turn reports; absent without an address or without a token to sign with. */
function turnReportSender(
  { chronosUrl, token }: NeoConfig,
  options: Pick<TurnReportSenderOptions, 'outbox' | 'traceOf' | 'clock' | 'log'>,
): Outbox | undefined {
  if (chronosUrl === undefined || token === undefined) return undefined;
  const key = turnReportKey(token);
  return createTurnReportSender({ ...options, url: () => chronosUrl, keyOf: () => key, random: Math.random });
}
