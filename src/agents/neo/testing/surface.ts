/** A tool surface of functions in this process. */
import { type ToolAnswer, type ToolCallContext, type ToolSurface, textAnswer } from '../tools/surface.ts';

export type TestTool = {
  /** The implementation of a call. */
  readonly run: (
    args: Record<string, unknown>,
    context: ToolCallContext,
  ) => Promise<ToolAnswer | string> | ToolAnswer | string;
  /** Whether a repetition has no second effect. */
  readonly repeatable?: boolean;
};

/** Makes a surface, and records the calls that reached it. */
export function surfaceOf(tools: Readonly<Record<string, TestTool>>) {
  const calls: { name: string; args: unknown; callId: string }[] = [];
  const surface: ToolSurface = {
    schemas: () =>
      Object.keys(tools)
        .sort()
        .map((name) => ({ name, description: `does ${name}`, parameters: { type: 'object' } })),
    async dispatch(name, args, context) {
      const tool = tools[name];
      if (!tool) return textAnswer(`unknown tool "${name}" — it is not available`, true);
      calls.push({ name, args, callId: context.callId });
      const answer = await tool.run(args as Record<string, unknown>, context);
      return typeof answer === 'string' ? textAnswer(answer) : answer;
    },
    repeatable: (name) => tools[name]?.repeatable === true,
    describe: () => ({ tools: [], escalate: [], escalated: [], warnings: [] }),
    warnings: () => [],
    close: () => Promise.resolve(),
  };
  return Object.assign(surface, { calls });
}
