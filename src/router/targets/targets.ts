/** Agents without a Reveille daemon: wakes for machines of provider `command`. This file connects the parts. */
import type { Dispatcher } from 'undici';
import { v7 as uuidv7 } from 'uuid';
import type { Clock } from '../../kit/clock/clock.ts';
import { GuardedClient } from '../../kit/http/guarded-client.ts';
import type { Resolve } from '../../kit/http/guarded-lookup.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Outbox } from '../../kit/outbox/outbox.ts';
import { createReceiptSender, type ReceiptSenderOptions } from '../../kit/outbox/receipt-sender.ts';
import type { DaemonAnswer } from '../../neo/client.ts';
import { okEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { Wake } from '../../wire/wake.ts';
import type { CommandMachine, Machine } from '../machines/machine.ts';
import type { CommandSpec } from '../providers/command.ts';
import type { Separation } from '../providers/separation.ts';
import { recordedTurn, type WokenTurn } from '../woken-turn.ts';
import { a2aTarget } from './a2a.ts';
import { Attempts, type Worker } from './attempts.ts';
import { DirectDeliveries } from './direct-deliveries.ts';
import { openclawTarget } from './openclaw.ts';
import { opencodeTarget } from './opencode.ts';
import type { Preset } from './preset.ts';
import { checkSpec } from './preset.ts';
import { Presets } from './presets.ts';
import { checkFolder, programOf } from './program.ts';
import { barePrompt, framedPrompt } from './prompt.ts';
import { removeOthers } from './run-files.ts';
import type { DirectTarget } from './target.ts';
import { terminalTarget } from './terminal.ts';
import type { OnStage, TurnStage } from './turn.ts';
import { type Turn, turnOf } from './turn.ts';
import { TurnStore } from './turn-store.ts';
import { Turns } from './turns.ts';
import { webhookTarget } from './webhook.ts';

type TargetsOptions = {
  /** The folder of the turns, and of the files of running ones. */
  dataDir: string;
  /** The user's own presets. */
  presetFolder: string;
  machineOf: (userId: string) => Machine | undefined;
  /** Suspends a machine whose receiver reported that it is permanently gone. */
  suspend: (userId: string, why: string) => Promise<void>;
  dispatcher: Dispatcher;
  environment: Readonly<Record<string, string | undefined>>;
  /** The sandbox of programs. */
  separation: Separation;
  clock: Clock;
  log: Logger;
  onStage?: OnStage;
  /** The destination of turn reports, and the signing key of a user; without it none are stored. */
  receipts?: Pick<ReceiptSenderOptions, 'url' | 'keyOf'>;
  /** Resolves names to addresses for webhooks; by default the system does. */
  resolve?: Resolve;
};

/** The target of a wake, by the kind of the preset. */
const TARGET_TYPES: Readonly<Record<Preset['kind'], WokenTurn['by']>> = {
  terminal: 'program',
  opencode: 'server',
  a2a: 'server',
  openclaw: 'receiver',
  webhook: 'receiver',
};

/** The most concurrent turns of one user. */
const RUNS_PER_USER = 4;
/** How long ended turns can be read and repeated wakes are recognized. */
const KEPT_MS = 30 * 24 * 3600 * 1000;
const PRUNE_MS = 3600 * 1000;

const GUARD_TEXTS = {
  who: 'the webhook',
  remedy: 'if that is intended, register the machine with --allow-private',
};

export class Targets {
  readonly store: TurnStore;
  readonly #options: TargetsOptions;
  readonly #presets: Presets;
  readonly #turns: Turns;
  readonly #client: GuardedClient;
  readonly #runFolder: string;
  readonly #makers;
  readonly #directDeliveries: DirectDeliveries;
  readonly #sender: Outbox | undefined;
  #cancelPrune = () => {};
  #closed: Promise<void> | undefined;

  /**
   * Opens the store of turns.
   *
   * @throws ReveilleError as `openDatabase`
   */
  constructor(options: TargetsOptions) {
    const { dataDir, clock, log, dispatcher, environment, machineOf } = options;
    this.#options = options;
    this.#presets = new Presets(options.presetFolder);
    this.#client = new GuardedClient(GUARD_TEXTS, options.resolve);
    this.#runFolder = `${dataDir}/runs`;
    this.#makers = {
      terminal: terminalTarget({ runFolder: this.#runFolder, environment, isolation: options.separation, clock, log }),
      opencode: opencodeTarget({ dispatcher, clock }),
      a2a: a2aTarget({ dispatcher, clock }),
      openclaw: openclawTarget({ dispatcher, clock }),
      webhook: webhookTarget({ client: this.#client, clock }),
    };
    const { receipts: turnReports } = options;
    this.store = new TurnStore(dataDir, clock, turnReports && (() => this.#sender?.wake()));
    if (turnReports)
      this.#sender = createReceiptSender({
        ...turnReports,
        outbox: this.store.outbox,
        clock,
        log,
        random: Math.random,
      });
    const onStage = (stage: TurnStage) => {
      if (stage.stage === 'turn_started') this.#reportStart(stage);
      options.onStage?.(stage);
    };
    const shared = { store: this.store, clock, log, onStage };
    const workerOf = (machine: CommandMachine) => {
      const worker = this.#workerOf(machine, this.#presetOf(machine));
      if (worker) return worker;
      throw new ReveilleError('unavailable', `the preset ${machine.spec.preset} now has another kind`);
    };
    this.#directDeliveries = new DirectDeliveries({ ...shared, suspend: options.suspend });
    const attempts = new Attempts({ ...shared, machineOf, workerOf });
    this.#turns = new Turns({ ...shared, attempts, perUser: RUNS_PER_USER });
  }

  /** Resumes the turns of an earlier router. No turn begins before. */
  recover(): void {
    const unfinished = new Set(this.store.unfinished().map(({ id }) => id));
    removeOthers(this.#runFolder, unfinished).catch((err: unknown) => {
      this.#options.log.warn({ err }, 'the files of ended turns could not be removed');
    });
    this.#turns.recover();
    this.#sender?.start();
    this.#prune();
  }

  /**
   * Delivers a wake, or accepts its turn: 202 when it is on disk, 200 for a known fire.
   *
   * @param deadline when the wake must have been answered
   * @throws ReveilleError when the turn could not begin now or was rejected: 410 when the receiver is permanently gone,
   *   502 when it may or may not have arrived, others with the target's message
   */
  async wake(machine: CommandMachine, wake: Wake, deadline: AbortSignal): Promise<DaemonAnswer> {
    const known = this.store.ofFire(machine.userId, wake.fire_id);
    if (known) return acceptedAnswer(known, true);
    const preset = this.#presetOf(machine);
    const now = this.#options.clock.now();
    const newId = () => uuidv7({ msecs: now });
    const turn = turnOf(wake, { id: newId(), userId: machine.userId, preset: preset.name, now, newId });
    const worker = this.#workerOf(machine, preset);
    if (worker) {
      const accepted = await this.#turns.accept(turn, worker);
      return acceptedAnswer(accepted.turn, accepted.deduped);
    }
    return acceptedAnswer(
      await this.#directDeliveries.deliver(this.#directOf(machine, preset), wake, turn, deadline),
      false,
    );
  }

  /** How the turn of an accepted wake can be followed. */
  turnOf(userId: string, fireId: string): WokenTurn | undefined {
    const { clock } = this.#options;
    const turn = this.store.ofFire(userId, fireId);
    if (!turn) return undefined;
    const { id, preset } = turn;
    return recordedTurn({ by: this.#targetType(preset), preset, clock, read: () => this.store.get(id) });
  }

  #targetType(preset: string): WokenTurn['by'] {
    try {
      return TARGET_TYPES[this.#presets.get(preset).kind];
    } catch (error) {
      // A user's own file that was deleted since.
      if (error instanceof ReveilleError) return 'server';
      throw error;
    }
  }

  /**
   * Checks a machine before its registration.
   *
   * @returns sentences about unmet requirements
   * @throws ReveilleError `invalid_request` with the missing or invalid member
   */
  async check(spec: CommandSpec): Promise<string[]> {
    const preset = this.#presets.get(spec.preset);
    checkSpec(preset, spec);
    if (preset.kind === 'webhook') {
      const refusal = this.#client.refusalOf(new URL(spec.url!), spec.allow_private === true);
      if (refusal !== undefined) throw new ReveilleError('invalid_request', refusal);
    }
    if (preset.kind !== 'terminal') return [];
    const checks: Promise<unknown>[] = [programOf(preset, spec, this.#options.environment, '')];
    if (spec.cwd !== undefined) checks.push(checkFolder(spec.cwd));
    const found = await Promise.allSettled(checks);
    return found.flatMap((look) => (look.status === 'rejected' ? [(look.reason as Error).message] : []));
  }

  /** Whether the machine's secret signs events, so that it must have the format that receivers know. */
  signs({ preset }: CommandSpec): boolean {
    return this.#presets.get(preset).kind === 'webhook';
  }

  /** The current activity of a user as text; `undefined` without any. */
  running(userId: string): string | undefined {
    return this.#turns.running(userId);
  }

  /** Ends the running turns of a user; resolves when their ends are recorded. */
  stop(userId: string, why: string): Promise<void> {
    return this.#turns.stop(userId, why);
  }

  /** Ends turns that cannot continue without the router; a repeated call returns the same promise. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#cancelPrune();
    await this.#turns.close();
    await this.#sender?.close();
    await this.#client.close();
    await this.store.close();
  }

  /**
   * The start of a turn that continues is reported at once. The report of an ended turn contains its start, even if
   * this report fails.
   */
  #reportStart(stage: TurnStage): void {
    this.store.reportStart(stage).catch((err: unknown) => {
      this.#options.log.warn({ err, turn_id: stage.turn_id }, 'the report of a start could not be stored');
    });
  }

  #presetOf({ spec }: CommandMachine): Preset {
    return this.#presets.get(spec.preset);
  }

  #workerOf(machine: CommandMachine, preset: Preset): Worker | undefined {
    const { terminal, opencode, a2a } = this.#makers;
    switch (preset.kind) {
      case 'terminal': {
        const promptOf = preset.words === 'bare' ? barePrompt : framedPrompt;
        return { machine, preset, target: terminal(preset, machine), promptOf };
      }
      case 'opencode':
        return { machine, preset, target: opencode(preset, machine), promptOf: framedPrompt };
      case 'a2a':
        return { machine, preset, target: a2a(preset, machine), promptOf: framedPrompt };
      case 'openclaw':
      case 'webhook':
        return undefined;
    }
  }

  #directOf(machine: CommandMachine, preset: Preset): DirectTarget {
    if (preset.kind === 'openclaw') return this.#makers.openclaw(preset, machine);
    if (preset.kind === 'webhook') return this.#makers.webhook(preset, machine);
    throw new ReveilleError('internal', `the preset ${preset.name} is not one to which wakes are delivered directly`);
  }

  #prune(): void {
    const { clock, log } = this.#options;
    this.store
      .prune(clock.now() - KEPT_MS)
      .catch((err: unknown) => log.warn({ err }, 'old turns could not be removed'));
    this.#cancelPrune = clock.after(PRUNE_MS, () => this.#prune());
  }
}

function acceptedAnswer({ conversationId, id }: Turn, deduped: boolean): DaemonAnswer {
  return {
    status: deduped ? 200 : 202,
    contentType: 'application/json; charset=utf-8',
    retryAfter: undefined,
    body: Buffer.from(okEnvelope({ conversation_id: conversationId, turn_id: id, deduped })),
  };
}
