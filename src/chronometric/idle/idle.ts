/** The interface of the operating system's idle time: one adapter per desktop, tried in order. Samples are never stored. */

export type IdleReading =
  /** Milliseconds since the last key or pointer movement, and the name of the probe. */
  | { readonly idleMs: number; readonly source: string }
  /** No idle time is available, and why; not an error. Never contains a sample. */
  | { readonly unavailable: string };

export type IdleProbe = {
  /** `gnome-mutter`, `x11`, `kde`, `logind`, `macos`, `windows` */
  readonly name: string;
  /** A rejection means unavailable as well. Stops its programs when the signal aborts. */
  read(signal: AbortSignal): Promise<IdleReading>;
};

/** The services for adapters, replaceable in tests. */
export type IdleHost = {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The user id, where the platform has one. */
  readonly uid?: number | undefined;
  /**
   * Runs a program by its absolute path, without a shell. Rejects with `unavailable` when it fails, is missing, writes too
   * much, or the signal aborts. Then the program and its children have ended.
   *
   * @returns its whole stdout
   */
  run(path: string, args: readonly string[], signal: AbortSignal): Promise<string>;
  exists(path: string): boolean;
};

/** Time limit of a probe. */
export const PROBE_MS = 2000;
