/** `reveille import`: the jobs of other schedulers as alarms. It shows them, and sets them with `--apply`. */
import { execFileSync } from 'node:child_process';
import { homedir } from 'node:os';
import { calendarTime } from '../../kit/clock/local-time.ts';
import { isZone, machineZone } from '../../kit/clock/zone.ts';
import { joinCommand } from '../../kit/phrase/command-line.ts';
import { isProgram } from '../../kit/process/tools.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { conversationIdSchema } from '../../wire/alarm.ts';
import type { AlarmStatus } from '../../wire/alarm-fields.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { parseInstant } from '../../wire/rfc3339.ts';
import { alarmClient, labelOf, personOf, provesPerson, userOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { choiceFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { claudeFile, claudeJobs } from '../import/claude.ts';
import { crontabJobs } from '../import/crontab.ts';
import { IMPORT_SOURCES, type ImportContext, type ImportSource, type JobList } from '../import/job.ts';
import { machineNeeds } from '../import/machine-needs.ts';
import { openclawFile, openclawJobs } from '../import/openclaw.ts';
import { openclawDatabaseText } from '../import/openclaw-database.ts';
import { type Planned, planImport } from '../import/plan.ts';
import { sourceText } from '../import/source-file.ts';
import { systemdFolder, systemdJobs } from '../import/systemd.ts';
import { counted, wrap } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import type { Reader } from '../screens/render.ts';

export type ImportFlags = {
  apply?: boolean;
  zone?: string;
  conversation?: string;
  asMessages?: boolean;
  withoutGates?: boolean;
  system?: boolean;
  userTable?: boolean;
  as?: string;
};

type Applied = Planned & {
  alarm_id?: string;
  /** `kept`: an alarm of an earlier import. */
  result?: 'set' | 'kept' | 'differs';
  status?: AlarmStatus;
  /** Why an earlier alarm stays as it is. */
  conflict?: string;
};

function contextOf({ clock, environment, settings }: CliContext, flags: ImportFlags): ImportContext {
  const { zone, asMessages = false, withoutGates = false, system = false, userTable = false } = flags;
  if (system && userTable) throw new UsageError('--system and --user-table exclude each other; give one of them');
  if (zone !== undefined && !isZone(zone))
    throw new UsageError(`--zone must be an IANA time zone such as Europe/Berlin (got ${JSON.stringify(zone)})`);
  const own = zone ?? machineZone(settings.TZ);
  if (own === undefined)
    throw new UsageError('the time zone of this computer is not known; give --zone, such as --zone Europe/Berlin');
  const home = environment.HOME ?? homedir();
  const folder = process.cwd();
  let users: ReadonlySet<string> | undefined;
  return {
    ...{ now: clock.now(), zone: own, home, folder, asMessages, withoutGates, environment },
    hasUserColumn: system ? true : userTable ? false : undefined,
    read: (path) => sourceText(path),
    readBeside: sourceText,
    isUser(name) {
      users ??= userNames();
      return users.has(name);
    },
    isProgram: (name) => isProgram(name, environment.PATH, folder),
  };
}

/** The users of this computer; `root` where they are kept elsewhere. */
function userNames(): ReadonlySet<string> {
  try {
    const lines = sourceText('/etc/passwd').split('\n');
    return new Set(lines.flatMap((line) => line.split(':', 1)));
  } catch (thrown) {
    if (thrown instanceof UsageError) return new Set(['root']);
    throw thrown;
  }
}

function ownCrontab(): string {
  try {
    return execFileSync('crontab', ['-l'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 10_000 });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT')
      throw new UsageError('there is no program "crontab" here; name a file: reveille import crontab FILE', cause);
    const why = thrownText(cause).split('\n').filter(Boolean).at(-1);
    throw new UsageError(`"crontab -l" has no table (${why}); name a file: reveille import crontab FILE`, cause);
  }
}

function jobsOf(source: ImportSource, file: string | undefined, context: ImportContext): JobList {
  const { read } = context;
  switch (source) {
    case 'openclaw': {
      const path = file ?? openclawFile(context);
      const text = /\.(?:sqlite3?|db)$/.test(path) ? openclawDatabaseText(path) : read(path);
      return openclawJobs(text, path, context);
    }
    case 'claude': {
      const path = file ?? claudeFile(context);
      return claudeJobs(read(path), path, context);
    }
    case 'crontab':
      return file === undefined
        ? crontabJobs(ownCrontab(), 'crontab -l', { ...context, hasUserColumn: false })
        : crontabJobs(read(file), file, context);
    case 'systemd':
      return systemdJobs(file ?? systemdFolder(context), context);
  }
}

/** Sets the alarms. A repeated import finds those of the first by their keys. */
async function apply(context: CliContext, flags: ImportFlags, plans: readonly Planned[]): Promise<Applied[]> {
  const client = alarmClient(context, personOf(context, flags));
  const results: Applied[] = [];
  for (const plan of plans) {
    const { alarm } = plan;
    if (alarm === undefined) {
      results.push(plan);
      continue;
    }
    try {
      const { id, status, deduped } = await client.createAlarm(alarm);
      if (plan.paused && !deduped) await client.pauseAlarm(id);
      const now = plan.paused && !deduped ? 'paused' : status;
      results.push({ ...plan, alarm_id: id, status: now, result: deduped ? 'kept' : 'set' });
    } catch (thrown) {
      if (!(thrown instanceof ReveilleError)) throw thrown;
      if (thrown.code === 'conflict') {
        results.push({ ...plan, result: 'differs', conflict: thrown.message });
        continue;
      }
      const done = results.filter(({ result }) => result !== undefined).length;
      const message = `${plan.source} job ${oneLine(plan.id)}: ${thrown.message}; ${counted(done, 'alarm')} before it are set, and the same command sets the rest`;
      throw new ReveilleError(thrown.code, message, { cause: thrown, retryable: thrown.retryable });
    }
  }
  return results;
}

function resultText({ result, alarm_id = '', status, conflict, paused }: Applied): string | undefined {
  switch (result) {
    case 'set':
      return `alarm ${alarm_id}${status === 'paused' ? ', paused' : ''}`;
    case 'kept':
      return `alarm ${alarm_id} of an earlier import${status === 'active' ? '' : `, which is ${status}`}`;
    case 'differs':
      return `not changed: ${conflict}`;
    default:
      return paused ? 'a paused alarm, because the job is switched off' : undefined;
  }
}

function rowsOf(job: Applied, { now, width, zone, paint }: Reader): string[] {
  const { alarm, becomes = '', next = [], not_imported, differs } = job;
  const at = { now, zone: alarm?.timezone ?? zone };
  const fires = next.map((instant) => calendarTime(parseInstant(instant)!, at)).join(', ');
  const where = alarm?.kind === 'cron' && alarm.timezone !== undefined ? ` in ${alarm.timezone}` : '';
  const facts: readonly (readonly [string, string | undefined])[] =
    not_imported === undefined
      ? [
          ['becomes', becomes.endsWith(where) ? becomes : `${becomes}${where}`],
          ['next', fires],
          ...(alarm?.run
            ? ([['runs', joinCommand(alarm.run.argv)]] as const)
            : (alarm?.wake_message ?? '').split('\n').map((line, at) => [at === 0 ? 'message' : '', line] as const)),
          ...differs.map((sentence) => ['differs', sentence] as const),
          ['result', resultText(job)],
        ]
      : [['skipped', not_imported]];
  const lines = facts.flatMap(([name, text]) => {
    if (text === undefined) return [];
    const [first = '', ...rest] = wrap(oneLine(text), Math.max(40, width - 12));
    return [`  ${paint('dim', name.padEnd(8))}  ${first}`.trimEnd(), ...rest.map((line) => `${' '.repeat(12)}${line}`)];
  });
  return ['', paint('bold', oneLine(job.name)), ...lines];
}

/** Commands that no person sets run only where the machine allows them. */
const UNPROVED =
  'No person is proved here, because an agent runs this command, or CHRONOS_ADMIN_TOKEN of its chronosd is missing. Commands then fail unless the machine has --agent-checks commands: import where you ran "reveille up", or use --as-messages.';

function rendered({ from, notes }: JobList, jobs: readonly Applied[], isApplied: boolean, look: Reader): string[] {
  const fit = jobs.filter(({ alarm }) => alarm !== undefined);
  const missing = jobs.length - fit.length;
  const skipped = missing === 0 ? '' : `, ${missing} cannot be carried over`;
  const dry = fit.length === 0 ? [] : ['', 'Nothing was set. Set these alarms with --apply.'];
  const count = (result: Applied['result']) => jobs.filter((job) => job.result === result).length;
  const summary = `${counted(count('set'), 'alarm')} set, ${count('kept')} of an earlier import, ${count('differs')} not changed`;
  const ofAll = notes.flatMap((note) => wrap(note, Math.max(40, look.width - 2)).map((line) => `  ${line}`));
  return [
    `${counted(jobs.length, 'job')} in ${oneLine(from)}${skipped}`,
    ...jobs.flatMap((job) => rowsOf(job, look)),
    ...(fit.length === 0 ? [] : ['', 'For every job', ...ofAll]),
    ...(isApplied ? ['', summary] : dry),
  ];
}

export async function importJobs(
  context: CliContext,
  flags: ImportFlags,
  given: string,
  file: string | undefined,
): Promise<void> {
  const source = choiceFlag('the source', given, IMPORT_SOURCES)!;
  const { conversation } = flags;
  if (conversation !== undefined && !conversationIdSchema.safeParse(conversation).success)
    throw new UsageError(`--conversation must be an id such as main (got ${JSON.stringify(conversation)})`);
  const known = contextOf(context, flags);
  const userId = flags.apply || known.asMessages || source === 'claude' ? undefined : labelOf(context);
  const from = userId === undefined ? known : { ...known, lacks: await machineNeeds(context, userOf(context, userId)) };
  const read = jobsOf(source, file, from);
  const plans = planImport(source, read, from, conversation);
  const isUnproved = plans.some(({ alarm }) => alarm?.run) && !provesPerson(context, personOf(context, flags));
  const list = isUnproved ? { ...read, notes: [...read.notes, UNPROVED] } : read;
  const results = flags.apply ? await apply(context, flags, plans) : plans;
  context.out.list(results, () => rendered(list, results, flags.apply === true, readerOf(context)));
}
