/** A turn as its row has it. */
import type { SQLOutputValue } from 'node:sqlite';
import type { MachineTurnStatus } from '../../wire/machine-turn.ts';
import type { Turn } from './turn.ts';

export type Row = Record<string, SQLOutputValue>;

const text = (value: SQLOutputValue | undefined) => (value === null ? undefined : (value as string));
const number = (value: SQLOutputValue | undefined) => (value === null ? undefined : (value as number));

export function turnOfRow(row: Row): Turn {
  const pid = number(row.pid);
  const birth = text(row.birth);
  return {
    id: row.id as string,
    userId: row.user_id as string,
    fireId: row.fire_id as string,
    alarmId: row.alarm_id as string,
    conversationId: row.conversation_id as string,
    named: row.named === 1,
    preset: row.preset as string,
    message: row.message as string,
    payload: text(row.payload),
    scheduledFor: row.scheduled_for as number,
    missedCount: row.missed_count as number,
    label: text(row.label),
    setAt: number(row.set_at),
    setBy: text(row.set_by),
    status: row.status as MachineTurnStatus,
    attempts: row.attempts as number,
    notBefore: number(row.not_before),
    waits: text(row.waits),
    session: text(row.session),
    handle: text(row.handle),
    spawnId: text(row.spawn_id),
    born: pid === undefined || birth === undefined ? undefined : { pid, birth },
    reply: text(row.reply),
    error: text(row.error),
    acceptedAt: row.accepted_at as number,
    startedAt: number(row.started_at),
    finishedAt: number(row.finished_at),
  };
}
