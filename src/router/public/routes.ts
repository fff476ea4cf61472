/**
 * The routes of users at the public listener (docs/reference/api.md, "The public listener"): the daemon's own routes with a user's credential.
 * The server, the OpenAPI document and the check of targets read this table.
 */
import { PERSON_ROUTES } from '../../agents/neo/http/routes.ts';
import { consoleCodeRequestSchema, consoleCodeSchema, personChatSchema } from '../../wire/person.ts';
import { PROBES, type Route, type Routes } from '../../wire/route.ts';
import { rootOf } from './target.ts';

type ProxiedRoutes = {
  readonly [Name in keyof typeof PERSON_ROUTES]: Omit<(typeof PERSON_ROUTES)[Name], 'credential'> & {
    readonly credential: 'person';
  };
};

const proxied = Object.fromEntries(
  Object.entries(PERSON_ROUTES).map(([name, route]) => [name, { ...route, credential: 'person' }]),
) as ProxiedRoutes;

/** Proxied to the user's own machine. */
export const PROXIED_ROUTES = {
  ...proxied,
  chat: { ...proxied.chat, summary: 'send a message; 202 once the turn is durable', body: personChatSchema },
} as const satisfies Routes;

/** Answered by the router itself, if it has a console. */
export const CONSOLE_CODE = {
  method: 'post',
  path: '/console/codes',
  summary: 'a code that opens the console once, within ten minutes, at /o/CODE',
  credential: 'person',
  body: consoleCodeRequestSchema,
  data: consoleCodeSchema,
} as const satisfies Route;

export const PUBLIC_ROUTES = {
  ...PROXIED_ROUTES,
  consoleCode: CONSOLE_CODE,
  root: { ...PROBES.root, summary: 'the console; name and version without one' },
  health: PROBES.health,
  ready: PROBES.ready,
} as const satisfies Routes;

/**
 * First path segments that pages cannot have: the routes above, and routes of the internal listener that this one never
 * has.
 */
const TAKEN: ReadonlySet<string> = new Set([
  ...Object.values(PUBLIC_ROUTES).flatMap(({ path }) => rootOf(path) || []),
  ...['internal', 'admin', 'metrics', 'v1'],
]);

/** Whether the handler of pages answers a request target. */
export const isForPages = (target: string): boolean => !TAKEN.has(rootOf(target).toLowerCase());
