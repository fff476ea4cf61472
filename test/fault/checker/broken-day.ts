/** The eventful day with one defect added: the base of the invariants' own tests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Alarm, Attempt, Occurrence } from '../../../src/chronos/alarm/alarm.ts';
import type { DaysAlarms } from './eventful-day.ts';
import type { AuditEntry, Call, ClientLog, DatabaseLog, Definition, History, Turn, Wake } from './history.ts';
import { judge } from './judge.ts';
import { keptHistory } from './kept-history.ts';

/** A history that a test may break. */
export type Draft = {
  client: Omit<ClientLog, 'calls'> & { calls: Call[] };
  database: Omit<DatabaseLog, 'alarms' | 'occurrences' | 'attempts' | 'audit'> & {
    alarms: Alarm[];
    occurrences: Occurrence[];
    attempts: Attempt[];
    audit: AuditEntry[] | null;
  };
  receiver: { clockToleranceMs: number; wakes: Wake[]; turns: Turn[] | null };
  policy: History['policy'];
};

let kept: ReturnType<typeof keptHistory> | undefined;

/** The unbroken day; run once for all callers. */
export function theDay(): ReturnType<typeof keptHistory> {
  kept ??= keptHistory();
  return kept;
}

/** The first element that matches. */
export function found<T>(items: readonly T[], is: (item: T) => boolean): T {
  const item = items.find(is);
  assert.ok(item, 'the day has a matching element');
  return item;
}

export const alarmOf = ({ database }: Draft, id: string) => found(database.alarms, (alarm) => alarm.id === id);
export const attemptsOf = ({ database }: Draft, id: string) =>
  database.attempts.filter(({ alarmId }) => alarmId === id);
export const lastAttempt = (draft: Draft, id: string) =>
  attemptsOf(draft, id)
    .sort((a, b) => a.startedAt - b.startedAt)
    .at(-1)!;
export const callOn = ({ client }: Draft, op: Call['operation']['op'], id: string) =>
  found(client.calls, ({ operation }) => operation.op === op && 'alarmId' in operation && operation.alarmId === id);
export const createOf = ({ client }: Draft, id: string) =>
  found(client.calls, ({ answer }) => answer.answer === 'acknowledged' && answer.alarmId === id);
export const wakeOf = ({ receiver }: Draft, id: string) => found(receiver.wakes, ({ fireId }) => fireId.startsWith(id));
export const turnOf = ({ receiver }: Draft, id: string) =>
  found(receiver.turns!, ({ fireId }) => fireId.startsWith(id));

/** Removes the matching elements, at least one. */
export function without<T>(items: T[], is: (item: T) => boolean): void {
  const left = items.filter((item) => !is(item));
  assert.ok(left.length < items.length, 'an element was removed');
  items.splice(0, items.length, ...left);
}

/** The request of the day's owner. */
export function definitionOf(draft: Draft, id: string): Definition {
  const { operation } = createOf(draft, id);
  assert.ok(operation.op === 'create');
  return operation.definition;
}

type Breakage = (draft: Draft, alarms: DaysAlarms) => void;

/** Breaks one thing in a copy of the day. Returns the numbers of the violated invariants, and their messages. */
export async function verdictOn(breakIt: Breakage): Promise<{ broken: number[]; violations: readonly string[] }> {
  const { history, alarms } = await theDay();
  const draft = structuredClone(history) as Draft;
  breakIt(draft, alarms);
  const { findings, violations } = judge(draft);
  return { broken: findings.flatMap(({ number, violations: some }) => (some.length > 0 ? number : [])), violations };
}

/** Plants a violation that exactly one invariant finds, with a matching sentence. */
export function planted(number: number | number[], what: string, sentence: RegExp, breakIt: Breakage): void {
  test(what, async () => {
    const { broken, violations } = await verdictOn(breakIt);
    assert.deepEqual(broken, [number].flat(), violations.join('\n'));
    assert.match(violations.join('\n'), sentence);
  });
}
