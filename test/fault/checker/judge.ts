/** The verdict over a history: ten invariants, each judged on its own. Pure. */
import { gatherEvidence } from './evidence.ts';
import type { Finding, Invariant } from './finding.ts';
import type { History } from './history.ts';
import { attemptsWithinPolicy } from './invariants/attempts.ts';
import { nothingAfterCancel } from './invariants/cancelled.ts';
import { oneAlarmPerCreate } from './invariants/creates.ts';
import { staleHolderChangesNothing } from './invariants/fencing.ts';
import { otherUsersDenied } from './invariants/intrusion.ts';
import { keptPromises } from './invariants/kept.ts';
import { neverEarly } from './invariants/punctual.ts';
import { queueDrains } from './invariants/queue.ts';
import { seriesOnTarget } from './invariants/series.ts';
import { oneTurnEach } from './invariants/turns.ts';

const INVARIANTS: readonly Invariant[] = [
  keptPromises,
  neverEarly,
  nothingAfterCancel,
  oneTurnEach,
  oneAlarmPerCreate,
  seriesOnTarget,
  staleHolderChangesNothing,
  otherUsersDenied,
  queueDrains,
  attemptsWithinPolicy,
];

export type Verdict = {
  /** One for each invariant, in order. */
  findings: readonly Finding[];
  /** All violations, each with the number of its invariant. */
  violations: readonly string[];
};

/** Judges a history. The verdict is deterministic. */
export function judge(history: History): Verdict {
  const evidence = gatherEvidence(history);
  const findings = INVARIANTS.map((invariant) => invariant(evidence));
  const violations = findings.flatMap((finding) =>
    finding.violations.map((violation) => `invariant ${finding.number}: ${violation}`),
  );
  return { findings, violations };
}
