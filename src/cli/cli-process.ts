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
