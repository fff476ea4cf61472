/**
 * The console's connection to a user's agent. It wakes the machine and keeps it awake for the duration of a request or
 * stream, like the user's requests through the listener, and with the same limits.
 */
import type { Dispatcher } from 'undici';
import type { Handler, Transport } from '../../kit/http/plain-transport.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { withoutTrailing } from '../../wire/text.ts';
import type { Lease } from '../supervisor.ts';
import type { ProxyConnections } from './proxy-connections.ts';
import { PROXIED_ROUTES } from './routes.ts';
import type { Shares } from './shares.ts';

type Controller = Dispatcher.DispatchController;

/** Before a connection exists, the only possible action is to cancel the request. */
class PendingController implements Controller {
  readonly gone = new AbortController();
  readonly aborted = false;
  readonly paused = false;
  readonly reason = null;
  pause(): void {}
  resume(): void {}
  abort(reason: Error): void {
    this.gone.abort(reason);
  }
}

/** Writes a rejection of the router as a response, so that its error message reaches the console. */
function refuse(handler: Handler, controller: Controller, thrown: unknown): void {
  const error = thrown instanceof ReveilleError ? thrown : toReveilleError(thrown);
  const { code, message, retryable, status, retryAfterSeconds } = error;
  const retryAfter = retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterSeconds)) };
  handler.onRequestStart?.(controller, null);
  handler.onResponseStart?.(controller, status, { 'content-type': 'application/json', ...retryAfter }, '');
  handler.onResponseData?.(controller, Buffer.from(JSON.stringify({ ok: false, error: { code, message, retryable } })));
  handler.onResponseEnd?.(controller, {});
}

export function agentTransport(
  userId: string,
  { proxies, shares }: { proxies: ProxyConnections; shares: Shares },
): Transport {
  const begin = async (options: Dispatcher.DispatchOptions, handler: Handler): Promise<void> => {
    const pending = new PendingController();
    handler.onConnecting?.(pending);
    let leave: (() => void) | undefined;
    let lease: Lease;
    const isStream = options.path.split('?', 1)[0] === PROXIED_ROUTES.events.path;
    try {
      leave = shares.enter(userId, isStream ? 'streams' : 'requests');
      lease = await proxies.reach(userId, pending.gone.signal);
    } catch (thrown) {
      leave?.();
      if (pending.gone.signal.aborted) handler.onResponseError?.(pending, pending.gone.signal.reason as Error);
      else refuse(handler, pending, thrown);
      return;
    }
    const { dispatcher, url, headers: own } = proxies.connectionTo(lease, userId);
    let active: Controller | undefined;
    const end = () => active?.abort(new Error('the machine is going to sleep'));
    const finish = () => {
      lease.ending.removeEventListener('abort', end);
      lease.release();
      leave();
    };
    if (isStream) lease.ending.addEventListener('abort', end);
    const isChat = options.method === 'POST' && options.path === PROXIED_ROUTES.chat.path;
    const base = new URL(url);
    const wrapped: Dispatcher.DispatchHandler = {
      onRequestStart(controller, context) {
        active = controller;
        if (pending.gone.signal.aborted) controller.abort(pending.gone.signal.reason as Error);
        else if (isStream && lease.ending.aborted) end();
        handler.onConnecting?.(controller);
        handler.onRequestStart?.(controller, context);
      },
      onResponseStart(controller, status, headers, statusText) {
        if (isChat && status >= 200 && status <= 299) void lease.accepted();
        handler.onResponseStart?.(controller, status, headers, statusText);
      },
      onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd(controller, trailers) {
        finish();
        handler.onResponseEnd?.(controller, trailers);
      },
      onResponseError(controller, error) {
        finish();
        if (active === undefined) proxies.checkBeforeUse(userId, lease);
        handler.onResponseError?.(controller, error);
      },
    };
    const target = {
      ...options,
      origin: base.origin,
      path: withoutTrailing(base.pathname, '/') + options.path,
      headers: { ...(options.headers as Record<string, string>), ...own },
    };
    try {
      dispatcher.dispatch(target, wrapped);
    } catch (thrown) {
      finish();
      handler.onResponseError?.(pending, thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  };
  return {
    dispatch(options, handler) {
      void begin(options, handler);
      return true;
    },
  };
}
