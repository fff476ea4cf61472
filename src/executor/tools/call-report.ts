/** What the executor makes of what the MCP host says became of a call. Pure. In doubt a call may have been carried out. */
import type { ToolResult } from '../../mcp-host/output-cap.ts';
import { ToolCallFailure } from '../../mcp-host/tool-call-failure.ts';
import { parseForeignJson } from '../../wire/json.ts';
import type { CallReport } from './toolbox.ts';

function textOf({ content }: ToolResult): string {
  const texts = content.flatMap((block) => (block.type === 'text' ? [block.text] : []));
  return texts.join('\n\n').toWellFormed();
}

/** Servers of older revisions have no structured content and write the same JSON as their only text. */
function structuredOf({ content, structuredContent }: ToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent;
  const [only, ...more] = content;
  if (only?.type !== 'text' || more.length > 0 || !only.text.trimStart().startsWith('{')) return undefined;
  try {
    return parseForeignJson(only.text);
  } catch {
    return undefined;
  }
}

/** @param result of a call that was made `once` */
export function reportOf(result: ToolResult): CallReport {
  const text = textOf(result);
  const { withoutResult, raw, isError } = result;
  if (withoutResult === 'unsent') return { status: 'not_run', message: text };
  if (withoutResult === 'unclear') return { status: 'unknown', message: text };
  if (raw === undefined) return { status: 'unknown', message: 'an answer came whose bytes could not be told apart' };
  const structured = withoutResult === undefined ? structuredOf(result) : undefined;
  return { status: 'answered', isError, text, structured, rawSha256: raw.sha256, rawBytes: raw.bytes };
}

/** @param thrown by the call */
export function reportOfFailure(thrown: unknown): CallReport {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const isCertain = thrown instanceof ToolCallFailure && !thrown.mayHaveRun;
  return { status: isCertain ? 'not_run' : 'unknown', message };
}
