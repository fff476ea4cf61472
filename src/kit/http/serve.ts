/** Serves a route of a route table (`src/wire/route.ts`). Daemons add all their routes with it. */
import type { Context, Handler, MiddlewareHandler } from 'hono';
import type { Route } from '../../wire/route.ts';
import type { HttpApp, HttpEnv } from './environment.ts';

/** `/v1/alarms/{id}` in Hono's syntax: `/v1/alarms/:id`. */
type HonoPath<Path extends string> = Path extends `${infer Before}{${infer Name}}${infer Rest}`
  ? `${Before}:${Name}${HonoPath<Rest>}`
  : Path;

/** @param guards run before the handler, after the app's own checks */
export function serve<R extends Route>(
  app: HttpApp,
  { method, path }: R,
  handler: (c: Context<HttpEnv, HonoPath<R['path']>>) => Response | Promise<Response>,
  ...guards: readonly MiddlewareHandler<HttpEnv>[]
): void {
  const hono = path.replace(/\{(\w+)\}/g, ':$1');
  app.on([method.toUpperCase()], [hono], ...guards, handler as Handler<HttpEnv>);
}
