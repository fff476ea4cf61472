/** Which calls may be made a second time, where nobody knows what came of the first. Pure. */
import type { NodeRecord } from '../receipt/chain-state.ts';
import type { RailTool } from '../tools/toolbox.ts';

type Tool = Pick<RailTool, 'surface' | 'sideEffectClass' | 'definition'> | undefined;

/** Whether a call can be made twice without harm. */
export function isRead(tool: Tool): boolean {
  if (tool?.surface !== 'natural') return false;
  const { sideEffectClass, definition } = tool;
  return sideEffectClass === 'read' || (sideEffectClass === undefined && definition.annotations?.readOnlyHint === true);
}

/**
 * Whether a call that was begun may be made once more. What was begun as one that needs consent stays one, whatever its tool is said to be
 * by now; and what has come to need consent since is not begun anew either.
 */
export function mayRepeat({ started }: NodeRecord, tool: Tool): boolean {
  return started?.surface !== 'escalate' && isRead(tool);
}
