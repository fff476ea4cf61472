/**
 * What the handlers of a daemon use: the Hono context, serving a route of a route table (`src/wire/route.ts`), and answers
 * in the Reveille envelope (docs/reference/api.md, "Common rules").
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Handler, Hono, MiddlewareHandler } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { errorEnvelope, okEnvelope } from '../../wire/envelope.ts';
import type { ReveilleError } from '../../wire/errors.ts';
import type { Route } from '../../wire/route.ts';
import type { WrongTokens } from './wrong-tokens.ts';

export type HttpBindings = {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  /** Aborts when the server begins to drain: endless answers must end then. */
  draining: AbortSignal;
  wrongTokens: WrongTokens;
  /** Reads the request's body, within the limit. */
  readBody(): Promise<Buffer>;
};

export type HttpVariables = {
  /** The request body of a route, read after its guards and within the limit; empty if there was none. */
  body: Buffer;
};

export type HttpEnv = { Bindings: HttpBindings; Variables: HttpVariables };

/** The app to which a daemon adds its routes. */
export type HttpApp = Hono<HttpEnv>;
export type HttpContext = Context<HttpEnv>;

/** `/v1/alarms/{id}` in Hono's syntax: `/v1/alarms/:id`. */
type HonoPath<Path extends string> = Path extends `${infer Before}{${infer Name}}${infer Rest}`
  ? `${Before}:${Name}${HonoPath<Rest>}`
  : Path;

const readBody: MiddlewareHandler<HttpEnv> = async (c, next) => {
  c.set('body', await c.env.readBody());
  await next();
};

/**
 * Serves a route. Daemons add all their routes with it. The body is read when all checks of the request's head have
 * passed.
 *
 * @param guards run before the body is read, after the app's own checks
 */
export function serve<R extends Route>(
  app: HttpApp,
  { method, path }: R,
  handler: (c: Context<HttpEnv, HonoPath<R['path']>>) => Response | Promise<Response>,
  ...guards: readonly MiddlewareHandler<HttpEnv>[]
): void {
  const hono = path.replace(/\{(\w+)\}/g, ':$1');
  app.on([method.toUpperCase()], [hono], ...guards, readBody, handler as Handler<HttpEnv>);
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** Answers with `{"ok":true,"data":…}`; raw JSON inside `data` is written verbatim. */
export function sendOk(c: HttpContext, data: unknown, status: ContentfulStatusCode = 200): Response {
  return c.body(okEnvelope(data), status, { 'content-type': JSON_TYPE });
}

/** The headers and text of a failure; `Retry-After` in whole seconds, rounded up. */
export function failureParts(error: ReveilleError): { headers: Record<string, string>; text: string } {
  const headers: Record<string, string> = { 'content-type': JSON_TYPE };
  if (error.retryAfterSeconds !== undefined)
    headers['retry-after'] = String(Math.max(0, Math.ceil(error.retryAfterSeconds)));
  if (error.status === 401) headers['www-authenticate'] = 'Bearer';
  return { headers, text: errorEnvelope(error) };
}

/**
 * Answers with `{"ok":false,"error":…}` under the error's status. Only the server's error handler calls it; handlers
 * throw.
 */
export function sendError(c: HttpContext, error: ReveilleError): Response {
  const { headers, text } = failureParts(error);
  return c.body(text, error.status as ContentfulStatusCode, headers);
}
