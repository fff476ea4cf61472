/** Agents without a Reveille daemon: wakes for machines of provider `command`. This file connects the parts. */
import { v7 as uuidv7 } from 'uuid';
import { GuardedClient } from '../kit/http/guarded-client.ts';
import type { Resolve } from '../kit/http/guarded-lookup.ts';
import { type Prices, priced } from '../kit/model/prices.ts';
import type { Outbox } from '../kit/outbox/outbox.ts';
import { traceparent } from '../kit/trace/trace.ts';
import type { AgentHost, AgentHostOptions, OpenAgentHost, RecordedTurn } from '../router/agent-host.ts';
import type { CommandMachine, Machine } from '../router/machines/machine.ts';
import type { CommandSpec } from '../router/providers/command.ts';
import type { Agent, Worker } from '../turns/agent.ts';
import { turnOf } from '../turns/chat.ts';
import { TurnEngine } from '../turns/engine.ts';
import type { NewTurn, Outcome, Turn } from '../turns/turn.ts';
import { createTurnReportSender } from '../turns/turn-report-sender.ts';
import { stageOf } from '../turns/turn-view.ts';
import type { Run } from '../wire/conditions.ts';
import { okEnvelope } from '../wire/envelope.ts';
import { ReveilleError } from '../wire/errors.ts';
import { NO_USAGE } from '../wire/usage.ts';
import type { Wake } from '../wire/wake.ts';
import { a2aAgent } from './a2a/a2a.ts';
import { OpenSessions } from './channel/open-sessions.ts';
import { COMMAND_PRESET, commandTurn } from './command-turn.ts';
import { type DirectAgent, DirectDeliveries } from './direct-deliveries.ts';
import type { DaemonAnswer } from './neo/client.ts';
import { openclawAgent } from './openclaw.ts';
import { opencodeAgent } from './opencode.ts';
import { checkSpec, type Preset, type PresetOf, Presets } from './preset.ts';
import { barePrompt, framedPrompt } from './prompt.ts';
import { checkFolder, programOf } from './terminal/program.ts';
import { removeOthers } from './terminal/run-files.ts';
import { terminalAgent } from './terminal/terminal.ts';
import { termsProblem } from './terms.ts';
import { type AgentTurnStore, openAgentTurnStore } from './turn-store.ts';
import { webhookAgent } from './webhook.ts';

/** The port's options, and how names are resolved. */
export type LocalAgentHostOptions = AgentHostOptions & {
  /** Resolves names to addresses for webhooks; by default the system does. */
  resolve?: Resolve;
};

const AGENT_KINDS: Readonly<Record<Preset['kind'], RecordedTurn['by']>> = {
  terminal: 'program',
  opencode: 'server',
  a2a: 'server',
  openclaw: 'receiver',
  webhook: 'receiver',
};

/** The most concurrent turns of one user. */
const RUNS_PER_USER = 4;
/** The most waiting turns of one conversation. */
const LONGEST_QUEUE = 32;
const FULL_RETRY_SECONDS = 60;
/** How long the command of an alarm may wait for its program or its folder. */
const COMMAND_WAIT_MS = 60_000;
/** How long ended turns can be read and repeated wakes are recognized. */
const KEPT_MS = 30 * 24 * 3600 * 1000;
const PRUNE_MS = 3600 * 1000;

const GUARD_TEXTS = {
  who: 'the webhook',
  remedy: 'if that is intended, register the machine with --allow-private',
};

export class LocalAgentHost implements AgentHost {
  readonly store: AgentTurnStore;
  readonly #options: LocalAgentHostOptions;
  readonly #presets: Presets;
  readonly #engine: TurnEngine;
  readonly #client: GuardedClient;
  readonly #runFolder: string;
  readonly #makers;
  readonly #directDeliveries: DirectDeliveries;
  readonly #sender: Outbox | undefined;
  /** Called after a change of any turn. */
  readonly #readers = new Set<() => void>();
  #cancelPrune = () => {};
  #closed: Promise<void> | undefined;

  /** Opens the store of turns. @throws ReveilleError as `openDatabase` */
  constructor(options: LocalAgentHostOptions) {
    const { dataDir, clock, log, dispatcher, environment } = options;
    this.#options = options;
    this.#presets = new Presets(options.presetFolder);
    this.#client = new GuardedClient(GUARD_TEXTS, options.resolve);
    this.#runFolder = `${dataDir}/runs`;
    this.#makers = {
      terminal: terminalAgent({
        ...{ runFolder: this.#runFolder, environment, isolation: options.isolation, clock, log },
        openSessions: new OpenSessions(options.channelFolder, clock),
      }),
      opencode: opencodeAgent({ dispatcher, clock }),
      a2a: a2aAgent({ dispatcher, clock }),
      openclaw: openclawAgent({ dispatcher, clock }),
      webhook: webhookAgent({ client: this.#client, clock }),
    };
    const { turnReports } = options;
    this.store = openAgentTurnStore(dataDir, clock, {
      onChange: () => {
        for (const changed of [...this.#readers]) changed();
      },
      onTurnReport: turnReports && (() => this.#sender?.wake()),
    });
    if (turnReports)
      this.#sender = createTurnReportSender({
        ...turnReports,
        outbox: this.store.outbox,
        traceOf: (turnId) => this.store.turnById(turnId)?.traceparent,
        clock,
        log,
        random: Math.random,
      });
    const { onStage = () => {}, suspend } = options;
    this.#directDeliveries = new DirectDeliveries({ store: this.store, clock, log, onStage, suspend });
    this.#engine = new TurnEngine({
      ...{ store: this.store, sessions: this.store.sessions, clock, log, owner: 'the router' },
      ...{ concurrency: RUNS_PER_USER, perUser: true },
      workerOf: (turn) => this.#workerOfTurn(turn),
      onStart: (turn, at) => this.#onStart(turn, at),
      onFinished: (turn) => this.#onFinished(turn),
      onCounts: options.onActivity,
    });
  }

  recover(): void {
    const unfinished = new Set(this.store.unfinished().map(({ id }) => id));
    removeOthers(this.#runFolder, unfinished).catch((err: unknown) => {
      this.#options.log.warn({ err }, 'the files of ended turns could not be removed');
    });
    this.#engine.start();
    this.#sender?.start();
    this.#prune();
  }

  async wake(machine: Machine, wake: Wake, deadline: AbortSignal): Promise<DaemonAnswer> {
    const known = this.store.ofFire(machine.userId, wake.fire_id);
    if (known) return acceptedAnswer(known, true);
    const now = this.#options.clock.now();
    const { userId } = machine;
    const begin = (preset: string): NewTurn => ({
      ...turnOf(wake, now, () => uuidv7({ msecs: now }), { userId, traceparent: traceparent() }),
      named: wake.conversation_id !== undefined,
      preset,
    });
    if (wake.run !== undefined) {
      // A command that cannot run is a failed turn, not a wake to repeat.
      const accepted = await this.#store(begin(COMMAND_PRESET));
      return acceptedAnswer(accepted.turn, accepted.deduped);
    }
    if (machine.provider !== 'command')
      throw new ReveilleError('internal', `the machine of ${userId} has a daemon of its own`);
    const preset = this.#presetOf(machine);
    const turn = begin(preset.name);
    if (termsProblem(preset, machine.spec, turn.terms) !== undefined) {
      // Accepted, so that the alarm gets the report of a failed turn instead of repetitions.
      const accepted = await this.#store(turn);
      return acceptedAnswer(accepted.turn, accepted.deduped);
    }
    const worker = this.#workerOf(machine, preset, turn);
    if (worker) {
      const accepted = await this.#accept(turn, worker);
      return acceptedAnswer(accepted.turn, accepted.deduped);
    }
    const direct = this.#directOf(machine, preset);
    return acceptedAnswer(await this.#directDeliveries.deliver(direct, wake, turn, deadline), false);
  }

  /**
   * Accepts a turn. Resolves when it is on disk, with the existing turn of its fire if there is one.
   *
   * @throws ReveilleError `unavailable` when too many turns wait in the conversation, when it could not be stored, or
   *   with the agent's message when it could not begin the turn now
   */
  async #accept(turn: NewTurn, { agent, prompt, cwd }: Worker): Promise<{ turn: Turn; deduped: boolean }> {
    if (this.#closed) throw new ReveilleError('unavailable', 'the router is shutting down');
    if (this.#engine.waiting(turn) >= LONGEST_QUEUE) {
      const message = `the conversation ${turn.conversationId} has ${LONGEST_QUEUE} waiting turns already`;
      throw new ReveilleError('unavailable', message, { retryAfterSeconds: FULL_RETRY_SECONDS });
    }
    await agent.check(prompt, this.store.sessions.get(turn)?.cwd ?? cwd);
    return this.#store(turn);
  }

  async #store(turn: NewTurn): Promise<{ turn: Turn; deduped: boolean }> {
    const accepted = await this.store.accept(turn);
    if (accepted.deduped) return accepted;
    this.#options.onStage?.({ ...stageOf(turn, turn.createdAt), stage: 'accepted' });
    this.#engine.accepted();
    return accepted;
  }

  turnOf(userId: string, fireId: string): RecordedTurn | undefined {
    const turn = this.store.ofFire(userId, fireId);
    if (!turn) return undefined;
    const { id, preset = '' } = turn;
    return {
      ...{ by: this.#kindOf(preset), preset, read: () => this.store.turnById(id) },
      onChange: (changed) => {
        this.#readers.add(changed);
        return () => void this.#readers.delete(changed);
      },
    };
  }

  #kindOf(preset: string): RecordedTurn['by'] {
    if (preset === COMMAND_PRESET) return 'program';
    try {
      return AGENT_KINDS[this.#presets.get(preset).kind];
    } catch (error) {
      // A user's own file that was deleted since.
      if (error instanceof ReveilleError) return 'server';
      throw error;
    }
  }

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

  signs({ preset }: CommandSpec): boolean {
    return this.#presets.get(preset).kind === 'webhook';
  }

  running(userId: string): string | undefined {
    const { running, waiting } = this.#engine.countsOf(userId);
    return running + waiting === 0 ? undefined : `${running} running, ${waiting} waiting`;
  }

  get turnsUnderWay(): number {
    return this.#engine.running;
  }

  stop(userId: string, why: string): Promise<void> {
    return this.#engine.endTurnsOf(userId, why);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    this.#cancelPrune();
    await this.#engine.stop(0);
    await this.#sender?.close();
    await this.#client.close();
    await this.store.close();
  }

  /**
   * The start of a turn that continues is reported at once. The report of an ended turn contains its start, even if
   * this report fails.
   */
  #onStart(turn: Turn, at: number): void {
    const { log, onStage } = this.#options;
    this.store.reportStart(turn, at).catch((err: unknown) => {
      log.warn({ err, turn_id: turn.id }, 'the report of a start could not be stored');
    });
    onStage?.({ ...stageOf(turn, at), stage: 'turn_started' });
  }

  #onFinished(turn: Turn): void {
    const { userId, fireId, status, attempts, error, reply, finishedAt } = turn;
    const { log, onStage, clock } = this.#options;
    const ok = status === 'unknown' ? undefined : status === 'done';
    const about = { user_id: userId, fire_id: fireId, turn_id: turn.id, status, attempts };
    log[ok ? 'info' : 'warn']({ ...about, reason: error }, 'a turn has ended');
    onStage?.({
      ...stageOf(turn, finishedAt ?? clock.now()),
      stage: 'turn_finished',
      ok,
      ...(error === undefined ? {} : { error }),
      ...(reply === undefined ? {} : { result: reply }),
    });
  }

  #presetOf({ spec }: CommandMachine): Preset {
    return this.#presets.get(spec.preset);
  }

  /** The agent of a stored turn, or why it cannot begin on its machine now. */
  #workerOfTurn(turn: Turn): Worker | Outcome {
    const machine = this.#options.machineOf(turn.userId!);
    const state = machine?.state;
    if (turn.status === 'queued' && state !== 'active') {
      if (state === 'suspended' || state === 'provisioning')
        return { status: 'not_started', why: `the machine is ${state}` };
      return { status: 'failed', error: 'the machine was deleted before the turn began' };
    }
    const run = turn.terms?.run;
    if (machine && run !== undefined) return this.#commandOf(machine, run, turn);
    if (machine?.provider !== 'command' || machine.spec.preset !== turn.preset) {
      const error = `the machine is no longer one of preset ${turn.preset}; it was changed before the turn began`;
      return { status: 'failed', error };
    }
    try {
      const preset = this.#presetOf(machine);
      const refusal = termsProblem(preset, machine.spec, turn.terms);
      if (refusal !== undefined) return { status: 'failed', error: refusal };
      const worker = this.#workerOf(machine, preset, turn);
      return worker ?? { status: 'not_started', why: `the preset ${turn.preset} now has another kind` };
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      return { status: 'not_started', why: thrown.message };
    }
  }

  /** The command of an alarm in place of its agent. */
  #commandOf(machine: Machine, run: Run, turn: Turn): Worker | Outcome {
    const command = commandTurn(machine, run);
    if ('problem' in command) return { status: 'failed', error: command.problem };
    const { cwd } = command.machine.spec;
    return {
      agent: withOutcomes(this.#makers.terminal(command.preset, command.machine), (outcome) => ({
        ...outcome,
        usage: NO_USAGE,
      })),
      ...{ name: 'the command', prompt: barePrompt(turn), cwd, waitMs: COMMAND_WAIT_MS },
    };
  }

  /** `undefined` for an agent that accepts wakes directly. */
  #workerOf(machine: CommandMachine, preset: Preset, turn: NewTurn): Worker | undefined {
    const { terminal, opencode, a2a } = this.#makers;
    const { name } = preset;
    const isBare = preset.kind === 'terminal' && preset.words === 'bare';
    const common = { name, prompt: (isBare ? barePrompt : framedPrompt)(turn), cwd: machine.spec.cwd };
    switch (preset.kind) {
      case 'terminal':
        return { ...common, agent: this.#priced(terminal(preset, machine), turn), ...sessionRules(preset, turn) };
      case 'opencode':
        return { ...common, agent: opencode(preset, machine), ...sessionRules(preset, turn) };
      case 'a2a':
        return { ...common, agent: a2a(preset, machine), waitMs: preset.wait_seconds * 1000 };
      case 'openclaw':
      case 'webhook':
        return undefined;
    }
  }

  /** An agent whose turns have a cost, by the model of the alarm or the name of the preset. */
  #priced(agent: Agent, { terms, preset }: NewTurn): Agent {
    const { prices } = this.#options;
    return prices ? withOutcomes(agent, (outcome) => withCost(outcome, prices, [terms?.model, preset])) : agent;
  }

  #directOf(machine: CommandMachine, preset: Preset): DirectAgent {
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

function withCost(outcome: Outcome, prices: Prices, names: readonly (string | undefined)[]): Outcome {
  const { usage, sessionUsage } = outcome;
  return {
    ...outcome,
    usage: usage && priced(usage, prices, names),
    sessionUsage: sessionUsage && priced(sessionUsage, prices, names),
  };
}

/** The agent with changed outcomes. */
function withOutcomes(agent: Agent, change: (outcome: Outcome) => Outcome): Agent {
  return {
    outlivesProcess: agent.outlivesProcess,
    check: (prompt, cwd) => agent.check(prompt, cwd),
    run: async (attempt) => change(await agent.run(attempt)),
    resume: async (attempt) => change(await agent.resume(attempt)),
    settled: (turn) => agent.settled(turn),
  };
}

/** How the agent's sessions belong to conversations. */
function sessionRules(
  { session: form, when_gone, wait_seconds }: PresetOf<'terminal' | 'opencode'>,
  { named, conversationId }: NewTurn,
): Partial<Worker> {
  return {
    guessedSession: named && form !== undefined && new RegExp(form).test(conversationId) ? conversationId : undefined,
    replacesLostSession: when_gone === 'begin_anew',
    waitMs: wait_seconds * 1000,
  };
}

function acceptedAnswer({ conversationId, id }: NewTurn, deduped: boolean): DaemonAnswer {
  return {
    status: deduped ? 200 : 202,
    contentType: 'application/json; charset=utf-8',
    retryAfter: undefined,
    body: Buffer.from(okEnvelope({ conversation_id: conversationId, turn_id: id, deduped })),
  };
}

export const openAgentHost: OpenAgentHost = (options) => new LocalAgentHost(options);
