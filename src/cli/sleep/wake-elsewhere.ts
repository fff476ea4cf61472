/**
 * Wake-ups on macOS and Windows, by pmset(1) and the schema of tasks (`WakeToRun`). Experimental; see
 * `experimental.ts`. Both store many wake-ups, so none is overwritten.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { Settings } from '../../wire/settings.ts';
import { ask } from '../service/ask.ts';
import { taskXml } from '../service/windows-task.ts';
import type { Armed, NotArmed, WakeAlarm } from './wake-alarm.ts';

const two = (value: number) => String(value).padStart(2, '0');

/** `12/01/26 06:59:00` in the computer's zone, for pmset(1). */
export function pmsetTime(at: number): string {
  const time = new Date(at);
  const day = [time.getMonth() + 1, time.getDate(), time.getFullYear() % 100].map(two).join('/');
  return `${day} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`;
}

/** The arguments that arm or cancel a wake-up, for root: the name identifies it. */
export const pmsetWords = (name: string, at: number, cancel = false): string[] => [
  ...['-n', '/usr/bin/pmset', 'schedule', ...(cancel ? ['cancel'] : [])],
  ...['wake', pmsetTime(at), name],
];

function pmset(name: string, env: Settings): WakeAlarm {
  const means = 'pmset';
  const disarm = async ({ at }: Armed) => void (await ask('sudo', pmsetWords(name, at, true), { env }));
  return {
    async arm(at, ours, note): Promise<Armed | NotArmed> {
      if (ours?.at === at) return ours;
      if (ours) await disarm(ours);
      note({ means, at });
      const { status, stderr } = await ask('sudo', pmsetWords(name, at), { env });
      if (status === 0) return { means, at };
      const rule = `${userInfo().username} ALL=(root) NOPASSWD: /usr/bin/pmset schedule wake *, /usr/bin/pmset schedule cancel wake *`;
      const problem = `pmset needs root to wake this computer (${stderr.trim().split('\n')[0]})`;
      return { problem, remedy: `as root: echo '${rule}' > /etc/sudoers.d/reveille && visudo -c` };
    },
    disarm,
  };
}

/** A task that wakes the computer once and does nothing; its time is in UTC. */
export function wakeTaskText(at: number): string {
  const time = (instant: number) => `${new Date(instant).toISOString().slice(0, 19)}Z`;
  return taskXml({
    description: 'Wakes the computer for an alarm of Reveille',
    trigger: `    <TimeTrigger>
      <StartBoundary>${time(at)}</StartBoundary>
      <EndBoundary>${time(at + 3_600_000)}</EndBoundary>
    </TimeTrigger>`,
    settings: `    <WakeToRun>true</WakeToRun>
    <ExecutionTimeLimit>PT1M</ExecutionTimeLimit>
    <DeleteExpiredTaskAfter>PT0S</DeleteExpiredTaskAfter>`,
    words: '/c exit 0',
  });
}

function wakeTask(name: string, env: Settings): WakeAlarm {
  const task = `${name}-wake`;
  const means = 'a task of the Task Scheduler';
  return {
    async arm(at, ours, note): Promise<Armed | NotArmed> {
      if (ours?.at === at) return ours;
      note({ means, at });
      const folder = mkdtempSync(join(tmpdir(), 'reveille-wake-'));
      const file = join(folder, 'task.xml');
      writeFileSync(file, `\ufeff${wakeTaskText(at)}`, 'utf16le');
      const { status, stderr } = await ask('schtasks', ['/Create', '/F', '/TN', task, '/XML', file], { env });
      rmSync(folder, { recursive: true, force: true });
      if (status === 0) return { means, at };
      const remedy = 'allow wake timers in the power options of Windows, then: reveille service restart';
      return { problem: `the Task Scheduler rejected the wake-up: ${stderr.trim()}`, remedy };
    },
    disarm: async () => void (await ask('schtasks', ['/Delete', '/F', '/TN', task], { env })),
  };
}

export const wakeElsewhere = (platform: 'darwin' | 'win32', name: string, environment: Settings): WakeAlarm =>
  platform === 'darwin' ? pmset(name, environment) : wakeTask(name, environment);
