/**
 * What a route of a daemon is, and what every daemon serves. The server, the document and the clients read the same
 * tables of routes.
 */
import { z } from 'zod';
import { pathSegment } from './identifier.ts';
import { daemonHealthSchema } from './wake.ts';

/** Which credentials a route asks for; `metrics` is asked of callers on other computers alone. */
export type Credential = 'none' | 'transport' | 'principal' | 'admin' | 'machine' | 'user' | 'person' | 'metrics';

export type Route = {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** With `{name}` for what varies. */
  readonly path: `/${string}`;
  readonly summary: string;
  readonly credential: Credential;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  /** What the envelope of the answer holds, or with `text` the whole answer. */
  readonly data: z.ZodType;
  readonly text?: true;
  /** 200 unless told. */
  readonly status?: number;
};

/** The routes of one daemon by name, in the order in which they are documented. */
export type Routes = Readonly<Record<string, Route>>;

/** What varies in a path: `'/v1/alarms/{id}'` has `id`. */
export type PathNames<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PathNames<Rest>
  : never;

/** The path of a request; what varies is encoded. @throws ReveilleError as {@link pathSegment} */
export function pathOf<R extends Route>(
  { path }: R,
  given: { readonly [Name in PathNames<R['path']>]: string },
): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) =>
    pathSegment((given as Readonly<Record<string, string>>)[name]!),
  );
}

const health = z.object({ status: z.string() });

/** What `startServer` adds to every daemon. */
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
    summary: 'it can do its job; 503 with reasons when it cannot',
    credential: 'none',
    data: health,
  },
} as const satisfies Routes;

/** The probe of a daemon that can be put to sleep. */
export const DAEMON_HEALTH = {
  method: 'get',
  path: '/healthz',
  summary: 'alive, and whether it may be put to sleep',
  credential: 'none',
  data: daemonHealthSchema,
} as const satisfies Route;
