/**
 * `request_break_if_needed`: whether a break is due, how urgent it is, and the suggested action; and the same for views.
 * Pure.
 */
import { isoDuration } from '../../kit/clock/duration.ts';
import type { BreakRequest } from '../../wire/chronometric.ts';
import type { DayView } from '../../wire/chronometric-view.ts';
import type { BreakLevel } from '../../wire/chronometric-vocabulary.ts';
import { ChronometricError } from '../chronometric-error.ts';
import { logicalDay, protectedWindowAt } from '../profile/day-rules.ts';
import type { DayRules, ProtectedWindow } from '../profile/profile.ts';
import { formatTimeOfDay } from '../profile/time-of-day.ts';
import type { Session } from '../state/state.ts';
import { type CallContext, sessionLength } from './call-context.ts';

const MINUTE_MS = 60_000;
/** Suggestions alternate every half hour, so that a repeated suggestion differs. */
const ALTERNATE_MINUTES = 30;

type Action = BreakRequest['suggested_action'];
type Reason = BreakRequest['reason'];

type Actions = { turns: readonly [Action, Action]; seated: Action };

/** Two alternating suggestions, and one for users with motor fatigue. */
const LIGHT: Actions = { turns: ['stand_and_stretch', 'hydrate'], seated: 'hydrate' };
const ACTIONS: Readonly<Record<BreakLevel, Actions>> = {
  none: LIGHT,
  gentle: LIGHT,
  nudge: { turns: ['walk_outside', 'switch_context'], seated: 'switch_context' },
  hard: { turns: ['end_session', 'end_session'], seated: 'end_session' },
};

/** By the number of reached steps; below the first one only the threshold causes a break. */
const LEVEL_AT: readonly BreakLevel[] = ['none', 'gentle', 'nudge', 'hard'];
/** Past the end of the day a reached step counts as the next one. */
const HARDER: Readonly<Record<BreakLevel, BreakLevel>> = { none: 'none', gentle: 'nudge', nudge: 'hard', hard: 'hard' };

function actionFor(level: BreakLevel, minutes: number, seated: boolean): Action {
  const actions = ACTIONS[level];
  if (seated) return actions.seated;
  return actions.turns[Math.floor(minutes / ALTERNATE_MINUTES) % 2 === 0 ? 0 : 1];
}

const minutesText = (minutes: number) => `${minutes} minute${minutes === 1 ? '' : 's'}`;

type Decision = { level: BreakLevel; reason: Reason };

function byWindow(window: ProtectedWindow, rung: number): Decision {
  const sentence = `This time is kept free from ${formatTimeOfDay(window.from)} to ${formatTimeOfDay(window.to)}.`;
  return { level: 'hard', reason: { rule: 'protected_window', rung, profile_line: window.line, sentence } };
}

type Applied = { minutes: number; from: BreakRequest['threshold_from']; requested: number };

/** `the threshold of the profile is at 30, the caller asked for 90` */
function thresholdText({ minutes, from, requested }: Applied): string {
  if (from === 'caller') return `the threshold of the caller is at ${minutes}`;
  return `the threshold of the profile is at ${minutes}, the caller asked for ${requested}`;
}

function byLadder(rules: DayRules, pastEndOfDay: boolean, minutes: number, threshold: Applied, rung: number): Decision {
  const { breakMinutes, ladder, endOfDay } = rules;
  const level = LEVEL_AT[rung]!;
  const active = `${minutesText(minutes)} of active time without a real break`;
  if (pastEndOfDay && endOfDay && HARDER[level] !== level) {
    const sentence = `${active}, and the end of the day was at ${formatTimeOfDay(endOfDay.value)}.`;
    return { level: HARDER[level], reason: { rule: 'past_end_of_day', rung, ...lineOf(endOfDay), sentence } };
  }
  const reached = rung === 0 ? '' : `; step ${rung} of the ladder is at ${ladder.value[rung - 1]!}`;
  const declared = lineOf(breakMinutes?.line === undefined ? ladder : breakMinutes);
  const line = rung === 0 ? lineOf(breakMinutes) : declared;
  return {
    level,
    reason: { rule: 'elapsed', rung, ...line, sentence: `${active}${reached}; ${thresholdText(threshold)}.` },
  };
}

const lineOf = (declared: { line?: number } | undefined) =>
  declared?.line === undefined ? {} : { profile_line: declared.line };

/**
 * @param session the open one
 * @param requested minutes, the caller's threshold; the profile's one has precedence
 * @returns `null` when no break is due
 * @throws ChronometricError `PROFILE_UNREADABLE`
 */
export function breakRequest(
  context: CallContext,
  session: Session | undefined,
  requested: number,
): BreakRequest | null {
  const { local, profile, unreadable } = context;
  if (unreadable !== undefined)
    throw new ChronometricError(
      'PROFILE_UNREADABLE',
      `the profile cannot be read, so it is unknown whether a break is due (${unreadable}); correct it and call again`,
    );
  if (session === undefined) return null;
  const { rules, pastEndOfDay = false } = logicalDay(profile, local);
  const declared = rules.breakMinutes?.value;
  const threshold: Applied = {
    minutes: declared ?? requested,
    from: declared === undefined ? 'caller' : 'profile',
    requested,
  };
  const active = Math.max(0, session.activeSinceBreakMs);
  const window = protectedWindowAt(profile, local.day, local.minute);
  if (window === undefined && active < threshold.minutes * MINUTE_MS) return null;
  const minutes = Math.floor(active / MINUTE_MS);
  const rung = rules.ladder.value.filter((from) => active >= from * MINUTE_MS).length;
  const { level, reason } =
    window === undefined ? byLadder(rules, pastEndOfDay, minutes, threshold, rung) : byWindow(window, rung);
  return {
    elapsed: sessionLength(context, session),
    active_elapsed: isoDuration(active),
    prior_intent: session.intent,
    suggested_action: actionFor(level, minutes, profile.motorFatigueAware === true),
    level,
    threshold_minutes: threshold.minutes,
    threshold_from: threshold.from,
    reason,
    ...(window && { protected_window_label: window.label }),
  };
}

/**
 * As `request_break_if_needed`, with the profile's threshold or the first step of the ladder.
 *
 * @returns `undefined` when the profile cannot be read
 */
export function breakView(session: Session, context: CallContext): DayView['break'] {
  if (context.unreadable !== undefined) return undefined;
  const { rules } = logicalDay(context.profile, context.local);
  const threshold = rules.breakMinutes?.value ?? rules.ladder.value[0];
  const elapsed = Math.max(0, session.activeSinceBreakMs);
  const known = { elapsed: isoDuration(elapsed), threshold_minutes: threshold };
  const request = breakRequest(context, session, threshold);
  if (request === null) return { ...known, due: false, due_in: isoDuration(threshold * MINUTE_MS - elapsed) };
  const { level, protected_window_label: label } = request;
  return { ...known, due: true, level, ...(label !== undefined && { protected_window_label: label }) };
}
