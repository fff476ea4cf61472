/**
 * The port of machines that somebody else runs (a container engine, a cloud): what a driver tells of one, and what can
 * be asked for. `remote.ts` makes a provider of it.
 */

/**
 * What a look at a machine showed, in terms of what to do about it, with what can be done now. `words` say it as the
 * driver would (`the container "neo" is restarting`), without secrets.
 *
 * The actions resolve when the request was accepted. They throw a `TransientProviderError` where the same may be tried
 * again after another look, any other error where it is of no use.
 */
export type Sight =
  /**
   * It runs; whether its daemon is healthy is another question. Without `url` it cannot be reached, for the reason in
   * `words`. `sleep` as the specification wants it, `end` for good.
   */
  | { state: 'up'; words: string; url: string | undefined; sleep: Action; end: Action }
  /**
   * It is on its way up. `wait` resolves after a bounded time, with whether it has come up; without it the caller
   * pauses.
   */
  | { state: 'rising'; words: string; wait?: (signal: AbortSignal) => Promise<boolean>; end: Action }
  /** It does not run and can be started. */
  | { state: 'down'; words: string; rouse: Action }
  /** It changes into something else by itself. */
  | { state: 'changing'; words: string }
  /** It does not run and cannot be started. */
  | { state: 'lost'; words: string };

export type Action = (signal: AbortSignal) => Promise<void>;

/** A machine to be driven. `token` is the daemon's and must not be repeated; empty where it is not known. */
export type Target<Spec> = { userId: string; spec: Spec; token: string };

export type RemoteSpec = { health_path?: string | undefined };

export type RemoteDriver<Spec extends RemoteSpec> = {
  /** How long a ready machine is not looked at; see the provider port. */
  readonly trustMs: number;
  /** Pauses between looks grow from the first to the longest. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** For how long after an accepted start a look may still show the machine as it was before. */
  readonly staleMs: number;

  /**
   * Looks at a machine.
   *
   * @throws the signal's reason; TransientProviderError when it could not be looked at now; ReveilleError `unavailable`
   *   when that is of no use
   */
  look(target: Target<Spec>, signal: AbortSignal): Promise<Sight>;

  /** What a machine said last before it went down, for an error message; nothing where that cannot be had. */
  lastWords?(target: Target<Spec>, signal: AbortSignal): Promise<string>;

  /** Gives up its connections. */
  close?(): void;
};
