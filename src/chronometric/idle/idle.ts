/**
 * The port to the operating system's idle time: one adapter for each desktop, tried in order. Samples are never written
 * down.
 */

export type IdleReading =
  /** Milliseconds since the last key or pointer movement, and the probe that said so. */
  | { readonly idleMs: number; readonly source: string }
  /** Not a failure: there is none here, and why. Never carries a sample. */
  | { readonly unavailable: string };

export type IdleProbe = {
  /** `gnome-mutter`, `x11`, `kde`, `logind`, `macos`, `windows` */
  readonly name: string;
  /** May reject, which is one more way to be unavailable. Stops what it started when the signal aborts. */
  read(signal: AbortSignal): Promise<IdleReading>;
};

/** What an adapter may look at and use; handed in, so that tests can. */
export type IdleHost = {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user, where the platform numbers them. */
  readonly uid?: number | undefined;
  /**
   * Runs a program by its absolute path, without a shell; rejects with `unavailable` when it fails, is missing, writes
   * too much, or the signal aborts. Then it is gone, and its children with it.
   *
   * @returns what it wrote to stdout, all of it
   */
  run(path: string, args: readonly string[], signal: AbortSignal): Promise<string>;
  exists(path: string): boolean;
};

/** How long one probe may take. */
export const PROBE_MS = 2000;
