/**
 * Which of the daemon's routes a request target names. A target is taken as it came: what could be read in two ways
 * (encoded slashes and dots, dot segments, double encoding, absolute form) is refused and never put right, and what goes
 * on to the daemon is built from the table of routes.
 */
import { ReveilleError } from '../../wire/errors.ts';
import { idSchema } from '../../wire/identifier.ts';
import type { Route, Routes } from '../../wire/route.ts';

/** Origin form (RFC 9112 §3.2.1) in the characters of RFC 3986, without an empty segment. */
const ORIGIN_FORM = /^(?:\/|(?:\/[A-Za-z0-9._~!$&'()*+,;=:@%-]+)+\/?)(?:\?[\x21-\x7e]*)?$/;
/** Half an escape, and escapes of what means something else when it is decoded once more: `.`, `/`, `\`, `%`, controls. */
const AMBIGUOUS = /%(?![0-9a-f]{2})|%(?:2e|2f|5c|25|[01][0-9a-f]|7f)/i;
const DOT_SEGMENT = /\/\.{1,2}(?=\/|$)/;

/** What may stand where a route has a name in braces: ids of conversations, turns, intents and steps. */
const NAME = idSchema(128);

/** @throws ReveilleError `invalid_request` for a target that can be read in two ways */
export function checkTarget(target: string): void {
  const [path = ''] = target.split('?', 1);
  if (ORIGIN_FORM.test(target) && !AMBIGUOUS.test(path) && !DOT_SEGMENT.test(path)) return;
  throw new ReveilleError(
    'invalid_request',
    'the request target must be a plain path: no encoded slash, dot, percent or control, no empty or dot segment, no address before it',
  );
}

/** A route, and the path below the daemon that stands for the request. */
export type Place = { readonly route: Route; readonly path: `/${string}`; readonly query: string };

/** @param target one that {@link checkTarget} let pass */
export function placeOf(routes: Routes, method: string, target: string): Place | undefined {
  const mark = target.indexOf('?');
  const [path, query] = mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)];
  const given = path.slice(1).split('/');
  for (const route of Object.values(routes)) {
    if (route.method.toUpperCase() !== method) continue;
    const wanted = route.path.slice(1).split('/');
    if (wanted.length !== given.length) continue;
    const taken = wanted.map((segment, at) => segmentOf(segment, given[at]!));
    if (!taken.includes(undefined)) return { route, path: `/${taken.join('/')}`, query };
  }
  return undefined;
}

/** The segment as it goes on to the daemon; `undefined` when it is not what the route has there. */
function segmentOf(wanted: string, given: string): string | undefined {
  if (!wanted.startsWith('{')) return wanted === given ? wanted : undefined;
  // Clients that encode what varies write a colon so; nothing else that is allowed there has two forms.
  const name = given.replace(/%3a/gi, ':');
  return NAME.safeParse(name).success ? encodeURIComponent(name) : undefined;
}

/** The first segment of a path: what divides the listener between the daemon, the router and the pages. */
export function rootOf(target: string): string {
  return /^\/([^/?]*)/.exec(target)?.[1] ?? '';
}
