/** A look at a process: whether it still runs. */
import type { LookAnswer } from '../../wire/look.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { digestOf, NotAllowed } from '../checks/finding.ts';
import { birthOf } from '../providers/process-table.ts';

type Seen = { pid: number; birth: string; gone?: true };

export type Processes = {
  /** As {@link birthOf}. */
  birthOf: (pid: number) => string | undefined;
  /** The system user of a process; `undefined` when it is unknown. */
  userOf: (pid: number) => number | undefined;
};

/**
 * @param user the system user whose processes the agent may watch
 * @param seen what the last look had shown; without it, the process must run
 * @throws NotAllowed when there is no such process, or when it belongs to another user
 */
export function lookAtProcess(
  pid: number,
  { user, now, processes }: { user: number | undefined; now: number; processes: Processes },
  seen: string | undefined,
): LookAnswer {
  const read = seen === undefined ? undefined : decodeSeen(seen);
  const before = read?.pid === pid ? read : undefined;
  const birth = processes.birthOf(pid);
  if (before === undefined) {
    if (birth === undefined) throw new NotAllowed(`no process ${pid} runs on this computer`);
    const owner = processes.userOf(pid);
    if (user !== undefined && owner !== undefined && owner !== user)
      throw new NotAllowed(`process ${pid} belongs to another user of this computer than the agent`);
    return { events: [], seen: JSON.stringify({ pid, birth }) };
  }
  if (before.gone) return { events: [], seen: seen!, ends: true };
  if (birth === before.birth) return { events: [], seen: seen! };
  const data = JSON.stringify({ change: 'exited', pid, seen_at: formatInstant(now) });
  const id = `exit-${digestOf(before.birth).slice(7, 23)}`;
  return { events: [{ id, data }], seen: JSON.stringify({ ...before, gone: true }), ends: true };
}

/** `undefined` for a text that this version has not written. */
function decodeSeen(text: string): Seen | undefined {
  try {
    const { pid, birth, gone } = JSON.parse(text) as Partial<Seen>;
    return typeof pid === 'number' && typeof birth === 'string' ? { pid, birth, ...(gone && { gone }) } : undefined;
  } catch {
    return undefined;
  }
}
