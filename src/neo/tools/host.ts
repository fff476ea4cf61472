/** What the surface needs of the MCP host that runs the servers. */
import type { ToolSurface as Declared, SideEffectClass } from '../../wire/manifest.ts';

/** A tool that a running server has and the manifest allows. */
export type HostTool = {
  readonly alias: string;
  /** Its own name on the server. */
  readonly tool: string;
  /** `alias__tool`, made fit for model endpoints; no two tools share one. */
  readonly functionName: string;
  /** `matrix://tool/mcp/<alias>/<tool>@<version>` */
  readonly uri: string;
  readonly sideEffectClass?: SideEffectClass | undefined;
  readonly surface?: Declared | undefined;
  /** Whether its definition is one that was looked at and agreed on. */
  readonly isPinned?: boolean | undefined;
  /** As the server gives it. */
  readonly definition: {
    readonly description?: string | undefined;
    readonly inputSchema: object;
    /** Hints that nobody vouches for. */
    readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  };
};

/**
 * A result in the terms of MCP; the host has cut it to a length that a model can take in, and says so in its text.
 * Structured content is among its blocks.
 */
export type HostAnswer = {
  readonly content: readonly HostContent[];
  readonly isError?: boolean | undefined;
};

/**
 * A piece of a result; which members there are follows from `type`, and servers may send types that nobody knows yet.
 */
export type HostContent = {
  readonly type: string;
  readonly text?: unknown;
  readonly data?: unknown;
  readonly mimeType?: unknown;
  readonly uri?: unknown;
  readonly name?: unknown;
  readonly resource?: unknown;
};

export type ToolHost = {
  /** What can be called now; another array as soon as that changes. */
  tools(): readonly HostTool[];
  /** Rejects when no answer came; the error's `mayHaveRun` says whether the call may have been carried out. */
  call(
    alias: string,
    tool: string,
    args: Record<string, unknown>,
    options: { signal: AbortSignal; conversation?: string | undefined },
  ): Promise<HostAnswer>;
  /** Sentences about servers that do not run and tools that are held back. */
  warnings(): readonly string[];
  /** Servers that need something that is not there. */
  off?(): readonly { alias: string; why: string }[];
  /** The limits of its servers, in words. */
  limits?(): string;
  close(): Promise<void>;
};
