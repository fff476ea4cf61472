/** The verdict as text. Pure. */
import type { Finding } from './finding.ts';
import type { Verdict } from './judge.ts';

/** Maximum number of listed violations per invariant; JSON has them all. */
const SHOWN = 20;

const figure = (value: number) => value.toLocaleString('en-US');

function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => (/^[\d,]+$/.test(cell) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!)))
      .join('  ')
      .trimEnd(),
  );
}

/** "0 in 1,600 acknowledged alarms"; an invariant without cases says so. */
function figureOf({ judged, unit, violations }: Finding): string {
  if (judged === 0 && violations.length === 0) return `nothing to judge: no ${unit}`;
  return `${figure(violations.length)} in ${figure(judged)} ${unit}`;
}

function violationLines({ number, violations }: Finding): string[] {
  const shown = violations.slice(0, SHOWN).map((sentence) => `  ${number}. ${sentence}`);
  const left = violations.length - shown.length;
  return left > 0 ? [...shown, `  ${number}. and ${figure(left)} more; --json names them all`] : shown;
}

/** The overall result. */
export function headline({ violations }: Verdict): string {
  if (violations.length === 0) return 'every promise was kept';
  return violations.length === 1 ? '1 violation' : `${figure(violations.length)} violations`;
}

/**
 * Lines for a terminal: a line per invariant, the counts, and every violation.
 *
 * @param remarks remarks about the read logs
 */
export function reportLines(verdict: Verdict, remarks: readonly string[] = []): string[] {
  const { findings } = verdict;
  const table = findings.map((finding) => [String(finding.number), finding.title, figureOf(finding)]);
  const counts = findings.flatMap(({ counts: some }) =>
    Object.entries(some).map(([name, count]) => ['', figure(count), name]),
  );
  const violations = findings.flatMap(violationLines);
  return [
    ...aligned(table),
    '',
    'counted, and no violation:',
    ...aligned(counts),
    '',
    ...remarks.map((remark) => `note: ${remark}`),
    ...(violations.length > 0 ? ['broken:', ...violations, ''] : []),
    headline(verdict),
  ];
}
