/**
 * The port of the host of agents without a daemon. `src/agents/host.ts` implements it; the program that starts a router
 * passes it, because the host uses the sandbox and the process groups of machines.
 */
import type { Dispatcher } from 'undici';
import type { DaemonAnswer } from '../agents/neo/client.ts';
import type { Clock } from '../kit/clock/clock.ts';
import type { Logger } from '../kit/log/log.ts';
import type { Prices } from '../kit/model/prices.ts';
import type { Turn } from '../turns/turn.ts';
import type { TurnReportSenderOptions } from '../turns/turn-report-sender.ts';
import type { OnStage } from '../turns/turn-view.ts';
import type { MachineTurnStatus } from '../wire/machine-turn.ts';
import type { Wake } from '../wire/wake.ts';
import type { Machine } from './machines/machine.ts';
import type { CommandSpec } from './providers/command.ts';
import type { Isolation } from './providers/isolation.ts';

export type AgentHostOptions = {
  /** The folder of the turns, and of the files of running ones. */
  dataDir: string;
  /** The user's own presets. */
  presetFolder: string;
  /** The folder that the router shares with open sessions of agents. */
  channelFolder: string;
  machineOf: (userId: string) => Machine | undefined;
  /** Suspends a machine whose receiver reported that it is permanently gone. */
  suspend: (userId: string, why: string) => Promise<void>;
  dispatcher: Dispatcher;
  environment: Readonly<Record<string, string | undefined>>;
  /** For the cost of turns whose agent reports only tokens; none by default. */
  prices?: Prices | undefined;
  /** The sandbox of programs. */
  isolation: Isolation;
  clock: Clock;
  log: Logger;
  onStage?: OnStage;
  /** Called when the running or waiting turns of a user have changed. */
  onActivity?: (userId: string) => void;
  /** The destination of turn reports, and the signing key of a user; without it none are stored. */
  turnReports?: Pick<TurnReportSenderOptions, 'url' | 'keyOf'>;
};

/** Opens a host. @throws ReveilleError when its store cannot be opened */
export type OpenAgentHost = (options: AgentHostOptions) => AgentHost;

export type RecordedTurn = {
  /** A `program` is started for each turn, a `server` runs by itself, and a `receiver` reports no result. */
  readonly by: 'program' | 'server' | 'receiver';
  readonly preset: string;
  /** Reads its state; `undefined` when it was deleted. */
  readonly read: () => Turn | undefined;
  /** Calls back when any turn has changed. @returns ends it */
  readonly onChange: (changed: () => void) => () => void;
};

export type TurnFilter = {
  userId: string;
  conversationId?: string | undefined;
  fireId?: string | undefined;
  status?: MachineTurnStatus | undefined;
  /** Only turns that were accepted before the one with this number. */
  before?: number | undefined;
  limit: number;
};

export type AgentHost = {
  /** The recorded turns: those of a filter, newest first, and their number by status. */
  readonly store: {
    list(filter: TurnFilter): Turn[];
    counts(userId: string): Partial<Record<MachineTurnStatus, number>>;
  };
  /** Resumes the turns of an earlier router. No turn begins before. */
  recover(): void;
  /**
   * Delivers a wake, or accepts its turn: 202 when it is on disk, 200 for a known fire. A machine with a daemon gets
   * only wakes with a command (`run`), which need no daemon.
   *
   * @param deadline when the wake must have been answered
   * @throws ReveilleError when the turn could not begin now or was rejected: 410 when the receiver is permanently gone,
   *   502 when it may or may not have arrived, others with the agent's message
   */
  wake(machine: Machine, wake: Wake, deadline: AbortSignal): Promise<DaemonAnswer>;
  /** The turn of an accepted wake, and the kind of agent that accepted it. */
  turnOf(userId: string, fireId: string): RecordedTurn | undefined;
  /**
   * Checks a machine before its registration.
   *
   * @returns sentences about unmet requirements
   * @throws ReveilleError `invalid_request` with the missing or invalid member
   */
  check(spec: CommandSpec): Promise<string[]>;
  /** Whether the machine's secret signs events, so that it must have the format that receivers know. */
  signs(spec: CommandSpec): boolean;
  /** The current activity of a user as text; `undefined` without any. */
  running(userId: string): string | undefined;
  /** The number of running turns of all users. A stop of the router leaves them running. */
  readonly turnsUnderWay: number;
  /** Ends the running turns of a user; resolves when their ends are recorded. */
  stop(userId: string, why: string): Promise<void>;
  /** Leaves running turns to the next router; a repeated call returns the same promise. */
  close(): Promise<void>;
};
