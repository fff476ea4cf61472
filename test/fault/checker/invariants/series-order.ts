/** Part of 6: a series continues, in order, from its creation until it has ended. */
import type { AlarmCase, Evidence } from '../evidence.ts';
import { at, named } from '../finding.ts';
import { targetsOf } from '../targets.ts';
import { deliveriesOf, isMoved, windowsOf } from './series-runs.ts';

/** An active series without a pending occurrence, in the database or in an answer to its owner. */
export function withoutPending(one: AlarmCase, evidence: Evidence): string[] {
  const { row } = one;
  const violations: string[] = [];
  if (row?.kind === 'cron' && row.status === 'active') {
    const owed = one.occurrences.filter(({ source }) => source === 'schedule');
    if (owed.length === 0) violations.push(`${named(one)} is active, and its series has no pending occurrence`);
    for (const { dueAt, fireId } of owed)
      if (dueAt === null) violations.push(`${named(one)} is active, and ${fireId} has no next attempt`);
  }
  for (const { answer, operation, answeredAt } of [...one.creates, ...evidence.acts(one.id, 'read')]) {
    if (answer.answer !== 'acknowledged' || answer.status !== 'active' || one.definitions[0].kind !== 'cron') continue;
    if ((answer.nextFireAt ?? null) === null)
      violations.push(
        `${named(one)} was shown active without a next_fire_at (${operation.op}, ${at(answeredAt ?? Number.NaN)})`,
      );
  }
  return violations;
}

/** The occurrences of a series become pending in the order of their times. */
export function disordered(one: AlarmCase, evidence: Evidence): string[] {
  const nominals = isMoved(one, evidence) ? undefined : evidence.claims?.nominals.get(one.id);
  return (nominals ?? []).flatMap((nominal, index) => {
    const before = nominals![index - 1];
    if (before === undefined || nominal > before) return [];
    return [`${named(one)} went from ${at(before)} to ${at(nominal)}: its times must grow`];
  });
}

/** The start of the schedule, and the first answer to its owner, must match the request. */
export function wrongStart(one: AlarmCase, evidence: Evidence): string[] {
  const { createdAt } = one.row!;
  const { clockToleranceMs } = evidence.history.client;
  const acknowledged = one.creates.filter(({ answer }) => answer.answer === 'acknowledged');
  const asked = Math.min(...one.creates.map(({ invokedAt }) => invokedAt)) - clockToleranceMs;
  const answered =
    Math.max(...acknowledged.map(({ answeredAt }) => answeredAt ?? Number.POSITIVE_INFINITY)) + clockToleranceMs;
  const violations: string[] = [];
  if (createdAt < asked || (acknowledged.length > 0 && createdAt > answered))
    violations.push(
      `${named(one)} was set at ${at(createdAt)} by the database's clock, and its owner did so between ${at(asked)} and ${at(answered)}`,
    );
  for (const { answer, operation } of acknowledged) {
    if (answer.answer !== 'acknowledged' || answer.deduped !== false || typeof answer.nextFireAt !== 'number') continue;
    const [first] = targetsOf(operation.definition, createdAt, answer.nextFireAt);
    const [window] = first ? windowsOf([first]) : [];
    if (!window || answer.nextFireAt < window.from || answer.nextFireAt > window.until)
      violations.push(
        `${named(one)} was acknowledged for ${at(answer.nextFireAt)}, and its schedule names ${first ? at(first.at) : 'nothing by then'}`,
      );
  }
  return violations;
}

/** More deliveries than the maximum of the series. */
export function tooMany(one: AlarmCase, evidence: Evidence): string[] {
  const [{ maxFires }] = one.definitions;
  if (maxFires === null || isMoved(one, evidence)) return [];
  const delivered = deliveriesOf(one, evidence);
  if (delivered <= maxFires) return [];
  return [`${named(one)} was delivered ${delivered} times, and max_fires is ${maxFires}`];
}
