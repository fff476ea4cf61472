/** Converts the client's request bodies and answers to log entries. */
import type { AlarmCreateBody, AlarmPatchBody, TriggeredAlarm } from '../../../src/chronos/client.ts';
import type { AlarmCreated, AlarmView } from '../../../src/wire/alarm.ts';
import { ReveilleError } from '../../../src/wire/errors.ts';
import type { Answer, Definition } from './history.ts';

const instantOf = (text: string | undefined) => (text === undefined ? null : Date.parse(text));

/** The alarm that a create body requests. */
export function definitionOf(body: AlarmCreateBody): Definition {
  return {
    kind: body.kind!,
    message: body.wake_message,
    payload: body.payload?.text ?? null,
    conversation: body.conversation_id ?? null,
    fireAt: instantOf(body.fire_at),
    delaySeconds: body.delay_seconds ?? null,
    expression: body.cron_expr ?? null,
    timezone: body.timezone ?? null,
    endsAt: instantOf(body.ends_at),
    maxFires: body.max_fires ?? null,
    jitterSeconds: body.jitter_seconds ?? null,
    maxLatenessSeconds: body.max_lateness_seconds ?? null,
    maxFailures: body.max_failures ?? null,
  };
}

/** The changes of an edit; a new time replaces the old one, in any form of either. */
export function changeOf(patch: AlarmPatchBody): Partial<Definition> {
  const change: Partial<Definition> = {};
  if (patch.wake_message !== undefined) change.message = patch.wake_message;
  if (patch.payload !== undefined) change.payload = patch.payload.text;
  if (patch.conversation_id !== undefined) change.conversation = patch.conversation_id;
  if (patch.fire_at !== undefined || patch.delay_seconds !== undefined) {
    change.fireAt = instantOf(patch.fire_at);
    change.delaySeconds = patch.delay_seconds ?? null;
  }
  if (patch.cron_expr !== undefined) change.expression = patch.cron_expr;
  if (patch.timezone !== undefined) change.timezone = patch.timezone;
  if (patch.ends_at !== undefined) change.endsAt = instantOf(patch.ends_at ?? undefined);
  if (patch.max_fires !== undefined) change.maxFires = patch.max_fires;
  if (patch.jitter_seconds !== undefined) change.jitterSeconds = patch.jitter_seconds;
  if (patch.max_lateness_seconds !== undefined) change.maxLatenessSeconds = patch.max_lateness_seconds;
  if (patch.max_failures !== undefined) change.maxFailures = patch.max_failures;
  return change;
}

/** An acknowledged create. */
export function createdAnswer({ id, status, next_fire_at, deduped }: Omit<AlarmCreated, 'reading'>): Answer {
  return { answer: 'acknowledged', alarmId: id, status, nextFireAt: instantOf(next_fire_at), deduped };
}

/** Any other call that returned the alarm. */
export function viewAnswer(view: AlarmView | TriggeredAlarm): Answer {
  return {
    answer: 'acknowledged',
    alarmId: view.id,
    status: view.status,
    nextFireAt: instantOf(view.next_fire_at),
    inFlight: view.in_flight,
    ...('fire_id' in view ? { fireId: view.fire_id } : {}),
  };
}

/** Error codes after which the outcome of the request is unknown. */
const OPEN_ENDED: ReadonlySet<string> = new Set(['unavailable', 'internal']);

/** The answer to an incomplete request: chronosd has not read its contents. */
const isUnread = ({ code, retryable }: ReveilleError) => code === 'invalid_request' && retryable;

/** A call that threw: refused if chronosd said so, lost otherwise. */
export function failedAnswer(thrown: unknown): Answer {
  if (thrown instanceof ReveilleError && !OPEN_ENDED.has(thrown.code) && !isUnread(thrown))
    return { answer: 'refused', code: thrown.code, message: thrown.message };
  return { answer: 'lost', reason: thrown instanceof Error ? thrown.message : String(thrown) };
}
