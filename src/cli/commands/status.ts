/** `reveille status`, `stop` and `logs`: the running `reveille up` of this home, in a terminal or as a service. */
import { wait } from '../../kit/clock/clock.ts';
import { fromNow, localTime } from '../../kit/clock/local-time.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { userOf } from '../access/chronos.ts';
import { executorClient } from '../access/executor.ts';
import { routerClient } from '../access/router.ts';
import { ignored } from '../access/unreachable.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { type RunRecord, readRun } from '../home/home.ts';
import { readerOf } from '../screens/reader.ts';
import { facts } from '../screens/render.ts';
import { findService } from '../service/installation.ts';
import { listenerAt } from '../up/listener.ts';
import { nextFire, nextFireText, noFireText, serviceLogs } from './service.ts';

const HEALTH_MS = 3000;
/** `up` drains for at most 50 s. */
const STOP_MS = 60_000;
const STOP_POLL_MS = 100;

/** The service of this home; `undefined` without one, and on a computer without a service manager. */
async function serviceOf(context: CliContext) {
  const service = await findService(context).catch(ignored);
  if (service === undefined) return undefined;
  const { manager, place } = service;
  const { state, pid } = await manager.state(place.name);
  return state === 'missing' ? undefined : { manager, place, state, pid };
}

type Daemon = { readonly name: string; readonly url: string; readonly ready: boolean };

async function daemonsOf(run: RunRecord): Promise<Daemon[]> {
  const named = [
    ['chronosd', run.chronos_url],
    ['router', run.router_url],
    ['executor', run.executor_url],
  ] as const;
  return Promise.all(
    named.flatMap(([name, url]) =>
      url === undefined
        ? []
        : [
            listenerAt(url, HEALTH_MS).then((found) => ({
              name,
              url,
              ready: found.kind === 'daemon' && found.name === name,
            })),
          ],
    ),
  );
}

/** `reveille status`: exit status 0 when everything runs, 3 when nothing runs. */
export async function status(context: CliContext): Promise<void> {
  const { out, home } = context;
  const look = readerOf(context);
  const run = readRun(home);
  const service = await serviceOf(context);
  if (run === undefined) {
    context.process.exitCode = EXIT.notRunning;
    out.result({ running: false, service: service?.state ?? null, home: home.path }, [
      `Reveille is not running (home ${home.path}).`,
      ...facts(
        [
          [
            'start',
            service ? 'reveille service restart' : 'reveille up, or in the background: reveille service install',
          ],
          ['check', 'reveille doctor'],
        ],
        look,
      ),
    ]);
    return;
  }
  const [daemons, next, questions, machine] = await Promise.all([
    daemonsOf(run),
    nextFire(context),
    executorClient(context, undefined).list({ status: 'awaiting_approval', limit: 500 }).catch(ignored),
    routerClient(context).show(userOf(context, undefined)).catch(ignored),
  ]);
  const startedAt = Date.parse(run.started_at);
  const waiting = questions?.length ?? 0;
  const how =
    service?.state === 'running' && service.pid === run.pid
      ? `as a service of ${service.manager.title}`
      : 'in a terminal';
  const consoleUrl = run.console_url ?? run.public_url;
  const lines = [
    `Reveille runs ${how} as process ${run.pid}, since ${localTime(startedAt, look)} (${fromNow(startedAt, look.now)}).`,
    ...facts(
      [
        ...daemons.map(({ name, url, ready }): [string, string] => [name, `${ready ? 'ready' : 'not ready'}  ${url}`]),
        ['agent', machine === undefined ? 'unknown' : machine.state],
        ['next fire', next === undefined ? await noFireText(context) : nextFireText(next, look)],
        [
          'approvals',
          waiting === 0 ? 'none waiting' : `${waiting} waiting; see: reveille intent list --status awaiting_approval`,
        ],
        ['console', consoleUrl === undefined ? undefined : `${consoleUrl}  open it with: reveille open`],
        ['home', home.path],
      ],
      look,
    ),
  ];
  out.result(
    {
      running: true,
      pid: run.pid,
      started_at: run.started_at,
      service: service?.state ?? null,
      daemons,
      agent: machine?.state ?? null,
      next_fire_at: next?.at ?? null,
      approvals_waiting: questions === undefined ? null : waiting,
      console_url: consoleUrl ?? null,
      home: home.path,
    },
    lines,
  );
  if (daemons.some(({ ready }) => !ready)) context.process.exitCode = EXIT.failed;
}

/** `reveille stop`: stops the service, or the `reveille up` of a terminal, and waits until it has ended. */
export async function stop(context: CliContext): Promise<void> {
  const { out, home, clock } = context;
  const service = await serviceOf(context);
  const run = readRun(home);
  const isService = service !== undefined && service.state !== 'stopped';
  if (!isService && run === undefined) {
    out.result({ stopped: false, running: false }, `Reveille is not running (home ${home.path}).`);
    return;
  }
  if (isService) await service.manager.stop(service.place.name);
  else process.kill(run!.pid, 'SIGTERM');
  const end = clock.monotonic() + STOP_MS;
  while (run !== undefined && readRun(home)?.pid === run.pid) {
    if (clock.monotonic() > end)
      throw new ReveilleError('unavailable', `process ${run.pid} still runs after ${STOP_MS / 1000} s; end it by hand`);
    out.progress('Stopping; turns in progress may finish');
    await wait(clock, STOP_POLL_MS);
  }
  const restart = isService ? 'reveille service restart' : 'reveille up';
  out.result({ stopped: true, pid: run?.pid ?? null }, `Stopped. Alarms are kept; start again with: ${restart}`);
}

/** `reveille logs`: the log of the service. @throws ReveilleError `not_found` without a service, with the way to a log */
export async function logs(context: CliContext, flags: { follow?: boolean; lines?: string }): Promise<void> {
  if ((await serviceOf(context)) === undefined)
    throw new ReveilleError(
      'not_found',
      'there is no service with a log: "reveille up" writes to its terminal; for what the agent did use: reveille log',
    );
  await serviceLogs(context, flags);
}
