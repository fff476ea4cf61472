/** The functions of the compiling model: lookups, submitting the intent, and asking for clarification. */

import type { ToolSchema } from '../../kit/model/model.ts';
import { functionName } from '../../mcp-host/function-names.ts';
import type { RailTool } from '../tools/toolbox.ts';

export const SUBMIT = 'submit_intent';
export const CLARIFY = 'clarify';

/** A description for the model; the executor's own checks decide. */
export const SUBMIT_SCHEMA: ToolSchema = {
  name: SUBMIT,
  description:
    'Hands in the compiled intent. It is checked: what is wrong comes back to you with the reason. Every call of a tool that is not for lookups is shown to a person before it is made.',
  parameters: {
    type: 'object',
    properties: {
      verb: { type: 'string', description: 'What is to be done, in one to five plain words: transfer, rotate key.' },
      objects: {
        type: 'object',
        description: 'What it is done to and with, as the task names it. Only words and values of the task.',
      },
      constraints: {
        type: 'object',
        description: 'What must hold, as the task says it. Only words and values of the task.',
      },
      deadline: {
        type: 'string',
        description: 'Only if the task gives one as an RFC 3339 instant with an offset. Leave it out otherwise.',
      },
      plan: {
        type: 'object',
        description:
          'A node: {"id","kind":"call","tool":"<alias>/<tool>","args":{…}}, {"id","kind":"wait","seconds"} or {"id","kind":"wait","until":"<RFC 3339>"}, or {"id","kind":"sequence"|"parallel","nodes":[…]}. Ids differ from each other. In args, {"$ref":"<node id>#/json/pointer"} in the place of a value stands for that part of the result of an earlier call of the same sequence; that object has no other member.',
        properties: {
          id: { type: 'string' },
          kind: { type: 'string', enum: ['call', 'wait', 'sequence', 'parallel'] },
          tool: { type: 'string' },
          args: { type: 'object' },
          seconds: { type: 'integer' },
          until: { type: 'string' },
          nodes: { type: 'array', items: { type: 'object' } },
        },
        required: ['id', 'kind'],
      },
    },
    required: ['verb', 'plan'],
    additionalProperties: false,
  },
};

export const CLARIFY_SCHEMA: ToolSchema = {
  name: CLARIFY,
  description: 'Asks the author of the task, instead of submitting an intent, when something is missing or ambiguous.',
  parameters: {
    type: 'object',
    properties: {
      question: { type: 'string', description: 'One question in plain words, with the choices there are.' },
    },
    required: ['question'],
    additionalProperties: false,
  },
};

/** Whether a tool only reads, so that it may be used before any approval. */
export function isLookupTool({ surface, sideEffectClass, definition }: RailTool): boolean {
  if (surface !== 'natural') return false;
  if (sideEffectClass !== undefined) return sideEffectClass === 'read';
  return definition.annotations?.readOnlyHint === true;
}

const LONGEST_DESCRIPTION = 1000;

function splitName(name: string): [string, string] {
  const at = name.indexOf('/');
  return [name.slice(0, at), name.slice(at + 1)];
}

/** The tools that only read, by the names of their functions. Tools with the same function name are all excluded. */
export function lookupFunctions(tools: readonly RailTool[]): ReadonlyMap<string, RailTool> {
  const byName = new Map<string, RailTool | undefined>();
  for (const tool of tools.filter(isLookupTool)) {
    const name = functionName(...splitName(tool.name));
    byName.set(name, byName.has(name) || name === SUBMIT || name === CLARIFY ? undefined : tool);
  }
  return new Map([...byName].flatMap(([name, tool]) => (tool === undefined ? [] : [[name, tool]])));
}

export function schemaOf(name: string, { name: tool, definition }: RailTool): ToolSchema {
  const description = (definition.description ?? '').slice(0, LONGEST_DESCRIPTION).toWellFormed();
  return {
    name,
    description: `Looks something up now, with the tool ${tool}, which says of itself: ${JSON.stringify(description)}`,
    parameters: { ...definition.inputSchema },
  };
}
