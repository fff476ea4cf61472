/** Webhooks and heartbeats from outside, at `/hooks/{hook_id}` of chronosd and of the router's public listener. */
import { z } from 'zod';
import { HOOKS_ROOT } from './conditions.ts';
import type { Route, Routes } from './route.ts';

/** Headers of a request that say something about its event. The router passes these on, and no others. */
export const HOOK_HEADERS = [
  ...(['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature', 'idempotency-key'] as const),
  ...(['x-hub-signature-256', 'x-github-event', 'x-github-delivery'] as const),
] as const;

/** What a program may report at a heartbeat's address: a signal of healthchecks.io, or its exit status. */
export const HEARTBEAT_SIGNALS = /^(?:start|log|fail|\d{1,3})$/;

export const hookRecordedSchema = z.object({
  /** Events that were recorded, and events that were known before. An event that the filter excludes is neither. */
  recorded: z.int(),
  known: z.int(),
});

const hook = {
  path: '/hooks/{hook_id}',
  summary: 'an event for an alarm, from a sender that its signature or its secret address proves',
  credential: 'hook',
  data: hookRecordedSchema,
} as const satisfies Omit<Route, 'method'>;

const signal = {
  ...hook,
  path: '/hooks/{hook_id}/{signal}',
  summary: 'a signal of an expected program: start, log, fail, or its exit status',
} as const;

export const HOOK_ROUTES = {
  hook: { ...hook, method: 'post' },
  heartbeat: { ...hook, method: 'get', summary: 'a heartbeat of an expected program' },
  hookSignal: { ...signal, method: 'post' },
  heartbeatSignal: { ...signal, method: 'get' },
} as const satisfies Routes;

export const isHook = (target: string): boolean => target.startsWith(HOOKS_ROOT);
