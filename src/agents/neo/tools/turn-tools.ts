/** The tools of one turn: all of the agent, or the named ones of its alarm. */
import type { Turn } from '../../../turns/turn.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { isObject } from '../../../wire/json.ts';
import { functionsOf, missingTools, type SurfaceView } from '../../../wire/tool-surface.ts';
import { type ToolSurface, textAnswer } from './surface.ts';

const quotedNames = (names: readonly string[]) => names.map((name) => JSON.stringify(name)).join(', ');

/** Fields of an alarm that reach its turn. */
const OF_THE_TURN = ['wake_message', 'payload', 'label', 'tools', 'run'];

/** How `alarm_set` names a turn without tools. */
export const isNoTools = (tools: unknown): boolean =>
  Array.isArray(tools) && tools.length === 1 && String(tools[0]).toLowerCase() === 'none';

/** A value as the server reads it: a text is JSON if it can be. */
function readAsJson(value: unknown): unknown {
  try {
    return typeof value === 'string' ? JSON.parse(value) : value;
  } catch {
    return value;
  }
}

/** What a call of `alarm_set` gives, with the fields of `more`. The server refuses a field that is in both. */
export function givenToAlarm({ more, ...args }: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const further = readAsJson(more);
  return isObject(further) ? { ...args, ...further } : args;
}

/**
 * Why a turn may not set or edit an alarm: a turn with limited tools passes its limit on, because an alarm without it
 * would do what the turn may not.
 *
 * @param args of `alarm_set`, as {@link givenToAlarm} returns them
 */
export function widerAlarm(
  args: Readonly<Record<string, unknown>>,
  { terms }: Pick<Turn, 'terms'>,
  view: SurfaceView,
): string | undefined {
  const limit = terms?.tools;
  const { alarm_id: id, clear } = args;
  const cleared = JSON.stringify(readAsJson(clear) ?? []);
  const isNew = id === undefined || id === null || id === '';
  const isOfTheTurn = OF_THE_TURN.some((name) => args[name] !== undefined || cleared.includes(name));
  if (limit === undefined || !(isNew || isOfTheTurn)) return undefined;
  const functions = functionsOf(view);
  const allowed = new Set(limit.map((name) => functions.get(name)));
  const { tools } = args;
  const named = isNoTools(tools) ? [] : tools;
  if (Array.isArray(named) && named.every((name) => allowed.has(functions.get(name)))) return undefined;
  return `the alarm of this turn allows only ${quotedNames(limit)}; name tools, and no others than these`;
}

/**
 * The surface of a turn. Of a turn whose alarm names tools it has these and no others: a call of another one is refused,
 * whatever the model was shown.
 *
 * @throws ReveilleError `invalid_request` when the agent does not have one of them
 */
export function toolsOfTurn({ terms }: Pick<Turn, 'terms'>, surface: ToolSurface): ToolSurface {
  const names = terms?.tools;
  if (names === undefined) return surface;
  const view = surface.describe();
  const missing = missingTools(names, view);
  if (missing !== undefined) throw new ReveilleError('invalid_request', `the turn was not begun: ${missing}`);
  const functions = functionsOf(view);
  const allowed = new Set(names.map((name) => functions.get(name)));
  const list = names.length === 0 ? 'no tools' : `only ${quotedNames(names)}`;
  return {
    guide: surface.guide,
    schemas: () => surface.schemas().filter(({ name }) => allowed.has(name)),
    dispatch(name, args, context) {
      if (allowed.has(name)) return surface.dispatch(name, args, context);
      const quoted = JSON.stringify(name.slice(0, 200));
      return Promise.resolve(
        textAnswer(`the tool ${quoted} was not called: the alarm of this turn allows ${list}`, true),
      );
    },
    repeatable: (name) => allowed.has(name) && surface.repeatable(name),
    describe: () => surface.describe(),
    warnings: () => surface.warnings(),
    close: () => surface.close(),
  };
}
