/** The tools that models see in `tools/list`: three of alarms, five of time. */

import { toolDefinitions } from '../../../src/chronometric/tools/definitions.ts';
import { readChronosTools, TOOLS_FILE } from '../../../src/chronos-mcp/tools.ts';

export type Schema = {
  readonly type?: unknown;
  readonly description?: unknown;
  readonly enum?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
};

export type Tool = {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Schema;
  readonly outputSchema: Schema;
};

export const alarmTools = (): readonly Tool[] => [...readChronosTools(TOOLS_FILE).values()] as unknown as Tool[];
export const timeTools = (): readonly Tool[] => toolDefinitions();
