/** Wakes for tests. */
export const ALARM_ID = '0197f5a0-0000-7000-8000-000000000001';

/** A wake of an alarm, as the router delivers it. */
export function wakeBody(due: number, members: object = {}, alarmId: string = ALARM_ID): Record<string, unknown> {
  return {
    message: 'Resume the airdrop: holder 240 of 512.',
    origin: 'chronos',
    alarm_id: alarmId,
    fire_id: `${alarmId}@${due}`,
    scheduled_for: new Date(due).toISOString(),
    missed_count: 0,
    ...members,
  };
}
