/** The health of a service: it has started, it answers, and the doctor reports nothing broken. */
import { wait } from '../../kit/clock/clock.ts';
import { silentLogger } from '../../kit/log/log.ts';
import { settleOrphans } from '../../router/reaper/reap.ts';
import type { CliContext } from '../context.ts';
import type { Check } from '../doctor/check.ts';
import { type RunRecord, readRun } from '../home/home.ts';
import { listenerAt } from '../up/listener.ts';
import { ask } from './ask.ts';
import { EXPERIMENTAL_MANAGERS, marked } from './experimental.ts';
import { currentVersion, serviceLocation } from './folders.ts';
import type { ServiceManager } from './manager.ts';

const START_MS = 60_000;
const LOOK_MS = 250;
/** Interval of reading the log of a failed service again until it has an error. */
const LOG_LOOKS = 12;
/** A service with this many failures is not waited for. */
const FAILURES = 3;
const DOCTOR_MS = 60_000;
/** Time for agents to finish a turn when the service is removed. */
const TURN_MS = 60_000;

export type Health =
  | { readonly healthy: true; readonly run: RunRecord }
  | { readonly healthy: false; readonly why: string };

/** The log line with the reason of the failure. The log may be written after the service has ended. */
async function reasonOf({ clock }: CliContext, manager: ServiceManager, name: string): Promise<string> {
  for (let looks = 0; ; looks++) {
    const lines = await manager.lastLines(name, 40);
    const error = lines.findLast((line) => /error: /i.test(line));
    if (error === undefined && looks < LOG_LOOKS) await wait(clock, LOOK_MS);
    else return (error ?? lines.at(-1))?.replace(/^.*?error: /i, '') ?? 'its log is empty';
  }
}

/** Waits until a newly started service answers or has failed. */
export async function whenUp(context: CliContext, manager: ServiceManager, name: string): Promise<Health> {
  const { clock, home } = context;
  const until = clock.monotonic() + START_MS;
  let failures = 0;
  while (clock.monotonic() < until) {
    const run = readRun(home);
    if (run && (await listenerAt(run.chronos_url)).kind === 'daemon') return { healthy: true, run };
    const { state } = await manager.state(name);
    if (state === 'failing' || state === 'missing' || state === 'stopped') failures++;
    if (failures >= FAILURES) break;
    await wait(clock, LOOK_MS);
  }
  return { healthy: false, why: await reasonOf(context, manager, name) };
}

/** The doctor's check: an installed service whose manager is experimental here. */
export function checkService({ environment, home }: CliContext, platform = process.platform): Check | undefined {
  const manager = EXPERIMENTAL_MANAGERS[platform];
  if (manager === undefined || currentVersion(serviceLocation(environment, home.path, platform)) === undefined)
    return undefined;
  const detail = `"reveille up" is a service of ${marked(manager, platform)}`;
  return { name: 'service', status: 'note', detail };
}

/** Broken checks of a program's doctor, by name, with their details. `undefined` without output. */
export async function brokenChecks(
  { environment, home }: CliContext,
  command: readonly [string, string],
): Promise<ReadonlyMap<string, string> | undefined> {
  const [node, program] = command;
  const env = { ...environment, REVEILLE_HOME: home.path };
  const { stdout } = await ask(node, [program, 'doctor', '--json'], { env, limitMs: DOCTOR_MS });
  try {
    const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string; detail: string }[] };
    return new Map(checks.filter(({ status }) => status === 'broken').map(({ name, detail }) => [name, detail]));
  } catch {
    return undefined;
  }
}

/** Stops the agents that run after the router has stopped. A turn in progress may finish. */
export async function endMachines({ settings, clock }: CliContext): Promise<number> {
  const options = { graceMs: 0, busyMs: 500, longestBusyMs: TURN_MS, clock, log: silentLogger };
  return settleOrphans({ dataDir: settings.ROUTER_DATA_DIR!, ...options });
}
