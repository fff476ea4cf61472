/** The process of a command: environment, streams, folder and exit status. Tests pass their own. */
export type CliProcess = {
  readonly env: Record<string, string | undefined>;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  cwd(): string;
  /** Set by a command that was understood and failed. */
  exitCode?: typeof process.exitCode;
};

/** Exit statuses of commands (docs/reference/api.md); 3 means that Reveille is not running. */
export const EXIT = { done: 0, failed: 1, usage: 2, notRunning: 3 } as const;
