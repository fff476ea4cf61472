/** The interface of the MCP host for the surface. */
import type { ToolSurface as Declared, SideEffectClass } from '../../../wire/manifest.ts';

/** A tool of a running server that the manifest allows. */
export type HostTool = {
  readonly alias: string;
  /** Its own name on the server. */
  readonly tool: string;
  /** `alias__tool`, adapted for model endpoints; no two tools share one. */
  readonly functionName: string;
  /** `matrix://tool/mcp/<alias>/<tool>@<version>` */
  readonly uri: string;
  readonly sideEffectClass?: SideEffectClass | undefined;
  readonly surface?: Declared | undefined;
  /** Whether its definition is pinned. */
  readonly isPinned?: boolean | undefined;
  /** As the server sends it. */
  readonly definition: {
    readonly description?: string | undefined;
    readonly inputSchema: object;
    /** Untrusted hints. */
    readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  };
};

/**
 * A result in the form of MCP; the host has capped it to a length that a model can read, and its text says so.
 * Structured content is among its blocks.
 */
export type HostAnswer = {
  readonly content: readonly HostContent[];
  readonly isError?: boolean | undefined;
};

/** A piece of a result; its members follow from `type`, and servers may send unknown types. */
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
  /** The tools that can be called now; another array as soon as that changes. */
  tools(): readonly HostTool[];
  /** Rejects when no answer came; the error's `mayHaveRun` says whether the call may have been executed. */
  call(
    alias: string,
    tool: string,
    args: Record<string, unknown>,
    options: { signal: AbortSignal; conversation?: string | undefined },
  ): Promise<HostAnswer>;
  /** Sentences about servers that do not run and tools that are withheld. */
  warnings(): readonly string[];
  /** Servers with a missing requirement. */
  off?(): readonly { alias: string; why: string }[];
  /** The limits of its servers as text. */
  limits?(): string;
  close(): Promise<void>;
};
