/**
 * Budgets in tokens and in money: what the turns of the last 24 hours used, and when a wake may go. Pure; instants are
 * epoch milliseconds.
 *
 * A turn counts when it has ended, with the usage that its agent reported; without a report it counts as nothing. So a
 * turn may exceed the budget by itself. While a turn is under way, the others leave as much as the largest turn used.
 */
import type { Budget } from '../../wire/budget.ts';
import { partsOfFireId } from '../../wire/fire-id.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { roundedUsd, type Spending, type TurnUsage, tokensOfUsage, usdText } from '../../wire/usage.ts';

const WINDOW_MS = 24 * 3_600_000;
/** Wakes are remembered for some time after it: they say how much a turn may use. */
export const REMEMBERED_MS = WINDOW_MS + 3_600_000;
/** A turn without an end is no longer expected to end after this. */
const UNDER_WAY_MS = 15 * 60_000;
/** When a wake that waits for a turn under way is tried again. */
const RETRY_MS = 30_000;

/** The usage of an ended turn, or that its agent did not report it. Until the end is known there is none. */
export type Settled = TurnUsage | 'unknown';

/** An admitted wake: `at` is when. */
export type CountedTurn = { readonly fireId: string; readonly at: number; readonly usage?: Settled | undefined };

type SpendingLimit = {
  readonly most: number;
  readonly ofAlarm: boolean;
  /** `undefined`: not known. */
  readonly amountOf: (usage: TurnUsage) => number | undefined;
  readonly text: (amount: number) => string;
};

const TOKENS = {
  amountOf: tokensOfUsage,
  text: (tokens: number) => `${tokens} token${tokens === 1 ? '' : 's'}`,
};
const MONEY = { amountOf: ({ cost_usd }: TurnUsage) => cost_usd, text: usdText };

function limitsOf(budget: Budget): SpendingLimit[] {
  const limits: [number | undefined, typeof TOKENS | typeof MONEY, boolean][] = [
    [budget.tokens_per_day, TOKENS, false],
    [budget.usd_per_day, MONEY, false],
    [budget.tokens_per_alarm_per_day, TOKENS, true],
    [budget.usd_per_alarm_per_day, MONEY, true],
  ];
  return limits.flatMap(([most, unit, ofAlarm]) => (most === undefined ? [] : [{ most, ...unit, ofAlarm }]));
}

/** Whether a budget limits what turns use in a day, so that their usage must be known. */
export const limitsSpending = (budget: Budget): boolean => limitsOf(budget).length > 0;

/** What turns used, as far as it is known. */
function spent(turns: readonly CountedTurn[], { amountOf }: Pick<SpendingLimit, 'amountOf'>, now: number) {
  let sum = 0;
  let largest = 0;
  let unknown = 0;
  let underWay = 0;
  for (const { at, usage } of turns) {
    const isCounted = at > now - WINDOW_MS;
    if (usage === undefined && now - at < UNDER_WAY_MS) underWay++;
    else if (usage === undefined || usage === 'unknown') unknown += Number(isCounted);
    else {
      const amount = amountOf(usage);
      largest = Math.max(largest, amount ?? 0);
      if (!isCounted) continue;
      sum += amount ?? 0;
      unknown += Number(amount === undefined || usage.incomplete === true);
    }
  }
  return { sum, largest, unknown, underWay };
}

/** What the remembered turns used, for people. */
export function spendingOf(turns: readonly CountedTurn[], now: number): Spending {
  const counted = turns.filter(({ at }) => at > now - WINDOW_MS);
  const tokens = spent(counted, TOKENS, now);
  return {
    turns: counted.length,
    tokens: tokens.sum,
    cost_usd: roundedUsd(spent(counted, MONEY, now).sum),
    unknown: tokens.unknown,
    under_way: tokens.underWay,
  };
}

/** When the oldest turns have left the window, so that the rest is below a limit. */
function freeAt(turns: readonly CountedTurn[], { most, amountOf }: SpendingLimit, sum: number, now: number): number {
  let left = sum;
  for (const { at, usage } of turns) {
    if (at <= now - WINDOW_MS || usage === undefined || usage === 'unknown') continue;
    left -= amountOf(usage) ?? 0;
    if (left < most) return at + WINDOW_MS;
  }
  return now + WINDOW_MS;
}

const unknownText = (count: number) => (count === 0 ? '' : `; the usage of ${count} of them is not fully known`);

function deferralBy(
  limit: SpendingLimit,
  all: readonly CountedTurn[],
  { now, alarmId }: SpendingRequest,
): Deferral | undefined {
  const { most, ofAlarm, text } = limit;
  if (ofAlarm && alarmId === undefined) return undefined;
  const turns = ofAlarm ? all.filter(({ fireId }) => partsOfFireId(fireId).alarmId === alarmId) : all;
  const { sum, largest, unknown, underWay } = spent(turns, limit, now);
  const whose = ofAlarm ? 'the turns of this alarm' : "this user's turns";
  const used = `${whose} of the last 24 hours used ${text(sum)}, and the budget is ${text(most)}`;
  if (sum >= most) {
    const until = freeAt(turns, limit, sum, now);
    return { until, reason: `${used}${unknownText(unknown)}; this one may go at ${formatInstant(until)}` };
  }
  if (underWay === 0 || sum + underWay * largest < most) return undefined;
  const until = now + RETRY_MS;
  const others = underWay === 1 ? 'a turn under way' : `${underWay} turns under way`;
  const reason = `${used}; ${others} may use the rest${unknownText(unknown)}; tried again at ${formatInstant(until)}`;
  return { until, reason };
}

type SpendingRequest = { readonly now: number; readonly alarmId: string | undefined };
type Deferral = { readonly until: number; readonly reason: string };

/**
 * Whether a wake must wait, and until when: the latest instant that any of the limits demands.
 *
 * @param turns the remembered wakes of the user
 * @returns `undefined` if it may go
 */
export function spendingDeferral(
  budget: Budget,
  turns: Iterable<CountedTurn>,
  request: SpendingRequest,
): Deferral | undefined {
  const limits = limitsOf(budget);
  if (limits.length === 0) return undefined;
  const oldestFirst = [...turns].sort((one, other) => one.at - other.at);
  const deferrals = limits.map((limit) => deferralBy(limit, oldestFirst, request)).filter((each) => each !== undefined);
  return deferrals.sort((one, other) => other.until - one.until)[0];
}
