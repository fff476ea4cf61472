/**
 * The port of machines of an external system (a container engine, a cloud): the driver observes a machine and requests
 * changes. `remote.ts` builds a provider from it.
 */
import type { ProviderMachine } from './provider.ts';

/**
 * The observed state of a machine, by the action that it needs, with the possible actions. `text` describes it in the
 * driver's words (`the container "neo" is restarting`), without secrets.
 *
 * The actions resolve when the request was accepted. They throw a `TransientProviderError` when a retry after another
 * query may succeed, and any other error when not.
 */
export type RemoteObservation =
  /**
   * It runs; the health of its daemon is a separate question. Without `url` it cannot be reached, for the reason in
   * `text`. `sleep` follows the specification, `end` stops it completely.
   */
  | { state: 'up'; text: string; url: string | undefined; sleep: Action; end: Action }
  /**
   * It is starting. `wait` resolves after a bounded time, with whether it has started; without it the caller pauses.
   */
  | { state: 'rising'; text: string; wait?: (signal: AbortSignal) => Promise<boolean>; end: Action }
  /** It does not run and can be started. */
  | { state: 'down'; text: string; start: Action }
  /** It is changing its state by itself. */
  | { state: 'changing'; text: string }
  /** It does not run and cannot be started. */
  | { state: 'lost'; text: string };

export type Action = (signal: AbortSignal) => Promise<void>;

export type RemoteSpec = { health_path?: string | undefined };

export type RemoteDriver<Spec extends RemoteSpec> = {
  /** How long a ready machine is not checked; see the provider port. */
  readonly trustMs: number;
  /** Pauses between queries grow from the first to the longest. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** How long after an accepted start a query may still show the earlier state. */
  readonly staleMs: number;

  /**
   * @throws the signal's reason; TransientProviderError when it could not be queried now; ReveilleError `unavailable`
   *   when a retry cannot succeed
   */
  observe(target: ProviderMachine<Spec>, signal: AbortSignal): Promise<RemoteObservation>;

  /** The last output of a machine before it ended, for an error message; empty when unavailable. */
  lastOutput?(target: ProviderMachine<Spec>, signal: AbortSignal): Promise<string>;

  /** Closes its connections. */
  close?(): void;
};
