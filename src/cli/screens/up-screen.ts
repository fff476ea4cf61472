/** The output of `reveille up`. */
import { homedir } from 'node:os';
import { formatLateness } from '../../kit/clock/duration.ts';
import type { LocalContext } from '../../kit/clock/local-time.ts';
import { printable } from '../../kit/text/hidden-characters.ts';
import type { News } from '../../notify/news.ts';
import type { TurnOutcome } from '../../router/woken-turn.ts';
import { plainError } from '../../wire/fire.ts';
import { VERSION } from '../../wire/version.ts';
import { reportsNothing } from '../../wire/wake.ts';
import { whereIs } from '../commands/machine.ts';
import type { CliContext } from '../context.ts';
import { homeAt } from '../home/home.ts';
import type { FollowedFire } from '../up/fire-watch.ts';
import type { LocalAgent, LocalStack } from '../up/local-stack.ts';
import { counted, fit, wrap } from './columns.ts';
import { NOTHING_TEXT, waitsWords } from './log-screen.ts';
import type { Output } from './output.ts';

/** Under the time of day, so that the lines of one fire are aligned. */
const INDENT = '          ';
const PREVIEW_CHARACTERS = 60;
const QUESTION_LINES = 8;

function timeOfDay(epochMs: number): string {
  return new Date(epochMs).toLocaleTimeString('en-GB', { hour12: false });
}

/** A path with `~` for the home folder. */
function tilde(path: string): string {
  const home = homedir();
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

function preview(text: string): string {
  const [first = ''] = text.split('\n');
  const short = first.length > PREVIEW_CHARACTERS ? `${first.slice(0, PREVIEW_CHARACTERS - 1)}…` : first;
  return printable(short);
}

/** Addresses of the daemons, disabled capabilities, and the next steps. */
export function greeting(
  context: CliContext,
  stack: LocalStack,
  { console, disabled }: { console: string; disabled: readonly string[] },
): string[] {
  const { out, home } = context;
  const program = programOf(context);
  const row = (name: string, where: string, what: string) =>
    `  ${name.padEnd(10)}${where.padEnd(25)}${out.paint('dim', what)}`;
  return [
    `${out.paint('bold', 'Reveille')} ${VERSION}`,
    '',
    row('chronosd', stack.chronos.url, 'stores alarms and fires them'),
    row('router', stack.router.url, 'starts machines and delivers wakes'),
    row('executor', stack.executor.url, 'asks you before irreversible actions'),
    agentRow(stack.agent, program, row),
    row('home', tilde(home.path), 'keys, tokens and data'),
    ...disabled.map((sentence) => `  ${'disabled'.padEnd(10)}${out.paint('dim', printable(sentence))}`),
    ...(stack.noApprover === undefined ? [] : ['', out.paint('yellow', `  ${printable(stack.noApprover)}`)]),
    '',
    ...(out.live
      ? [`  ${out.paint('dim', `Console, by an address that works once (again: ${program} open)`)}`, `  ${console}`, '']
      : [`  ${out.paint('dim', 'Console')}           ${console}`]),
    `  ${out.paint('dim', 'Connect a client')}  ${program} connect`,
    `  ${out.paint('dim', 'Set an alarm')}      ${program} alarm set "Check the build" --in 10m`,
    `  ${out.paint('dim', 'Chat')}              ${program} chat`,
    `  ${out.paint('dim', 'Stop')}              Ctrl-C; alarms are kept`,
    '',
  ];
}

type Row = (name: string, where: string, what: string) => string;

function agentRow(agent: LocalAgent, program: string, row: Row): string {
  if (agent.kind === 'neo') return row('neo', ...neoWords(agent.running));
  const { state } = agent.machine;
  if (state !== 'active') return row('agent', state, `wakes are rejected; see: ${program} machine show`);
  return row('agent', fit(printable(whereIs(agent.machine)), 24), 'yours; Neo is not used');
}

/** A Neo from an earlier `up` may still run; this `up` adopts it. */
function neoWords(running: string | undefined): [where: string, what: string] {
  if (running === 'ready') return ['awake', 'was running already; stops when it is idle'];
  if (running === 'starting') return ['starting', 'was running already, or starts'];
  return ['asleep', 'starts when an alarm fires'];
}

/**
 * The program as a command in another terminal names it: through npm where npm started this one, with the variable for a
 * home in another folder.
 */
export function programOf({ home, environment }: Pick<CliContext, 'home' | 'environment'>): string {
  const program = environment.npm_command === undefined ? 'reveille' : 'npx reveille';
  return home.path === homeAt(undefined).path ? program : `REVEILLE_HOME=${home.path} ${program}`;
}

/** The line for the welcome alarm. */
export function setLine(out: Output, now: number, dueAt: number): string {
  const seconds = Math.max(0, Math.ceil((dueAt - now) / 1000));
  return `${out.paint('dim', timeOfDay(now))}  set    a welcome alarm; it fires in ${seconds} s, at ${timeOfDay(dueAt)}`;
}

function nameOf({ fire: { alarm } }: FollowedFire): string {
  return alarm.label === '' ? `"${preview(alarm.wakeMessage)}"` : printable(alarm.label);
}

/** The outcome of the turn: the reply, wrapped to the terminal, or the reason why there is none. */
function turnLines(out: Output, { turn }: FollowedFire, here: LocalContext): string[] {
  if (turn === undefined) return [];
  if (turn.known !== 'end') return noteLines(out, turn, here);
  if (reportsNothing(turn.reply)) return [out.paint('dim', NOTHING_TEXT)];
  if (turn.reply) {
    const width = out.columns - INDENT.length - 2;
    const wrapped = turn.reply.split('\n').flatMap((line) => wrap(printable(line), width));
    return wrapped.map((line) => `${out.paint('cyan', '│')} ${line}`);
  }
  const why = turn.error ? `: ${printable(turn.error)}` : '';
  return [out.paint('yellow', `the turn is ${turn.status}${why}`)];
}

/** Lines for a turn whose end is not known. */
function noteLines(out: Output, turn: Exclude<TurnOutcome, { known: 'end' }>, here: LocalContext): string[] {
  const why = printable(turn.why);
  if (turn.known === 'waits' && turn.until !== undefined) {
    const words = waitsWords(Date.parse(turn.until), turn.why, here);
    return wrap(words, out.columns - INDENT.length).map((line) => out.paint('yellow', line));
  }
  const note = {
    accepted: why,
    waits: `the turn has not started and is retried: ${why}; see "reveille machine turns"`,
    lost: `the turn was accepted; its outcome could not be read (${why}). See machine-logs/ in the router's data folder; "reveille neo tools" starts Neo's tools alone`,
  }[turn.known];
  return wrap(note, out.columns - INDENT.length).map((line) =>
    out.paint(turn.known === 'waits' ? 'yellow' : 'dim', line),
  );
}

/** The state of the agent at the wake. `the agent was awake` is only for agents that run between turns. */
function metWords({ wake, taken }: FollowedFire): string {
  const { by, preset = 'the agent' } = taken ?? {};
  if (by === 'program') return `${printable(preset)} was started for it`;
  if (by === 'server' || by === 'receiver') return `handed to ${printable(preset)}`;
  const startMs = wake?.machineStartMs ?? 0;
  return startMs > 0 ? `the agent started in ${Math.round(startMs)} ms` : 'the agent was awake';
}

/** One fire: its lateness, and the start time of the machine. */
export function rangLine(out: Output, ring: FollowedFire): string {
  const { startedAt, scheduledFor, missedCount, lateBecause } = ring.fire.attempt;
  const missed = missedCount > 0 ? `, for ${missedCount} missed` : '';
  return `${out.paint('dim', timeOfDay(startedAt))}  ${out.paint('green', 'fired')}  ${nameOf(ring)}: ${formatLateness(startedAt - scheduledFor, lateBecause ?? undefined)}${missed}; ${metWords(ring)}`;
}

/** The outcome of a fire. @param isBelow whether the line of this fire is right above */
export function replyLines(out: Output, ring: FollowedFire, here: LocalContext, isBelow: boolean): string[] {
  const lines = turnLines(out, ring, here).map((line) => `${INDENT}${line}`);
  if (isBelow || lines.length === 0) return lines;
  return [`${out.paint('dim', timeOfDay(here.now))}  ${out.paint('green', 'reply')}  ${nameOf(ring)}`, ...lines];
}

/** A waiting question: its first lines state the effect. */
export function questionLines(context: CliContext, news: News): string[] {
  const { out } = context;
  const program = programOf(context);
  const lines = news.text.split('\n');
  const [shown, last] = [lines.slice(0, QUESTION_LINES), lines.at(-1)!];
  const answer = last.replace(/\breveille /, `${program} `);
  const more =
    lines.length - 1 > QUESTION_LINES ? [`… (whole text: ${program} intent show ${news.about.intent_id})`] : [];
  const width = out.columns - INDENT.length;
  return [
    `${out.paint('dim', timeOfDay(news.at))}  ${out.paint('yellow', 'asks')}   ${printable(news.title)}`,
    ...[...shown.filter((line) => line !== last), ...more]
      .flatMap((line) => wrap(printable(line), width))
      .map((line) => `${INDENT}${line}`),
    `${INDENT}${out.paint('bold', printable(answer))}`,
  ];
}

/**
 * What a stop waits for, what continues without it, and how to leave at once.
 *
 * @param ofDaemons running turns of Neo, or of another daemon that ends with the router
 * @param ofPrograms running turns of agents that continue
 */
export function stoppingLine(
  out: Output,
  { ofDaemons, ofPrograms }: { ofDaemons: number; ofPrograms: number },
): string {
  const facts = [
    ...(ofDaemons > 0
      ? [`${counted(ofDaemons, 'running turn')} may continue for 10 s; unfinished turns continue at the next start`]
      : []),
    ...(ofPrograms === 1 ? ['one running turn continues without Reveille; the next start shows its outcome'] : []),
    ...(ofPrograms > 1
      ? [`${ofPrograms} running turns continue without Reveille; the next start shows their outcomes`]
      : []),
  ];
  const waits = facts.length === 0 ? 'Stopping' : `Stopping: ${facts.join('; ')}`;
  return out.paint('dim', `${waits}. Ctrl-C again leaves at once.`);
}

/** An attempt that was not accepted. */
export function failedRingLine(out: Output, ring: FollowedFire): string {
  const { outcome, error, finishedAt } = ring.fire.attempt;
  return `${out.paint('dim', timeOfDay(finishedAt))}  ${out.paint('red', outcome)}  ${nameOf(ring)}: ${printable(plainError(error ?? ''))}`;
}
