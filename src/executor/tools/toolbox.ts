/** The port to the tools that the executor holds: what there is, and one call at a time, made once. */
import type { ToolDefinition } from '../../mcp-host/tool-definition.ts';
import type { Rail, SideEffectClass, ToolSurface } from '../../wire/manifest.ts';

/** A tool that can be called now. */
export type RailTool = {
  /** `<alias>/<tool>`, as plans name it. */
  readonly name: string;
  readonly uri: string;
  readonly definition: ToolDefinition;
  /** SHA-256 of its canonical definition. */
  readonly definitionSha256: string;
  /** `escalate`: a person approves each call, unless a policy says otherwise. */
  readonly surface: ToolSurface;
  readonly sideEffectClass: SideEffectClass | undefined;
  readonly rail: Rail | undefined;
};

/** What became of a call. */
export type CallReport =
  | {
      readonly status: 'answered';
      /** The tool ran and says that it failed. */
      readonly isError: boolean;
      /** All its text, cut to what a model can take in. */
      readonly text: string;
      readonly structured: unknown;
      /**
       * The JSON text of its result as the server wrote it, with all digits: of the structured content, or its only
       * text where that is an object or a list.
       */
      readonly source?: string | undefined;
      /** Of the message that carried the answer, byte for byte. */
      readonly rawSha256: string;
      readonly rawBytes: number;
    }
  /** It is certain that the server never began. */
  | { readonly status: 'not_run'; readonly message: string }
  /** It may have been carried out. */
  | { readonly status: 'unknown'; readonly message: string };

export type Toolbox = {
  /** SHA-256 of the manifest's text; part of every receipt. */
  readonly manifestSha256: string;
  /**
   * Resolves when the servers have been started, or when it is certain that they cannot be for now; at once when
   * absent. Until then there are no tools: whoever checks a plan or goes on with one waits for it first.
   */
  ready?(): Promise<void>;
  tools(): readonly RailTool[];
  find(name: string): RailTool | undefined;
  /** Why a tool is not there, and which ones are; a sentence for people. */
  absence(name: string): string;
  /**
   * Calls a tool once. Never throws: what became of it is the answer. A tool whose definition is not `definitionSha256`
   * any more is not called.
   *
   * @param options `user`: whose intent it is made for; servers that act for several users are told, apart from `args`
   */
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: { signal: AbortSignal; definitionSha256: string; user: string },
  ): Promise<CallReport>;
  warnings(): readonly string[];
  close(): Promise<void>;
};
