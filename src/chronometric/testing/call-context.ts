/** Contexts for tests: a moment on a wall clock, and a profile in YAML. */
import { readProfile } from '../profile/read-profile.ts';
import type { Session } from '../state/state.ts';
import { type CallContext, callContextOf } from '../tools/call-context.ts';

export const MINUTE = 60_000;

type CallOptions = { zone?: string; profile?: string };

/** @param at RFC 3339 @param profile YAML */
export function callContextAt(at: string, { zone = 'Europe/Berlin', profile = '' }: CallOptions = {}): CallContext {
  return callContextOf(Date.parse(at), zone, readProfile(profile, 'profile.yaml'));
}

/** A session with this many minutes of active time. */
export function sessionOf(activeMinutes: number, changes: Partial<Session> = {}): Session {
  return {
    id: '0b6a1f60-52b1-4f0e-9c50-6a8f0c1f7d11',
    intent: ' write the report ',
    startedAt: Date.parse('2026-06-15T06:00:00Z'),
    lastSeenAt: Date.parse('2026-06-15T06:00:00Z'),
    activeMs: activeMinutes * MINUTE,
    activeSinceBreakMs: activeMinutes * MINUTE,
    ...changes,
  };
}
