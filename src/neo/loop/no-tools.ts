/** A turn without hands: the surface that it has then, and why it may have to wait for another Neo. */
import { type ToolSurface, textAnswer } from '../tools/surface.ts';

export const noTools: ToolSurface = {
  schemas: () => [],
  dispatch: (name) => Promise.resolve(textAnswer(`unknown tool ${JSON.stringify(name)} — it is not available`, true)),
  repeatable: () => false,
  describe: () => ({ tools: [], escalate: [], escalated: [], warnings: [] }),
  warnings: () => [],
  close: () => Promise.resolve(),
};

/** Neo stops before its hands were ready; the next Neo runs the turn. */
export class StoppedWhileStarting extends Error {}
