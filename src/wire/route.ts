/**
 * The type of a daemon's routes, and the routes of every daemon. Server, document and clients use the same route
 * tables.
 */
import { z } from 'zod';
import { pathSegment } from './identifier.ts';
import { daemonHealthSchema } from './wake.ts';

/**
 * The credential that a route requires; `metrics` applies only to callers on other computers, and `hook` is the
 * signature of a webhook, or the secret in its address.
 */
export type Credential =
  | 'none'
  | 'hook'
  | 'transport'
  | 'principal'
  | 'admin'
  | 'machine'
  | 'user'
  | 'person'
  | 'metrics';

export type Route = {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** `{name}` marks a parameter. */
  readonly path: `/${string}`;
  readonly summary: string;
  readonly credential: Credential;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** The data in the answer's envelope; with `text`, the whole answer. */
  readonly data: z.ZodType;
  readonly text?: true;
  /** Default 200. */
  readonly status?: number;
};

/** The routes of one daemon by name, in the order in which they are documented. */
export type Routes = Readonly<Record<string, Route>>;

/** The parameters of a path: `'/v1/alarms/{id}'` has `id`. */
export type PathNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathNames<Rest>
  : never;

/** The path of a request, with encoded parameters. @throws ReveilleError as {@link pathSegment} */
export function pathOf<R extends Route>(
  { path }: R,
  given: { readonly [Name in PathNames<R['path']>]: string },
): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) =>
    pathSegment((given as Readonly<Record<string, string>>)[name]!),
  );
}

const health = z.object({ status: z.string() });

/** Routes that `startServer` adds to every daemon. */
export const PROBES = {
  root: {
    method: 'get',
    path: '/',
    summary: 'name and version',
    credential: 'none',
    data: z.object({ name: z.string(), version: z.string() }),
  },
  health: { method: 'get', path: '/healthz', summary: 'the process is alive', credential: 'none', data: health },
  ready: {
    method: 'get',
    path: '/readyz',
    summary: 'the daemon is ready; 503 with reasons if it is not',
    credential: 'none',
    data: health,
  },
} as const satisfies Routes;

/** The health probe of a daemon that can be stopped when idle. */
export const DAEMON_HEALTH = {
  method: 'get',
  path: '/healthz',
  summary: 'alive, and whether it may be stopped',
  credential: 'none',
  data: daemonHealthSchema,
} as const satisfies Route;
