/** 5. A create with a lost answer has left one alarm under its key, or none; and every alarm was requested. */

import type { Alarm } from '../../../../src/chronos/alarm/alarm.ts';
import { ownerOf } from '../../../../src/wire/did.ts';
import { showValue } from '../../../../src/wire/validate.ts';
import type { CallOf, Evidence } from '../evidence.ts';
import type { Finding } from '../finding.ts';

/** All creates of one owner under one key, with the rows that have it. */
type KeyCase = { owner: string; key: string; calls: readonly CallOf<'create'>[]; rows: readonly Alarm[] };

function keyCases(evidence: Evidence): KeyCase[] {
  const nameOf = (owner: string, key: string) => JSON.stringify([owner, key]);
  const rows = Map.groupBy(evidence.history.database.alarms, ({ owner, idempotencyKey }) =>
    idempotencyKey === null ? undefined : nameOf(owner, idempotencyKey),
  );
  const calls = Map.groupBy(evidence.creates, ({ user, operation: { key } }) =>
    key === null ? undefined : nameOf(ownerOf(user), key),
  );
  calls.delete(undefined);
  return [...calls].map(([name, ofKey]) => {
    const [owner, key] = JSON.parse(name!) as [string, string];
    return { owner, key, calls: ofKey, rows: rows.get(name) ?? [] };
  });
}

/** A cancel that was not refused may have released the alarm's key. */
function mayBeCancelled(alarmId: string, evidence: Evidence): boolean {
  return evidence.acts(alarmId, 'cancel').length > 0;
}

function violationsOf({ owner, key, calls, rows }: KeyCase, evidence: Evidence): string[] {
  const name = `the key ${showValue(key)} of ${owner}`;
  const ids = (alarms: readonly { id: string }[]) => alarms.map(({ id }) => id).join(', ');
  const holding = rows.filter(({ status }) => status !== 'cancelled');
  const violations: string[] = [];
  if (holding.length > 1) violations.push(`${name} belongs to ${holding.length} alarms: ${ids(holding)}`);

  const answers = calls.map(({ answer }) => answer);
  const acknowledgedIds = new Set(
    answers.flatMap((answer) => (answer.answer === 'acknowledged' ? [answer.alarmId ?? '?'] : [])),
  );
  const remaining = [...acknowledgedIds].filter((id) => !mayBeCancelled(id, evidence));
  if (remaining.length > 1)
    violations.push(`${name} was acknowledged as ${remaining.length} alarms: ${remaining.join(', ')}`);

  // Each use of a key begins with a create that was answered "new", or whose answer was lost.
  const lost = answers.filter(({ answer }) => answer === 'lost').length;
  const unreported = rows.filter(({ id }) => !acknowledgedIds.has(id));
  if (unreported.length > lost)
    violations.push(
      `${name} made ${unreported.length} alarms that no answer named (${ids(unreported)}), and ${lost === 0 ? 'no answer was' : `only ${lost} were`} lost`,
    );
  return violations;
}

/** Alarms without a key that no create explains. */
function unrequested(evidence: Evidence): string[] {
  return evidence.unexplained
    .filter(({ idempotencyKey }) => idempotencyKey === null)
    .map(
      ({ id, owner, wakeMessage }) =>
        `${owner} has the alarm ${id} (${showValue(wakeMessage)}) and asked for no such thing`,
    );
}

/** The same for alarms under a key that was never used. */
function unknownKeys(evidence: Evidence, cases: readonly KeyCase[]): string[] {
  const known = new Set(cases.map(({ owner, key }) => JSON.stringify([owner, key])));
  return evidence.unexplained
    .filter(({ owner, idempotencyKey: key }) => key !== null && !known.has(JSON.stringify([owner, key])))
    .map(
      ({ id, owner, idempotencyKey }) =>
        `${owner} has the alarm ${id} under the key ${showValue(idempotencyKey)}, which was never used`,
    );
}

export function oneAlarmPerCreate(evidence: Evidence): Finding {
  const cases = keyCases(evidence);
  const lost = evidence.creates.filter(({ answer }) => answer.answer === 'lost').length;
  const deduped = evidence.creates.filter(({ answer }) => answer.answer === 'acknowledged' && answer.deduped === true);
  const keyed = evidence.creates.filter(({ operation }) => operation.key !== null).length;
  return {
    number: 5,
    title: 'a create makes one alarm or none, however often it is repeated',
    judged: evidence.creates.length,
    unit: 'creates',
    violations: [
      ...cases.flatMap((one) => violationsOf(one, evidence)),
      ...unrequested(evidence),
      ...unknownKeys(evidence, cases),
    ],
    counts: {
      'creates whose answer was lost': lost,
      'creates repeated under their key': keyed - cases.length,
      'creates answered with the alarm that was there': deduped.length,
    },
  };
}
