/** The tools of one turn: all of the agent, or the named ones of its alarm. */
import type { Turn } from '../../../turns/turn.ts';
import { ReveilleError } from '../../../wire/errors.ts';
import { CORE_EXECUTE } from './own-functions.ts';
import { type ToolSurface, textAnswer } from './surface.ts';

/** More names would hide the wrong one. */
const NAMES_SHOWN = 40;

type Described = Pick<ToolSurface, 'schemas' | 'describe'>;

const quotedNames = (names: readonly string[]) => names.map((name) => JSON.stringify(name)).join(', ');

/** The function of each name that an alarm can give a tool: its function name, and its URI. */
function functionsOf(surface: Described): ReadonlyMap<string, string> {
  const uris = surface.describe().tools.flatMap(({ name, uri }) => (uri === undefined ? [] : [[uri, name] as const]));
  return new Map([...surface.schemas().map(({ name }) => [name, name] as const), ...uris]);
}

/**
 * Why an alarm cannot limit its turn to some tools: the names that the agent does not have, the names that it has, and
 * the remedy; `undefined` if it has all of them.
 */
export function missingTools(names: readonly string[], surface: Described): string | undefined {
  const known = functionsOf(surface);
  const missing = names.filter((name) => !known.has(name));
  if (missing.length === 0) return undefined;
  const escalated = new Set(surface.describe().escalated.flatMap(({ name, uri }) => [name, uri]));
  const all = surface.schemas().map(({ name }) => name);
  const more = all.length > NAMES_SHOWN ? ` and ${all.length - NAMES_SHOWN} more` : '';
  const has = all.length === 0 ? 'it has none' : `it has ${all.slice(0, NAMES_SHOWN).join(', ')}${more}`;
  const through = missing.some((name) => escalated.has(name))
    ? `; name ${CORE_EXECUTE} for a tool that moves funds or commits the user`
    : '';
  return `tools must be tools of the agent (got ${quotedNames(missing)}; ${has}); omit tools for all of them${through}`;
}

/** Fields of an alarm that reach its turn. */
const OF_THE_TURN = ['wake_message', 'payload', 'label', 'tools'];

/**
 * Why a turn may not set or edit an alarm: a turn with limited tools passes its limit on, because an alarm without it
 * would do what the turn may not.
 *
 * @param args of `alarm_set`
 */
export function widerAlarm(
  args: Readonly<Record<string, unknown>>,
  { terms }: Pick<Turn, 'terms'>,
  surface: Described,
): string | undefined {
  const limit = terms?.tools;
  const isNew = args.alarm_id === undefined || args.alarm_id === null;
  if (limit === undefined || !(isNew || OF_THE_TURN.some((name) => args[name] !== undefined))) return undefined;
  const functions = functionsOf(surface);
  const allowed = new Set(limit.map((name) => functions.get(name)));
  const { tools } = args;
  if (Array.isArray(tools) && tools.every((name) => allowed.has(functions.get(name)))) return undefined;
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
  const missing = missingTools(names, surface);
  if (missing !== undefined) throw new ReveilleError('invalid_request', `the turn was not begun: ${missing}`);
  const functions = functionsOf(surface);
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
