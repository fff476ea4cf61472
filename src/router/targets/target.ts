/**
 * The port of an agent that accepts a wake within the wake's own time, recognizes repetitions by the fire id, and
 * reports no later result. Its comments are its contract. Agents that execute turns implement `turns/agent.ts`.
 */
import type { NewTurn } from '../../turns/turn.ts';
import type { Wake } from '../../wire/wake.ts';
import type { CommandMachine } from '../machines/machine.ts';
import type { Preset } from './preset.ts';

/** The outcome of delivering a wake. */
export type DeliveryOutcome =
  | { result: 'accepted'; handle?: string | undefined }
  /** No turn began; it may be tried again. */
  | { result: 'not_started'; why: string; retryAfterSeconds?: number | undefined }
  /** The target refuses connections; it may be tried again. */
  | { result: 'not_there'; why: string }
  /** No turn began, and the next attempt fails as well unless a person changes something. */
  | { result: 'refused'; why: string }
  /** It may have been accepted; the fire id identifies another attempt. */
  | { result: 'unknown'; why: string }
  /** The receiver is permanently gone. */
  | { result: 'gone'; why: string };

export type DirectTarget = {
  /** @param signal ends the attempt; a wake that may have been sent by then is `unknown`. Never rejects. */
  deliver(wake: Wake, turn: NewTurn, prompt: string, signal: AbortSignal): Promise<DeliveryOutcome>;
};

/** Creates the agent of a machine. */
export type AgentMaker<P extends Preset, T> = (preset: P, machine: CommandMachine) => T;
