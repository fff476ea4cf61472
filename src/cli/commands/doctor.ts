/** `reveille doctor`: looks at everything an installation needs and says what to do about what is wrong. */

import { z } from 'zod';
import { printable } from '../../text-kit/hidden-characters.ts';
import { parseSettings, urlSetting } from '../../wire/settings.ts';
import { localAddress } from '../chronos-access.ts';
import { pad, wrap } from '../columns.ts';
import type { CliContext } from '../context.ts';
import { type Check, type CheckStatus, orUndefined } from '../doctor/check.ts';
import { checkDaemon, checkExecutorToken, checkMachine, checkTransport, type Place } from '../doctor/daemons.ts';
import { checkClock, checkNode } from '../doctor/host.ts';
import {
  checkConfigFile,
  checkFolders,
  checkKey,
  checkRunRecord,
  checkSecrets,
  runningHere,
} from '../doctor/own-files.ts';
import { checkExecutorFiles, checkModel, checkSettings, checkTools } from '../doctor/settings.ts';
import { EXIT } from '../exit-status.ts';
import { lookOf } from '../look.ts';
import type { Look } from '../render.ts';
import { serverTime } from '../server-clock.ts';

const MARKS: Readonly<Record<CheckStatus, string>> = { ok: '✓', note: '·', warning: '!', broken: '✗' };
const COLOURS = { ok: 'green', note: 'dim', warning: 'yellow', broken: 'red' } as const;

/** What the doctor says, one check below the other. */
export function renderChecks(checks: readonly Check[], look: Look): string[] {
  const nameWidth = Math.max(...checks.map(({ name }) => name.length));
  const indent = ' '.repeat(2 + nameWidth + 2);
  const room = Math.max(30, look.width - indent.length);
  const lines = checks.flatMap(({ name, status, detail, remedy }) => {
    const [first, ...rest] = wrap(printable(detail), room);
    const mark = look.paint(COLOURS[status], MARKS[status]);
    const advice = remedy === undefined ? [] : wrap(`→ ${printable(remedy)}`, room);
    return [`${mark} ${pad(name, nameWidth)}  ${first}`, ...[...rest, ...advice].map((line) => `${indent}${line}`)];
  });
  const count = (status: CheckStatus) => checks.filter((check) => check.status === status).length;
  const broken = count('broken');
  const warnings = count('warning');
  const verdict =
    broken > 0
      ? `${broken} of ${checks.length} checks failed.`
      : warnings > 0
        ? 'It works, with a warning.'
        : 'All is well.';
  return [...lines, '', verdict];
}

const DEFAULT_PORTS = { CHRONOS_PORT: '9096', ROUTER_PORT: '8088', EXECUTOR_PORT: '8081' } as const;

function places(context: CliContext): { chronosd: Place; router: Place; executor: Place } {
  const { settings } = context;
  const run = runningHere(context);
  const addresses = z.object({ MATRIX_CHRONOS_URL: urlSetting.optional(), NEO_EXECUTOR_URL: urlSetting.optional() });
  const { MATRIX_CHRONOS_URL, NEO_EXECUTOR_URL }: z.output<typeof addresses> =
    orUndefined(() => parseSettings(addresses, settings)) ?? {};
  const local = (host: string | undefined, name: keyof typeof DEFAULT_PORTS) => {
    const port = Number(settings[name]);
    const usable = port > 0 && port < 65536 ? port : Number(DEFAULT_PORTS[name]);
    return localAddress(host, usable, settings[name.replace('_PORT', '_TLS_CERT')]);
  };
  const byRun = run && '"reveille up" says that it is there';
  const bySetting = MATRIX_CHRONOS_URL && 'MATRIX_CHRONOS_URL names it';
  return {
    chronosd: {
      name: 'chronosd',
      url: MATRIX_CHRONOS_URL ?? run?.chronos_url ?? local(settings.CHRONOS_HOST, 'CHRONOS_PORT'),
      because: bySetting ?? byRun,
      portVariable: 'CHRONOS_PORT',
    },
    router: {
      name: 'router',
      url: run?.router_url ?? local(settings.ROUTER_HOST, 'ROUTER_PORT'),
      because: byRun,
      portVariable: 'ROUTER_PORT',
    },
    executor: {
      name: 'executor',
      url: NEO_EXECUTOR_URL ?? run?.executor_url ?? local(settings.EXECUTOR_HOST, 'EXECUTOR_PORT'),
      // One that was started by an older version has none.
      because: NEO_EXECUTOR_URL ? 'NEO_EXECUTOR_URL names it' : run?.executor_url && byRun,
      portVariable: 'EXECUTOR_PORT',
    },
  };
}

type DaemonCheck = Awaited<ReturnType<typeof checkDaemon>>;

async function checkDaemons(context: CliContext): Promise<{ checks: Check[]; clock: Check }> {
  const { chronosd, router, executor } = places(context);
  const daemons = [chronosd, router, executor].map((place) => checkDaemon(place));
  const [ours, theirs, rail] = (await Promise.all(daemons)) as [DaemonCheck, DaemonCheck, DaemonCheck];
  const time = ours.up ? await serverTime(chronosd.url, context.clock) : undefined;
  const token = ours.up ? await checkTransport(context) : undefined;
  const machine = theirs.up ? await checkMachine(context, router.url) : undefined;
  const entry = rail.up ? await checkExecutorToken(context, executor.url) : undefined;
  const found = [ours.check, token, theirs.check, machine, rail.check, entry];
  const checks = found.filter((check) => check !== undefined);
  return { checks, clock: checkClock(context.clock.now(), time) };
}

export async function doctor(context: CliContext): Promise<void> {
  const { checks: daemons, clock } = await checkDaemons(context);
  const run = checkRunRecord(context);
  const checks: Check[] = [
    checkNode(process.versions.node),
    clock,
    ...checkFolders(context),
    await checkConfigFile(context),
    ...checkSettings(context),
    checkSecrets(context),
    checkKey(context),
    ...(run ? [run] : []),
    ...daemons,
    checkModel(context),
    checkTools(),
    await checkExecutorFiles(context),
  ];
  const ok = checks.every(({ status }) => status !== 'broken');
  context.out.result({ checks, ok }, renderChecks(checks, lookOf(context)));
  if (!ok) process.exitCode = EXIT.failed;
}
