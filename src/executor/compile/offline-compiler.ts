/** The compiler for when no model is configured: it says what still works. */
import type { Compiler } from './compiler.ts';

const REASON =
  'this executor has no model (neither EXECUTOR_MODEL and EXECUTOR_MODEL_BASE_URL are set nor, under "reveille up", NEO_MODEL and NEO_MODEL_BASE_URL), so it cannot make a plan from a task in words; submit an intent with its plan as JSON instead, which needs no model';

export const offlineCompiler: Compiler = {
  async compile({ signal }) {
    signal.throwIfAborted();
    return { outcome: 'refused', code: 'unavailable', reason: REASON };
  },
};
