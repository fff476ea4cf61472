/**
 * The process as a command sees it: its environment, its streams, its folder, and the status that it will end with. The
 * program hands over its own; a test hands over one that it looks at afterwards.
 */
export type CliProcess = {
  readonly env: Record<string, string | undefined>;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  cwd(): string;
  /** Set by a command that has run but not succeeded. */
  exitCode?: typeof process.exitCode;
};
