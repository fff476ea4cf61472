/** The answers of the git tools, in git's output format. Pure. */
import { structuredPatch } from 'diff';
import { type Blob, type Commit, shortOf } from './git-repository.ts';
import type { Change, Untracked } from './git-worktree.ts';

/** Maximum length of an answer. */
export const MAX_TEXT = 200 * 1024;
/** Longer files are reported as different, without their lines. */
const MAX_COMPARED_BYTES = 1024 * 1024;
const MAX_EDITS = 20_000;
const COMPARE_MS = 3000;

/** Collects lines and stops at {@link MAX_TEXT}. */
export class Lines {
  readonly #lines: string[] = [];
  #length = 0;

  get isFull(): boolean {
    return this.#length > MAX_TEXT;
  }

  add(line: string): void {
    if (!this.isFull) this.#lines.push(line);
    this.#length += line.length + 1;
  }

  get text(): string {
    const whole = this.#lines.join('\n');
    return this.isFull ? `${whole.slice(0, MAX_TEXT)}\n[… the rest is omitted …]` : whole;
  }
}

/** As in git, a name with a quote, a backslash or a control character is quoted. */
export const quoted = (path: string): string => (/[\0-\x1f\x7f"\\]/.test(path) ? JSON.stringify(path) : path);

const letterOf = ({ from, to }: Change): string => {
  if (from === undefined) return 'A';
  if (to === undefined) return 'D';
  return (from.mode === '120000') === (to.mode === '120000') ? 'M' : 'T';
};

export function statusText(status: {
  branch: string;
  staged: readonly Change[];
  changes: readonly Change[];
  untracked: readonly Untracked[];
  unmerged: readonly string[];
}): string {
  const lines = new Lines();
  lines.add(`## ${status.branch}`);
  const letters = new Map<string, [string, string]>();
  for (const change of status.staged) letters.set(change.path, [letterOf(change), ' ']);
  for (const change of status.changes)
    letters.set(change.path, [letters.get(change.path)?.[0] ?? ' ', letterOf(change)]);
  for (const path of status.unmerged) letters.set(path, ['U', 'U']);
  for (const [path, pair] of [...letters].sort(([a], [b]) => (a < b ? -1 : 1)))
    lines.add(`${pair.join('')} ${quoted(path)}`);
  for (const { path } of status.untracked) lines.add(`?? ${quoted(path)}`);
  return lines.text;
}

export function commitLines(lines: Lines, { oid, parent, author, message }: Commit): void {
  lines.add(`commit ${oid}`);
  if (parent.length > 1) lines.add(`Merge: ${parent.map(shortOf).join(' ')}`);
  lines.add(`Author: ${author.name} <${author.email}>`);
  lines.add(`Date:   ${isoTime(author)}`);
  lines.add('');
  for (const line of message.trimEnd().split('\n')) lines.add(`    ${line}`);
}

/** An instant with the offset at which it was recorded, as `--date=iso-strict` prints it. */
function isoTime({ timestamp, timezoneOffset }: Commit['author']): string {
  const local = new Date((timestamp - timezoneOffset * 60) * 1000);
  if (Number.isNaN(local.getTime())) return String(timestamp);
  const pad = (value: number) => String(Math.floor(value)).padStart(2, '0');
  const offsetMinutes = Math.abs(timezoneOffset);
  const offset = `${timezoneOffset > 0 ? '-' : '+'}${pad(offsetMinutes / 60)}:${pad(offsetMinutes % 60)}`;
  return `${local.toISOString().slice(0, 19)}${offset}`;
}

const ABSENT: Blob = { oid: '0'.repeat(40), mode: '100644' };
const isBinary = (content: Buffer) => content.subarray(0, 8000).includes(0);

/** @param contents of both sides; a missing side is empty */
export function changeLines(lines: Lines, change: Change, contents: { from: Buffer; to: Buffer }): void {
  const { path, from, to } = change;
  // A change between file and link is shown as a deletion and an addition.
  if (from && to && letterOf(change) === 'T') {
    changeLines(lines, { path, from, to: undefined }, { from: contents.from, to: Buffer.alloc(0) });
    changeLines(lines, { path, from: undefined, to }, { from: Buffer.alloc(0), to: contents.to });
    return;
  }
  const [before, after] = [quoted(`a/${path}`), quoted(`b/${path}`)];
  lines.add(`diff --git ${before} ${after}`);
  if (from === undefined) lines.add(`new file mode ${to!.mode}`);
  else if (to === undefined) lines.add(`deleted file mode ${from.mode}`);
  else if (from.mode !== to.mode) {
    lines.add(`old mode ${from.mode}`);
    lines.add(`new mode ${to.mode}`);
  }
  const [one, other] = [from ?? ABSENT, to ?? ABSENT];
  if (one.oid === other.oid) return;
  const mode = from && to && from.mode === to.mode ? ` ${to.mode}` : '';
  lines.add(`index ${shortOf(one.oid)}..${shortOf(other.oid)}${mode}`);
  const names = [from ? before : '/dev/null', to ? after : '/dev/null'] as const;
  for (const line of comparedLines(names, contents)) lines.add(line);
}

function comparedLines(
  [before, after]: readonly [string, string],
  { from, to }: { from: Buffer; to: Buffer },
): string[] {
  const differLine = (why: string) => [`${why} ${before} and ${after} differ`];
  if (isBinary(from) || isBinary(to)) return differLine('Binary files');
  if (from.length > MAX_COMPARED_BYTES || to.length > MAX_COMPARED_BYTES) return differLine('Large files');
  const bounds = { context: 3, maxEditLength: MAX_EDITS, timeout: COMPARE_MS };
  const patch = structuredPatch('', '', from.toString('utf8'), to.toString('utf8'), undefined, undefined, bounds);
  if (patch === undefined) return differLine('Very different files');
  if (patch.hunks.length === 0) return [];
  const range = (start: number, count: number) =>
    count === 1 ? `${start}` : `${count === 0 ? start - 1 : start},${count}`;
  const hunks = patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`,
    ...lines,
  ]);
  return [`--- ${before}`, `+++ ${after}`, ...hunks];
}
