/**
 * Wake-ups on Linux. First a timer of the user's systemd with `WakeSystem=`: the kernel keeps all such timers and wakes for
 * the first, so none is overwritten. If that is not allowed, the alarm of the hardware clock (`/sys/class/rtc`), which
 * stores one value for all programs.
 */
import { accessSync, constants, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { thrownText } from '../../wire/errors.ts';
import type { Settings } from '../../wire/settings.ts';
import { ask } from '../service/ask.ts';
import type { Armed, NotArmed, WakeAlarm } from './wake-alarm.ts';

const CLOCKS = '/sys/class/rtc';
/** The hardware clock counts whole seconds, and is read at another moment than ours. */
const SLACK_SECONDS = 2;

const TIMER = 'a systemd timer';

/** `2026-12-01 06:59:00 UTC`, for systemd.time(7). */
const calendarOf = (at: number) => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** The command that arms a timer; see systemd-run(1) and `WakeSystem=` in systemd.timer(5). */
export const timerWords = (unit: string, at: number): string[] => [
  ...['--user', '--quiet', `--unit=${unit}`, `--on-calendar=${calendarOf(at)}`],
  ...['--timer-property=WakeSystem=true', '--timer-property=AccuracySec=1s'],
  ...['--timer-property=RemainAfterElapse=no', '--description=Wakes the computer for an alarm of Reveille', 'true'],
];

function timerWake(unit: string, env: Settings): WakeAlarm {
  const control = (...words: string[]) => ask('systemctl', ['--user', ...words], { env });
  const stop = async () => {
    await control('stop', `${unit}.timer`, `${unit}.service`);
    await control('reset-failed', `${unit}.timer`, `${unit}.service`);
  };
  return {
    async arm(at, ours, note) {
      if (ours?.means === TIMER && ours.at === at) return ours;
      note({ means: TIMER, at });
      await stop();
      const made = await ask('systemd-run', timerWords(unit, at), { env });
      const { stdout } = await control('show', `${unit}.timer`, '--property=ActiveState');
      if (made.status === 0 && stdout.trim() === 'ActiveState=active') return { means: TIMER, at };
      await stop();
      return { problem: "the user's systemd may not set timers that wake the computer (CAP_WAKE_ALARM)" };
    },
    disarm: stop,
  };
}

/** The alarm of a hardware clock: seconds since 1970 by that clock, or none. */
class HardwareClock {
  readonly #folder: string;
  readonly #now: () => number;
  readonly means: string;

  constructor(folder: string, now: () => number) {
    this.#folder = folder;
    this.#now = now;
    this.means = join(folder, 'wakealarm');
  }

  /** The armed value that is not past. */
  read(): number | undefined {
    const seconds = Number(readFileSync(this.means, 'utf8').trim() || 0);
    return seconds > this.seconds(this.#now()) ? seconds : undefined;
  }

  /** An instant by this clock, which may be set to local time, or wrong. */
  seconds(at: number): number {
    const own = join(this.#folder, 'since_epoch');
    const ahead = existsSync(own) ? Number(readFileSync(own, 'utf8').trim()) - this.#now() / 1000 : 0;
    return Math.floor(at / 1000 + ahead);
  }

  /** The kernel does not overwrite an alarm: it is removed first. */
  write(seconds: number | undefined): void {
    writeFileSync(this.means, '0\n');
    if (seconds !== undefined) writeFileSync(this.means, `${seconds}\n`);
  }
}

const isNear = (one: number, other: number) => Math.abs(one - other) <= SLACK_SECONDS;
const isOurs = (present: number, ours: Armed | undefined) =>
  ours?.marks?.some((mark) => isNear(present, mark)) === true;

/** @param folder of a hardware clock, such as `/sys/class/rtc/rtc0` */
export function hardwareWake(folder: string, now: () => number): WakeAlarm {
  const clock = new HardwareClock(folder, now);
  /** Another program's wake-up that is armed, or that ours replaced and is still ahead. */
  const othersOf = (ours: Armed | undefined) => {
    const present = clock.read();
    if (present !== undefined && !isOurs(present, ours)) return present;
    return ours?.displaced !== undefined && ours.displaced > clock.seconds(now()) ? ours.displaced : undefined;
  };
  return {
    async arm(at, ours, note) {
      const { means } = clock;
      const mark = clock.seconds(at);
      const present = clock.read();
      if (present !== undefined && isOurs(present, ours) && isNear(mark, present)) return { ...ours!, at };
      const others = othersOf(ours);
      const displaced = others === undefined ? {} : { displaced: others };
      note({ means, at, marks: [mark, ...(ours?.marks?.slice(0, 1) ?? [])], ...displaced });
      const behind = others !== undefined && others <= mark;
      try {
        if (!(behind && present === others)) clock.write(behind ? others : mark);
      } catch (thrown) {
        if (others !== undefined) attempt(() => clock.write(others));
        return { problem: `${means} rejects it: ${thrownText(thrown)}` };
      }
      if (behind) return { problem: 'another program wakes the computer earlier', behind: at - (mark - others) * 1000 };
      return { means, at, marks: [mark], ...displaced };
    },
    async disarm(ours) {
      const others = othersOf(ours);
      if (others !== undefined && clock.read() === others) return;
      attempt(() => clock.write(others));
    },
  };
}

function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // The next process that arms it detects this.
  }
}

/** Why this computer cannot be woken at all; `undefined` when it may be possible. */
export function cannotWake(root = ''): NotArmed | undefined {
  const clocks = clocksIn(join(root, CLOCKS));
  if (clocks.length === 0)
    return { problem: `it has no clock for it (nothing in ${CLOCKS}), as in containers and many virtual machines` };
  const alarms = clocks.map((folder) => join(folder, 'wakealarm')).filter((path) => existsSync(path));
  if (alarms.length === 0) return { problem: `its clock has no alarm (no wakealarm in ${clocks[0]})` };
  const isContainer = ['/run/systemd/container', '/.dockerenv', '/run/.containerenv'].some((path) =>
    existsSync(root + path),
  );
  if (isContainer && !alarms.some(isWritable)) return { problem: 'a container cannot wake its computer' };
  return undefined;
}

function clocksIn(folder: string): string[] {
  return existsSync(folder)
    ? readdirSync(folder)
        .sort()
        .map((name) => join(folder, name))
    : [];
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** The rule that lets a user write the alarm of the hardware clock, as one line for root. */
export function udevRemedy(clock: string, person: string): string {
  const rule = `SUBSYSTEM=="rtc", KERNEL=="${clock}", RUN+="/bin/chown ${person} /sys%p/wakealarm"`;
  return `as root: echo '${rule}' > /etc/udev/rules.d/90-reveille.rules && udevadm trigger --action=add ${CLOCKS}/${clock}`;
}

type LinuxOptions = { name: string; environment: Settings; now: () => number; root?: string };

export function linuxWake({ name, environment, now, root = '' }: LinuxOptions): WakeAlarm {
  const timer = timerWake(`${name}-wake`, environment);
  const folders = () => clocksIn(join(root, CLOCKS)).filter((folder) => existsSync(join(folder, 'wakealarm')));
  const hardwareOf = (folder: string) => hardwareWake(folder, now);
  const meansOf = (armed: Armed) => {
    const folder = folders().find((one) => armed.means === join(one, 'wakealarm'));
    return folder === undefined ? timer : hardwareOf(folder);
  };
  /** Asked once: the rights of systemd do not change during a process. */
  let isTimerRefused = false;
  return {
    async arm(at, ours, note) {
      const impossible = cannotWake(root);
      if (impossible) return impossible;
      if (!isTimerRefused) {
        const byTimer = await timer.arm(at, ours?.means === TIMER ? ours : undefined, note);
        if ('means' in byTimer) {
          // An earlier process had no such right.
          if (ours && ours.means !== TIMER) await meansOf(ours).disarm(ours);
          return byTimer;
        }
        isTimerRefused = true;
      }
      const [folder] = folders();
      if (isWritable(join(folder!, 'wakealarm')))
        return hardwareOf(folder!).arm(at, ours?.means === TIMER ? undefined : ours, note);
      const clock = folder!.slice(folder!.lastIndexOf('/') + 1);
      const problem = `no right to wake this computer: systemd may not set such timers for a user, and ${join(folder!, 'wakealarm')} is root's`;
      return { problem, remedy: udevRemedy(clock, userInfo().username) };
    },
    disarm: (ours) => meansOf(ours).disarm(ours),
  };
}
