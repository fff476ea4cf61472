/** The port to the executor's tools: their list, and calls that are made once. */
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
  /** `escalate`: each call needs an approval, unless a policy allows it. */
  readonly surface: ToolSurface;
  readonly sideEffectClass: SideEffectClass | undefined;
  readonly rail: Rail | undefined;
};

/** Whether a call changes nothing, so that it needs no approval and may be made at any time. */
export function isRead(tool: Pick<RailTool, 'surface' | 'sideEffectClass' | 'definition'> | undefined): boolean {
  if (tool?.surface !== 'natural') return false;
  const { sideEffectClass, definition } = tool;
  return sideEffectClass === undefined ? definition.annotations?.readOnlyHint === true : sideEffectClass === 'read';
}

/** The alias and the tool of a name; without a slash the alias is empty. */
export function splitName(name: string): [alias: string, tool: string] {
  const at = name.indexOf('/');
  return [name.slice(0, Math.max(at, 0)), name.slice(at + 1)];
}

export type CallReport =
  | {
      readonly status: 'answered';
      /** The tool ran and reports a failure. */
      readonly isError: boolean;
      /** All its text, cut to a length that a model can process. */
      readonly text: string;
      readonly structured: unknown;
      /**
       * The JSON text of its result as the server wrote it, with all digits: the structured content, or the only text
       * if that is an object or a list.
       */
      readonly source?: string | undefined;
      /** SHA-256 and size of the message with the answer, byte for byte. */
      readonly rawSha256: string;
      readonly rawBytes: number;
    }
  /** The server certainly never started it. */
  | { readonly status: 'not_run'; readonly message: string }
  /** It may have been carried out. */
  | { readonly status: 'unknown'; readonly message: string };

export type Toolbox = {
  /** SHA-256 of the manifest's text; part of every receipt. */
  readonly manifestSha256: string;
  /**
   * Resolves when the servers have started or have failed to start; absent when they are started already. Until then
   * there are no tools, so wait for it before a plan is checked or executed.
   */
  ready?(): Promise<void>;
  tools(): readonly RailTool[];
  find(name: string): RailTool | undefined;
  /** Why a tool is not available, and which tools are; a sentence for people. */
  absence(name: string): string;
  /**
   * Calls a tool once. Never throws; the report has the outcome. A tool whose definition no longer has the digest
   * `definitionSha256` is not called.
   *
   * @param options `user`: the user of the intent; servers that act for several users receive it besides `args`
   */
  call(
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: { signal: AbortSignal; definitionSha256: string; user: string },
  ): Promise<CallReport>;
  warnings(): readonly string[];
  close(): Promise<void>;
};
