/** What `reveille up` shows a person. */

import { homedir } from 'node:os';
import { printable } from '../text-kit/hidden-characters.ts';
import { VERSION } from '../wire/version.ts';
import { fit, wrap } from './columns.ts';
import { type Home, homeAt } from './home.ts';
import type { LocalAgent, LocalStack } from './local-stack.ts';
import type { Output } from './output.ts';
import { PROGRAM } from './package-root.ts';
import type { Ring } from './ring.ts';
import { plainWakeError } from './wake-error.ts';

/** Under the time of day, so that the lines of one ring stand together. */
const INDENT = '          ';
const PREVIEW_CHARACTERS = 60;

function timeOfDay(epochMs: number): string {
  return new Date(epochMs).toLocaleTimeString('en-GB', { hour12: false });
}

/** A path as a person writes it. */
function tilde(path: string): string {
  const home = homedir();
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

function preview(text: string): string {
  const [first = ''] = text.split('\n');
  const short = first.length > PREVIEW_CHARACTERS ? `${first.slice(0, PREVIEW_CHARACTERS - 1)}…` : first;
  return printable(short);
}

/** Who listens where, and what to do next. */
export function greeting(out: Output, home: Home, stack: LocalStack): string[] {
  const row = (name: string, where: string, what: string) =>
    `  ${name.padEnd(10)}${where.padEnd(25)}${out.paint('dim', what)}`;
  return [
    `${out.paint('bold', 'Reveille')} ${VERSION}`,
    '',
    row('chronosd', stack.chronos.url, 'keeps alarms and fires them on time'),
    row('router', stack.router.url, 'starts machines and delivers turns'),
    row('executor', stack.executor.url, 'asks you before what cannot be undone'),
    agentRow(stack.agent, row),
    row('home', tilde(home.path), 'keys, tokens and data'),
    '',
    `  ${out.paint('dim', 'Connect an agent')}  claude mcp add chronos${homeFlag(home)} -- ${process.execPath} ${PROGRAM} mcp`,
    `  ${out.paint('dim', 'Set an alarm')}      npx reveille alarm set "Look at the build" --in 10m`,
    `  ${out.paint('dim', 'Stop')}              Ctrl-C; alarms are kept`,
    '',
  ];
}

type Row = (name: string, where: string, what: string) => string;

/** Who is woken, and where that is kept. */
function agentRow(agent: LocalAgent, row: Row): string {
  if (agent.kind === 'neo') return row('neo', 'asleep', 'starts when an alarm rings');
  const { state, provider, spec } = agent.machine;
  if (state !== 'active') return row('agent', state, 'wakes are refused; see: npx reveille machine show');
  const where = provider === 'http' ? String(spec.url) : [spec.command].flat().join(' ');
  return row('agent', fit(printable(where), 24), 'yours; Neo is not used');
}

/** What an MCP client must be told when the home is not where it would look. */
function homeFlag(home: Home): string {
  return home.path === homeAt(undefined).path ? '' : ` -e REVEILLE_HOME=${home.path}`;
}

/** The line for an alarm that `up` has set itself. */
export function setLine(out: Output, now: number, dueAt: number): string {
  const seconds = Math.max(0, Math.ceil((dueAt - now) / 1000));
  return `${out.paint('dim', timeOfDay(now))}  set   a welcome alarm; it rings in ${seconds} s, at ${timeOfDay(dueAt)}`;
}

function nameOf({ fire: { alarm } }: Ring): string {
  return alarm.label === '' ? `"${preview(alarm.wakeMessage)}"` : printable(alarm.label);
}

/** What became of the turn: the reply, wrapped to the terminal, or why there is none. */
function turnLines(out: Output, { wake, turn }: Ring): string[] {
  if (turn?.reply) {
    const width = out.columns - INDENT.length - 2;
    const wrapped = turn.reply.split('\n').flatMap((line) => wrap(printable(line), width));
    return wrapped.map((line) => `${out.paint('cyan', '│')} ${line}`);
  }
  const why = turn?.error ? `: ${printable(turn.error)}` : '';
  if (turn) return [out.paint('yellow', `the turn is ${turn.status}${why}`)];
  if (!wake?.turn_id) return [];
  const lost =
    'the turn was accepted; its outcome could not be read. See machine-logs/ in the router\'s data folder; "reveille neo tools" starts Neo\'s tools alone';
  return wrap(lost, out.columns - INDENT.length).map((line) => out.paint('dim', line));
}

/** One ring: how late, how long the machine took, and what the agent said. */
export function ringLines(out: Output, ring: Ring): string[] {
  const { fire, wake } = ring;
  const lateness = fire.startedAt - fire.occurrence.scheduledFor;
  const started = wake && wake.machineStartMs > 0 ? `started in ${Math.round(wake.machineStartMs)} ms` : 'was awake';
  const missed = fire.occurrence.missedCount > 0 ? `, standing in for ${fire.occurrence.missedCount} missed` : '';
  const lines = [
    `${out.paint('dim', timeOfDay(fire.startedAt))}  ${out.paint('green', 'rang')}  ${nameOf(ring)}: ${lateness} ms late${missed}; the agent ${started}`,
  ];
  lines.push(...turnLines(out, ring).map((line) => `${INDENT}${line}`));
  return lines;
}

/** An attempt that was not accepted. */
export function failedRingLine(out: Output, ring: Ring): string {
  const { result, finishedAt } = ring.fire;
  const error = result.outcome === 'delivered' ? '' : printable(plainWakeError(result.error));
  return `${out.paint('dim', timeOfDay(finishedAt))}  ${out.paint('red', result.outcome)}  ${nameOf(ring)}: ${error}`;
}
