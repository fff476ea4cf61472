/** `reveille up`: all daemons on this computer in one process, with one line for each fire. */
import { type ChronosClient, createChronosClient } from '../../chronos/client.ts';
import { wait } from '../../kit/clock/clock.ts';
import { onTermination } from '../../kit/http/drain.ts';
import type { Logger } from '../../kit/log/log.ts';
import type { Notifier } from '../../notify/daemon.ts';
import type { News } from '../../notify/news.ts';
import type { AlarmCreated } from '../../wire/alarm.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { plainError } from '../../wire/fire.ts';
import { RawJson } from '../../wire/json.ts';
import { personOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { endFirstStart } from '../home/home.ts';
import type { LogEntry } from '../log/entries.ts';
import { renderEntry } from '../screens/log-screen.ts';
import { readerOf } from '../screens/reader.ts';
import {
  failedRingLine,
  greeting,
  programOf,
  questionLines,
  rangLine,
  replyLines,
  setLine,
  stoppingLine,
} from '../screens/up-screen.ts';
import { ownKeeper } from '../sleep/keeper.ts';
import { startOwnTraces } from '../tracing.ts';
import { FireWatch, type FollowedFire, fireRecord } from '../up/fire-watch.ts';
import { type LocalStack, startLocalStack } from '../up/local-stack.ts';
import { ownConsole } from '../up/own-console.ts';
import { TurnNews } from '../up/turn-news.ts';
import { consoleAddress } from './open.ts';

const WELCOME_KEY = 'reveille-welcome';
const WELCOME_DELAY_SECONDS = 5;
const WELCOME_MESSAGE =
  'I set this alarm when Reveille started here, to see that alarms fire. I greet the user and report what woke me and how late I am.';
/** Drain time: chronosd, then the router, then the executor. */
const DRAIN_LIMIT_MS = 50_000;
const ONCE_LIMIT_MS = 120_000;

/** Interval of the check for npm's shell. */
const SHELL_LOOK_MS = 500;

/** `npm start` runs this process in a shell. npm sends SIGTERM to the shell only, so its end counts as our SIGTERM. */
async function endWithShell({ process: { env }, clock }: CliContext, ended: AbortSignal): Promise<void> {
  if (env.npm_lifecycle_event !== 'start') return;
  const shell = process.ppid;
  while (!ended.aborted && process.ppid === shell) await wait(clock, SHELL_LOOK_MS, ended);
  if (!ended.aborted) process.kill(process.pid, 'SIGTERM');
}

/** Never resolves: a drain in progress ends the process. */
const ENDED_ELSEWHERE = new Promise<never>(() => {});

const clientOf = ({ clock }: CliContext, { chronos, chronosToken, identity }: LocalStack): ChronosClient =>
  createChronosClient({ url: chronos.url, token: chronosToken, identity, clock });

/**
 * Sets the welcome alarm: on the first start of a home, and for each `--once`. Its owner may edit or cancel it, and
 * another version may word it otherwise, so no later start compares it with its own.
 */
async function setWelcome(context: CliContext, stack: LocalStack, once: boolean): Promise<AlarmCreated | undefined> {
  if (!stack.isFirst && !once) return undefined;
  const client = clientOf(context, stack);
  const welcome = {
    kind: 'once',
    label: 'welcome',
    wake_message: WELCOME_MESSAGE,
    delay_seconds: WELCOME_DELAY_SECONDS,
    payload: new RawJson('{"set_by":"reveille up"}'),
  } as const;
  if (once) return client.createAlarm(welcome);
  const first = await client.createAlarm({ ...welcome, idempotency_key: WELCOME_KEY }).catch((error: unknown) => {
    // An earlier attempt at the first start has set it.
    if (error instanceof ReveilleError && error.code === 'conflict') return undefined;
    throw error;
  });
  return first?.deduped ? undefined : first;
}

/** Reports turns that end after their fire is off the screen. */
function newsOf(context: CliContext, stack: LocalStack, log: Logger, onLine: () => void): TurnNews {
  const { out, clock, home } = context;
  const client = clientOf(context, stack);
  const tell = (entry: LogEntry) => {
    for (const line of renderEntry(entry, readerOf(context))) out.line(line);
    onLine();
  };
  return new TurnNews({ client, clock, log, file: home.newsFile, tell });
}

/** Sends notifications to the user's channels. A failure here does not stop `up`. */
async function tellOf(context: CliContext, stack: LocalStack, onLine: () => void): Promise<Notifier | undefined> {
  const { out } = context;
  const onQuestion = (news: News) => {
    for (const line of questionLines(context, news)) out.line(line);
    onLine();
  };
  try {
    const { startOwnNotifier } = await import('../up/own-notifier.ts');
    // The response of a channel is in its list, not among the fires.
    return startOwnNotifier(context, stack, { log: await context.log('notifier', 'error'), onQuestion });
  } catch (error) {
    if (!(error instanceof ReveilleError)) throw error;
    out.remark(`Notifications are off: ${error.message}`);
    return undefined;
  }
}

/** Marks a fire as reported, or hands its turn over to the later report. */
function passOn({ fire: { alarm, attempt }, turn, taken }: FollowedFire, news: TurnNews | undefined): void {
  const { fireId } = attempt;
  const mayReport = turn?.known === 'accepted' && taken?.by === 'daemon';
  const isRetried = turn?.known === 'waits' && turn.until !== undefined;
  if (turn === undefined || !(mayReport || isRetried || turn.known === 'lost')) {
    news?.markReported(fireId);
    return;
  }
  const { id, label, wakeMessage: wake_message } = alarm;
  news?.handOver({ id, label, wake_message }, fireId, turn.known === 'waits' ? turn.until : undefined);
}

/** Shows a countdown to a fire. */
async function countDown({ out, clock }: CliContext, dueAt: number, signal: AbortSignal): Promise<void> {
  while (out.live && !signal.aborted && clock.now() < dueAt) {
    out.progress(`          fires in ${Math.ceil((dueAt - clock.now()) / 1000)} s`);
    await wait(clock, Math.min(200, dueAt - clock.now()), signal);
  }
}

/** The console's address: one-time on a terminal; in a log, one without sign-in code. */
function consoleLine(context: CliContext, { router, identity }: LocalStack, secret: string): string {
  const { out, clock } = context;
  const { url, localhost } = router.public;
  return out.live
    ? consoleAddress(localhost ?? url, secret, identity.owner, clock.now())
    : `${url} (with: ${programOf(context)} open)`;
}

export async function up(context: CliContext, flags: { once?: boolean }): Promise<void> {
  const { out, clock } = context;
  const once = flags.once === true;
  const ended = new AbortController();
  const rings = new EventTarget();
  let awaited: string | undefined;
  let outcome: FollowedFire | undefined;

  let news: TurnNews | undefined;
  const console = ownConsole(context, personOf(context) ?? 'you');
  let notifier: Notifier | undefined;
  /** The fire whose line is last on the screen. */
  let above: string | undefined;
  const onRang = (ring: FollowedFire) => {
    out.line(rangLine(out, ring));
    above = ring.fire.attempt.fireId;
  };
  const watch = new FireWatch(onRang, (ring) => {
    const failed = ring.fire.attempt.outcome !== 'delivered';
    if (failed) out.line(failedRingLine(out, ring));
    else {
      if (ring.taken === undefined) onRang(ring);
      const isBelow = above === ring.fire.attempt.fireId;
      out.result(fireRecord(ring), replyLines(out, ring, readerOf(context), isBelow));
    }
    above = undefined;
    keeper.turnEnded(ring.fire.attempt.fireId);
    if (!failed) passOn(ring, news);
    if (ring.fire.alarm.id !== awaited) return;
    outcome = ring;
    rings.dispatchEvent(new Event('awaited'));
  });
  const log = await context.log('reveille', 'warn');
  const endTraces = await startOwnTraces(context, 'up', log);
  let starting: Promise<LocalStack> | undefined;
  let running: LocalStack | undefined;
  const wakings = async (after: number) => (await (await starting)?.chronos.computerWakes(after)) ?? {};
  const keeper = await ownKeeper(context, { log, wakings });
  const stop = async () => {
    ended.abort();
    await keeper.close();
    news?.stop();
    await notifier?.close();
    watch.stop();
    console.close();
    // A failed start has closed its parts.
    const started = await starting?.catch(() => undefined);
    await started?.close();
    await endTraces();
  };
  // Before anything runs, so that a stop during the start leaves nothing behind.
  const end = async () => {
    const ofPrograms = running?.router.turnsUnderWay() ?? 0;
    out.line(stoppingLine(out, { ofDaemons: watch.ofDaemons, ofPrograms }));
    await stop();
  };
  const removeSignals = onTermination(end, { log, clock, hardLimitMs: DRAIN_LIMIT_MS });
  void endWithShell(context, ended.signal);

  /** A stop during the start closes what the start still needs. */
  const unlessEnded = (error: unknown) => {
    if (ended.signal.aborted) return ENDED_ELSEWHERE;
    throw error;
  };

  let stack: LocalStack;
  try {
    starting = startLocalStack(context, {
      onFire: (report) => {
        news?.follows(report.attempt.fireId);
        if (report.alarm.wakeComputer) keeper.turnBegan(report.attempt.fireId);
        watch.fire(report);
      },
      onWake: (report, turn) => watch.wake(report, turn),
      console,
    });
    stack = await starting;
    running = stack;
    if (ended.signal.aborted) await ENDED_ELSEWHERE;
    // Before anything fires: a start that this refuses must leave alarms and running turns alone.
    const welcome = await setWelcome(context, stack, once).catch(unlessEnded);
    endFirstStart(context.home);
    const { disabledParts } = await import('../doctor/disabled.ts');
    const facts = { console: consoleLine(context, stack, console.secret), disabled: await disabledParts(context) };
    if (ended.signal.aborted) await ENDED_ELSEWHERE;
    const agent = await stack.recover().catch(unlessEnded);
    for (const line of greeting(context, { ...stack, agent }, facts)) out.line(line);
    const awaitedRing = new Promise<void>((resolve) =>
      rings.addEventListener('awaited', () => resolve(), { once: true }),
    );
    if (welcome) {
      awaited = welcome.id;
      const dueAt = Date.parse(welcome.next_fire_at ?? '');
      out.line(setLine(out, clock.now(), dueAt));
      void countDown(context, dueAt, ended.signal);
    }
    stack.begin();
    if (!once) {
      keeper.start();
      const onLine = () => {
        above = undefined;
      };
      news = newsOf(context, stack, log, onLine);
      void news.start();
      notifier = await tellOf(context, stack, onLine);
      if (ended.signal.aborted) await notifier?.close();
      await ENDED_ELSEWHERE;
    }
    const limit = new AbortController();
    await Promise.race([awaitedRing, wait(clock, ONCE_LIMIT_MS, limit.signal)]);
    limit.abort();
  } finally {
    removeSignals();
    await stop();
  }
  assertFinished(outcome);
}

/** `--once` succeeds when its turn has finished with a reply. */
function assertFinished(ring: FollowedFire | undefined): void {
  if (!ring)
    throw new ReveilleError(
      'unavailable',
      `the alarm did not fire within ${ONCE_LIMIT_MS / 1000} s; run "reveille doctor"`,
    );
  const { attempt } = ring.fire;
  if (attempt.outcome !== 'delivered')
    throw new ReveilleError(
      'unavailable',
      `the wake was not accepted: ${plainError(attempt.error ?? '')}; the alarm is kept and retried by the next "reveille up"`,
    );
  const { turn } = ring;
  // Some agents report acceptance only.
  if (turn?.known === 'accepted' || (turn?.known === 'end' && turn.status === 'done')) return;
  const why =
    turn?.known === 'end' ? `${turn.status}: ${turn.error ?? 'no reason given'}` : (turn?.why ?? 'no turn report');
  throw new ReveilleError('unavailable', `the wake was accepted, but its turn did not finish (${why})`);
}
