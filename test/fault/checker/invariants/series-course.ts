/** Part of 6: a series goes on, in order, from where it was set, until it has had enough. */
import type { AlarmCase, Evidence } from '../evidence.ts';
import { at, named } from '../finding.ts';
import { targetsOf } from '../targets.ts';
import { deliveriesOf, isMoved, windowsOf } from './series-runs.ts';

/** An active series that owes nothing, in the database or by what its owner was told. */
export function wedged(one: AlarmCase, evidence: Evidence): string[] {
  const { row } = one;
  const violations: string[] = [];
  if (row?.kind === 'cron' && row.status === 'active') {
    const owed = one.occurrences.filter(({ source }) => source === 'schedule');
    if (owed.length === 0) violations.push(`${named(one)} is active, and its series owes nothing`);
    for (const { dueAt, fireId } of owed)
      if (dueAt === null) violations.push(`${named(one)} is active, and ${fireId} is not going to be tried`);
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

/** The occurrences of a series become owed in the order of their instants. */
export function disordered(one: AlarmCase, evidence: Evidence): string[] {
  const nominals = isMoved(one, evidence) ? undefined : evidence.leases?.nominals.get(one.id);
  return (nominals ?? []).flatMap((nominal, index) => {
    const before = nominals![index - 1];
    if (before === undefined || nominal > before) return [];
    return [`${named(one)} went from ${at(before)} to ${at(nominal)}: its instants must grow`];
  });
}

/** What the schedule counts from, and what its owner was told first, must be what was asked for. */
export function misset(one: AlarmCase, evidence: Evidence): string[] {
  const { createdAt } = one.row!;
  const { clockToleranceMs } = evidence.history.client;
  const told = one.creates.filter(({ answer }) => answer.answer === 'acknowledged');
  const asked = Math.min(...one.creates.map(({ invokedAt }) => invokedAt)) - clockToleranceMs;
  const answered = Math.max(...told.map(({ answeredAt }) => answeredAt ?? Number.POSITIVE_INFINITY)) + clockToleranceMs;
  const violations: string[] = [];
  if (createdAt < asked || (told.length > 0 && createdAt > answered))
    violations.push(
      `${named(one)} was set at ${at(createdAt)} by the database's clock, and its owner did so between ${at(asked)} and ${at(answered)}`,
    );
  for (const { answer, operation } of told) {
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

/** More deliveries than the series was to have. */
export function tooMany(one: AlarmCase, evidence: Evidence): string[] {
  const [{ maxFires }] = one.definitions;
  if (maxFires === null || isMoved(one, evidence)) return [];
  const delivered = deliveriesOf(one, evidence);
  if (delivered <= maxFires) return [];
  return [`${named(one)} was delivered ${delivered} times, and max_fires is ${maxFires}`];
}
