/** The console's backend for the user of this installation: its backend calls and their credentials. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { viewDay } from '../../chronometric/view/day-view.ts';
import { type Calendars, withoutHolidays } from '../../chronos/alarm/holidays.ts';
import { compileRule, compileSchedule } from '../../chronos/alarm/schedule.ts';
import type {
  ApproverPort,
  Check,
  ConsoleBackend,
  ConsoleNotifications,
  FireTimesOf,
  NotificationChannel,
  Part,
  PasskeyPort,
  ReceiptVerdict,
  SeriesOf,
} from '../../console/backend.ts';
import { machineZone } from '../../kit/clock/zone.ts';
import { withoutColours } from '../../kit/text/hidden-characters.ts';
import { type ChannelView, DEFAULT_KINDS, type NotificationChannels } from '../../notify/client.ts';
import { NOTIFICATION_KINDS } from '../../notify/news.ts';
import { shownArgument } from '../../router/providers/redaction.ts';
import type { Users } from '../../router/public/users.ts';
import { ReveilleError, toReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { knownApprover, openApproverWith } from '../approver/approver-key.ts';
import { answerBy, revocationRequest, signedUntil, vouchedFor } from '../approver/statements.ts';
import { instantAt } from '../commands/time.ts';
import type { CliContext } from '../context.ts';
import { readRun } from '../home/home.ts';
import { calendarsOf } from './calendars.ts';
import { chronometricAccess } from './chronometric.ts';
import { alarmClient, userOf } from './chronos.ts';
import { executorAdmin, executorClient } from './executor.ts';
import { NO_OAUTH, type OauthAccess } from './oauth-server.ts';
import { personClient, routerClient } from './router.ts';
import { hoursOfUser } from './user-hours.ts';

/** An available part, or the reason why it is unavailable. */
function part<T>(make: () => T): Part<T> {
  try {
    return { there: make() };
  } catch (thrown) {
    if (thrown instanceof ReveilleError) return { missing: thrown.message };
    throw thrown;
  }
}

/** The schedule engine of chronosd itself, so that a forecast is exact. */
export function scheduleEngine(calendars: Pick<Calendars, 'daysOf'>): Pick<ConsoleBackend, 'seriesOf' | 'ringsOf'> {
  const seriesOf: SeriesOf = ({ cron = '', rrule, zone: timezone, anchor, start = anchor, holidays: calendar }) => {
    const series = rrule === undefined ? compileSchedule(cron, timezone, anchor) : compileRule(rrule, timezone, start);
    return calendar === undefined ? series : withoutHolidays(series, { calendar, timezone, calendars });
  };
  const ringsOf: FireTimesOf = ({ after, until, atMost, ...rhythm }) => {
    const schedule = seriesOf({ ...rhythm, anchor: after });
    const rings: number[] = [];
    for (let at = after; rings.length < atMost; ) {
      const next = schedule.next(at);
      if (next === undefined || next > until) break;
      rings.push(next);
      at = next;
    }
    return rings;
  };
  return { seriesOf, ringsOf };
}

/** The key of the installation's user. Each answer is signed on demand; the key is not kept open. */
function approverOf({ environment, clock }: CliContext): ApproverPort {
  return {
    known() {
      const known = knownApprover(environment);
      return known && { publicKey: known.publicKey, name: known.name, isSealed: known.kept === 'sealed file' };
    },
    async sign(said, step, passphrase) {
      const key = await openApproverWith(environment, passphrase, () => clock.now());
      return answerBy(key, said, step, clock.now());
    },
  };
}

const VERDICT_COLUMNS = 100;

/** As `reveille receipt verify`. @param keys expected executors; without them the key in the receipt */
export async function verifyReceipt(receipt: string, keys: readonly string[] | undefined): Promise<ReceiptVerdict> {
  const [{ readValues }, { verifyReceipts }, { linesOf }] = await Promise.all([
    import('../../executor/receipt/receipt-text.ts'),
    import('../../executor/receipt/verify-receipt.ts'),
    import('../screens/receipt-text.ts'),
  ]);
  const words = { columns: VERDICT_COLUMNS, paint: (_: unknown, text: string) => text };
  const lines: string[] = [];
  let isWhole = true;
  for await (const checked of verifyReceipts(readValues(receipt), { keys, approvers: undefined })) {
    if ('unreadable' in checked) return { isWhole: false, lines: [checked.unreadable.message] };
    const { report, line } = checked;
    if (report.broken) isWhole = false;
    const expected = { keyExpected: keys !== undefined && report.broken?.property !== 'key', approverExpected: false };
    const place = { file: 'this receipt', line, ...expected, keyNamed: keys !== undefined, trustsEmbedded: !keys };
    lines.push(...linesOf(report, place, words));
  }
  return { isWhole, lines };
}

/** With the executor's own key, when its admin API answers. */
async function verify(context: CliContext, user: string, receipt: string): Promise<ReceiptVerdict> {
  const roster = await executorAdmin(context)
    .approvers(user)
    .catch(() => undefined);
  return verifyReceipt(receipt, roster && [roster.executor]);
}

const LOG_BYTES = 16 * 1024;
const LOG_LINES = 60;

/** Text and time of a line of our own log; other lines are unchanged. */
function plainLine(line: string): string {
  try {
    const { time, msg, name } = JSON.parse(line) as { time?: unknown; msg?: unknown; name?: unknown };
    if (typeof time !== 'number' || typeof msg !== 'string') return line;
    return `${formatInstant(time)} ${String(name ?? '')}: ${msg}`;
  } catch {
    return line;
  }
}

/** The last lines of a machine's process, as the router quotes them: without possible secrets. */
export async function lastLines({ settings }: Pick<CliContext, 'settings'>, user: string): Promise<readonly string[]> {
  const name = `${createHash('sha256').update(user).digest('hex').slice(0, 32)}.log`;
  const path = join(settings.ROUTER_DATA_DIR!, 'machine-logs', name);
  const file = await open(path, 'r').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return undefined;
    throw thrown;
  });
  if (!file) return [];
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, LOG_BYTES));
    await file.read(buffer, 0, buffer.length, size - buffer.length);
    const lines = withoutColours(buffer.toString('utf8'))
      .split('\n')
      .filter((line) => line.trim() !== '');
    const quote = (line: string) =>
      line
        .split(' ')
        .map((word, at, words) => shownArgument(word, words[at - 1]))
        .join(' ');
    return lines.slice(-LOG_LINES).map((line) => quote(plainLine(line)));
  } finally {
    await file.close();
  }
}

async function checks(context: CliContext): Promise<readonly Check[]> {
  const { examine } = await import('../commands/doctor.ts');
  return (await examine(context)).checks;
}

async function dayOf(context: CliContext, date: string | undefined) {
  const { callContext, state } = await chronometricAccess(context);
  try {
    return viewDay(state, callContext, instantAt(date, callContext));
  } catch (thrown) {
    throw new ReveilleError('unavailable', toReveilleError(thrown).message, { cause: thrown });
  } finally {
    state.close();
  }
}

/** The notification channels of this installation's user. */
function noticesOf({ settings }: CliContext, user: string, channels: NotificationChannels): ConsoleNotifications {
  const shown = (view: ChannelView): NotificationChannel => ({
    ...{ id: view.id, name: view.name, place: view.place, told: view.told, quiet: view.quiet },
    ...{ lastSentAt: view.lastToldAt, lastError: view.last_error, isPaused: view.paused === true },
  });
  return {
    ...{ kinds: NOTIFICATION_KINDS, standard: DEFAULT_KINDS },
    pushKey: () => channels.pushKey,
    list: () => channels.list(user).map(shown),
    add: (spec, { name, told, quiet }) =>
      shown(
        channels.add({
          user,
          kind: 'webpush',
          name,
          spec,
          told: NOTIFICATION_KINDS.filter((kind) => told.includes(kind)),
          quiet,
        }),
      ),
    remove: (id) => shown(channels.remove(user, id).channel),
    test: async (id) => {
      const signal = AbortSignal.timeout(TEST_MS);
      return (await channels.test(user, id, { variables: settings, signal })).why;
    },
  };
}

const TEST_MS = 15_000;

type LocalParts = {
  /** Of the router in this process. */
  onMachine: Users['onMachine'];
  /** The user's notification channels. */
  notify: NotificationChannels;
  /** Of the same process, if it is on. */
  oauth?: OauthAccess | undefined;
};

export function localBackend(
  context: CliContext,
  name: string,
  { onMachine, notify, oauth }: LocalParts,
): ConsoleBackend {
  const user = userOf(context, undefined);
  const { home, settings } = context;
  const data = ['CHRONOS', 'ROUTER', 'NEO', 'EXECUTOR', 'CHRONOMETRIC'].flatMap((system) => {
    const where = settings[`${system}_DATA_DIR`];
    return where ? [{ name: `${system.toLowerCase()} data`, where }] : [];
  });
  return {
    ...{ user, name, zone: machineZone(settings.TZ) ?? 'UTC', ...scheduleEngine(calendarsOf(context)) },
    hours: hoursOfUser(context),
    onHint: (listener) => onMachine(user, () => listener('machines')),
    alarms: part(() => alarmClient(context, name)),
    machines: part(() => routerClient(context)),
    machineLog: { there: () => lastLines(context, user) },
    agent: part(() => personClient(context)),
    intents: part(() => executorClient(context, user)),
    approver: { there: approverOf(context) },
    passkeys: part(() => passkeyPort(context, user)),
    localhost: () => readRun(home)?.console_url,
    verifyReceipt: (receipt) => verify(context, user, receipt),
    notices: { there: noticesOf(context, user, notify) },
    clients: oauth ? { there: oauth.connectionsOf(user) } : { missing: NO_OAUTH },
    health: { there: () => checks(context) },
    places: [{ name: 'home', where: home.path }, { name: 'settings', where: home.configFile }, ...data],
    day: { there: (date) => dayOf(context, date) },
  };
}

/** @throws ReveilleError when the executor's roster is not accessible from here */
function passkeyPort(context: CliContext, user: string): PasskeyPort {
  const admin = executorAdmin(context);
  const { environment, clock } = context;
  const open = (passphrase: string | undefined) => openApproverWith(environment, passphrase, () => clock.now());
  return {
    async opens(passphrase) {
      await open(passphrase);
    },

    async list() {
      const { approvers } = await admin.approvers(user);
      return approvers.filter(({ passkey }) => passkey !== undefined);
    },

    async enroll({ passkey, name }, passphrase) {
      const { executor } = await admin.approvers(user);
      const key = await open(passphrase);
      const about = { passkey, name, user, executor, expires_at: signedUntil(clock.now()) };
      return admin.enroll(vouchedFor(about, key));
    },

    async revoke(approver, passphrase) {
      const { executor } = await admin.approvers(user);
      const key = await open(passphrase);
      return admin.revoke(revocationRequest(key, { approver, user, executor }, clock.now()));
    },
  };
}
