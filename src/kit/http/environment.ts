/** The Hono context of a daemon's handlers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Hono } from 'hono';
import type { WrongTokens } from './wrong-tokens.ts';

export type HttpBindings = {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  /** Aborts when the server begins to drain: endless answers must end then. */
  draining: AbortSignal;
  /** Counts every wrong token. */
  wrongTokens: WrongTokens;
};

export type HttpVariables = {
  /** The request body, already read and within the limit; empty if there was none. */
  body: Buffer;
};

export type HttpEnv = { Bindings: HttpBindings; Variables: HttpVariables };

/** The app to which a daemon adds its routes. */
export type HttpApp = Hono<HttpEnv>;
export type HttpContext = Context<HttpEnv>;
