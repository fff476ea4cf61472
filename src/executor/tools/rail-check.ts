/** Checks a manifest's declarations for the executor before the first call. Pure. */
import type { DeclaredTool } from '../../mcp-host/manifest.ts';
import type { ToolDefinition } from '../../mcp-host/tool-definition.ts';
import { isObject } from '../../wire/json.ts';
import type { CompanionCall, Rail, ToolSurface } from '../../wire/manifest.ts';
import { placeholdersOf } from '../intent/companion.ts';
import { partsOf } from '../intent/pointer.ts';

const COMPANIONS = ['dry_run', 'status', 'read_back'] as const;
type Role = (typeof COMPANIONS)[number];

/** The placeholder sources that are known when the companion is called. A status call runs without a result. */
const SOURCES: Readonly<Record<Role, readonly string[]>> = {
  dry_run: ['args', 'key'],
  status: ['args', 'key'],
  read_back: ['args', 'result', 'key'],
};

/** Another tool of the same server. */
export type Neighbour = Pick<DeclaredTool, 'sideEffectClass'> & { readonly surface: ToolSurface };

function companionProblems(
  role: Role,
  companion: CompanionCall,
  rail: Rail,
  neighbour: Neighbour | undefined,
): string[] {
  const quoted = JSON.stringify(companion.tool);
  if (neighbour === undefined)
    return [`rail.${role} names ${quoted}, which the manifest does not declare on this server`];
  const problems: string[] = [];
  if (neighbour.surface === 'escalate') {
    problems.push(
      `rail.${role} names ${quoted}, which needs approval itself; declare it "natural" if it needs none, or remove it`,
    );
  }
  const { sideEffectClass } = neighbour;
  // A status call may change the state of the queried call; the other companions only read.
  if (role !== 'status' && sideEffectClass !== undefined && sideEffectClass !== 'read') {
    problems.push(`rail.${role} names ${quoted}, which is declared ${sideEffectClass}; it must be a read`);
  }
  for (const { source, pointer } of placeholdersOf(companion.args)) {
    const written = `$${source}${pointer}`;
    if (!SOURCES[role].includes(source)) problems.push(`rail.${role} uses ${written}, which is not known at that time`);
    else if (source === 'key' && pointer !== '') problems.push(`rail.${role} uses ${written}; write $key`);
    else if (source === 'key' && rail.idempotency_key === undefined) {
      problems.push(`rail.${role} uses $key, but rail.idempotency_key is not set`);
    }
  }
  return problems;
}

/**
 * Problems of a rail that the manifest alone reveals.
 *
 * @param neighbours the tools that the manifest declares on the same server
 * @param own the tool itself
 */
export function railProblems(
  rail: Rail,
  neighbours: ReadonlyMap<string, Neighbour>,
  own: Pick<Neighbour, 'surface'>,
): string[] {
  const problems = COMPANIONS.flatMap((role) => {
    const companion = rail[role];
    return companion === undefined ? [] : companionProblems(role, companion, rail, neighbours.get(companion.tool));
  });
  const both = rail.status?.done.filter((value) => rail.status?.not_done.includes(value)) ?? [];
  if (both.length > 0) problems.push(`rail.status lists ${both.join(', ')} under done and under not_done`);
  if (rail.repeatable && own.surface === 'escalate')
    problems.push('rail.repeatable is set for a tool that needs approval, whose calls are never repeated');
  if (rail.currency !== undefined && rail.amount === undefined)
    problems.push('rail.currency is set without rail.amount');
  return problems;
}

type Shape = {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly required: readonly string[];
  readonly isClosed: boolean;
};

/** The top-level members that a schema names; other keywords are ignored. */
function shapeOf({ inputSchema }: ToolDefinition): Shape {
  const { properties, required, additionalProperties } = inputSchema;
  return {
    properties: isObject(properties) ? properties : {},
    required: Array.isArray(required) ? required.filter((name) => typeof name === 'string') : [],
    isClosed: additionalProperties === false,
  };
}

/** A tool of the same server with its present definition. */
export type LiveNeighbour = { readonly definition: ToolDefinition; readonly surface: ToolSurface };

/** The first member name of a pointer. */
const firstOf = (pointer: string) => partsOf(pointer)[0]!;

/** Mismatches between a rail and the tool definitions of the server. */
export function railMismatches(
  rail: Rail,
  own: ToolDefinition,
  neighbours: ReadonlyMap<string, LiveNeighbour>,
): string[] {
  const { properties, isClosed } = shapeOf(own);
  const lacks = (name: string) => !Object.hasOwn(properties, name) && (isClosed || Object.keys(properties).length > 0);
  const problems: string[] = [];
  const { idempotency_key: key } = rail;
  if (key !== undefined && lacks(key))
    problems.push(`rail.idempotency_key names ${JSON.stringify(key)}, which is not an argument of the tool`);
  for (const member of ['amount', 'currency', 'recipient'] as const) {
    const pointer = rail[member];
    if (pointer !== undefined && lacks(firstOf(pointer)))
      problems.push(`rail.${member} points to ${pointer}, which is not an argument of the tool`);
  }
  for (const { at } of rail.effect ?? [])
    if (lacks(firstOf(at))) problems.push(`rail.effect points to ${at}, which is not an argument of the tool`);
  for (const role of COMPANIONS) {
    const companion = rail[role];
    const neighbour = companion && neighbours.get(companion.tool);
    if (!neighbour) continue;
    const shape = shapeOf(neighbour.definition);
    if (neighbour.surface === 'escalate')
      problems.push(`rail.${role} names ${companion.tool}, which needs approval itself according to its server`);
    const given = Object.keys(companion.args);
    const surplus = given.filter((name) => shape.isClosed && !Object.hasOwn(shape.properties, name));
    const absent = shape.required.filter((name) => !given.includes(name));
    if (surplus.length > 0)
      problems.push(`rail.${role} gives ${surplus.join(', ')}, which ${companion.tool} does not take`);
    if (absent.length > 0)
      problems.push(`rail.${role} does not give ${absent.join(', ')}, which ${companion.tool} needs`);
    for (const { source, pointer } of placeholdersOf(companion.args)) {
      if (source === 'args' && pointer !== '' && lacks(firstOf(pointer)))
        problems.push(`rail.${role} uses $args${pointer}, which is not an argument of the tool`);
    }
  }
  return problems;
}
