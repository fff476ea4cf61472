/**
 * The routes of users at the public listener (docs/reference/api.md, "The public listener"): the daemon's own routes
 * with a user's credential, and the match of request targets with them. The server, the OpenAPI document and the check
 * of targets read this table.
 */
import { PERSON_ROUTES } from '../../agents/neo/http/routes.ts';
import { FEED_ROUTES } from '../../wire/calendar-feed.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { HOOK_ROUTES } from '../../wire/hook.ts';
import { idSchema } from '../../wire/identifier.ts';
import { consoleCodeRequestSchema, consoleCodeSchema, personChatSchema } from '../../wire/person.ts';
import { PROBES, type Route, type Routes } from '../../wire/route.ts';

// Matches a request target with the daemon's routes. An ambiguous target is rejected and never corrected: encoded
// slashes and dots, dot segments, double encoding, absolute form. The target for the daemon is rebuilt from the table
// of routes.

/** Origin form (RFC 9112 §3.2.1) in the characters of RFC 3986, without an empty segment. */
const ORIGIN_FORM = /^(?:\/|(?:\/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+\/?)(?:\?[\x21-\x7e]*)?$/;
/**
 * An incomplete escape, and escapes of characters that change the meaning when decoded again: `.`, `/`, `\`, `%`,
 * controls.
 */
const AMBIGUOUS = /%(?![0-9a-f]{2})|%(?:2e|2f|5c|25|[01][0-9a-f]|7f)/i;
const DOT_SEGMENT = /\/\.{1,2}(?=\/|$)/;

/** Valid values of a route's names in braces: ids of conversations, turns, intents and steps. */
const NAME = idSchema(128);

/** @throws ReveilleError `invalid_request` for an ambiguous target */
export function checkTarget(target: string): void {
  const [path = ''] = target.split('?', 1);
  if (ORIGIN_FORM.test(target) && !AMBIGUOUS.test(path) && !DOT_SEGMENT.test(path)) return;
  throw new ReveilleError(
    'invalid_request',
    'the request target must be a plain path: no encoded slash, dot, percent or control, no empty or dot segment, no address before it',
  );
}

/** A route, and the path below the daemon for the request. */
export type RouteMatch = { readonly route: Route; readonly path: `/${string}`; readonly query: string };

/** @param target accepted by {@link checkTarget} */
export function matchRoute(routes: Routes, method: string, target: string): RouteMatch | undefined {
  const queryStart = target.indexOf('?');
  const [path, query] = queryStart < 0 ? [target, ''] : [target.slice(0, queryStart), target.slice(queryStart + 1)];
  const segments = path.slice(1).split('/');
  for (const route of Object.values(routes)) {
    if (route.method.toUpperCase() !== method) continue;
    const wanted = route.path.slice(1).split('/');
    if (wanted.length !== segments.length) continue;
    const taken = wanted.map((segment, at) => segmentOf(segment, segments[at]!));
    if (!taken.includes(undefined)) return { route, path: `/${taken.join('/')}`, query };
  }
  return undefined;
}

/** The segment for the daemon; `undefined` when it does not match the route. */
function segmentOf(wanted: string, segments: string): string | undefined {
  if (!wanted.startsWith('{')) return wanted === segments ? wanted : undefined;
  // Clients that encode variable parts write a colon this way; no other allowed character has two forms.
  const name = segments.replace(/%3a/gi, ':');
  return NAME.safeParse(name).success ? encodeURIComponent(name) : undefined;
}

/** The first segment of a path. It assigns the request to the daemon, the router or the pages. */
function rootOf(target: string): string {
  return /^\/([^/?]*)/.exec(target)?.[1] ?? '';
}

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
  ...HOOK_ROUTES,
  ...FEED_ROUTES,
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
