/** What a handler finds in the Hono context of a daemon. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Hono } from 'hono';
import type { WrongTokens } from './wrong-tokens.ts';

export type HttpBindings = {
  incoming: IncomingMessage;
  outgoing: ServerResponse;
  /** Aborts when the server begins to drain: open-ended answers should end now. */
  draining: AbortSignal;
  /** Told of every wrong token. */
  wrongTokens: WrongTokens;
};

export type HttpVariables = {
  /** The request body, already read and within the limit; empty when there was none. */
  body: Buffer;
};

export type HttpEnv = { Bindings: HttpBindings; Variables: HttpVariables };

/** The app a daemon adds its routes to. */
export type HttpApp = Hono<HttpEnv>;
export type HttpContext = Context<HttpEnv>;
