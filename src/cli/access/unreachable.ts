/**
 * Time limits of commands for daemons, the meaning of a missing response, and the clocks of daemons. All clients share one
 * deadline.
 */
import { connect } from 'node:net';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import type { LimitedCall } from '../../kit/http/caller.ts';
import { exchange, joinUrl } from '../../kit/http/exchange.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';
import { processInfo } from '../../kit/process/process-info.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { type Home, readRun } from '../home/home.ts';

/**
 * After this time without a response a daemon is probed, with the same limit again. Together with the start of a command
 * that is less than 10 s.
 */
const PATIENCE_MS = 4000;
const SIGN_MS = 2500;
/** Limit for a request to a live daemon, for example to stop a machine. */
const LIMIT_MS = 30_000;

/** The daemon, and the installation that may know its process. */
export type Asked = { url: string; home: Home; clock: Clock };

/**
 * The deadline of the command line. A call is aborted when the daemon is silent and fails the probe; a live and busy
 * daemon gets more time.
 */
export function attend(asked: Asked): LimitedCall {
  return async (work, caller) => {
    const over = new AbortController();
    const given = new AbortController();
    const giveUp = () => given.abort(new Error('was aborted by the caller'));
    caller?.addEventListener('abort', giveUp);
    if (caller?.aborted) giveUp();
    const watched = watchOver(asked, over.signal).then((reason) => reason && given.abort(reason));
    try {
      return await work(given.signal);
    } finally {
      over.abort();
      caller?.removeEventListener('abort', giveUp);
      await watched;
    }
  };
}

/** Resolves with the reason to abort, or with nothing when `over` aborts. */
async function watchOver(asked: Asked, over: AbortSignal): Promise<Error | undefined> {
  const { url, clock } = asked;
  const began = clock.monotonic();
  for (;;) {
    await wait(clock, PATIENCE_MS, over);
    if (over.aborted) return undefined;
    const sign = await signOfLife(url, clock, over);
    if (over.aborted) return undefined;
    if (sign !== 'answers') return silenceOf(sign, asked, Math.round((clock.monotonic() - began) / 1000));
    if (clock.monotonic() - began >= LIMIT_MS)
      return new Error(`is running, but has not answered for ${LIMIT_MS / 1000} s; check its log and try again`);
  }
}

/** `listens`: connections are accepted, at least by the kernel, without a response. */
type Sign = 'answers' | 'listens' | 'nothing';

/** Probes whether a daemon answers at all. @param over aborts the probe */
export async function signOfLife(url: string, clock: Clock, over?: AbortSignal): Promise<Sign> {
  const enough = new AbortController();
  const cancel = clock.after(SIGN_MS, () => enough.abort());
  const signal = over === undefined ? enough.signal : AbortSignal.any([enough.signal, over]);
  try {
    const taken = takesConnections(url, signal);
    const answer = await exchange(plainTransport, {
      method: 'GET',
      url: joinUrl(url, '/healthz'),
      maxBytes: 0,
      signal,
    });
    // Any response counts.
    if (answer.result === 'answered') return 'answers';
    return (await taken) ? 'listens' : 'nothing';
  } finally {
    cancel();
    enough.abort();
  }
}

function takesConnections(url: string, signal: AbortSignal): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port || (protocol === 'https:' ? 443 : 80)),
    });
    const settle = (taken: boolean) => {
      signal.removeEventListener('abort', giveUp);
      socket.destroy();
      resolve(taken);
    };
    const giveUp = () => settle(false);
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
    signal.addEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
  });
}

function silenceOf(sign: Sign, asked: Asked, seconds: number): Error {
  if (sign === 'nothing')
    return new Error(`cannot be reached: no response for ${seconds} s; check the address and the network`);
  return new Error(`listens, but does not answer (for ${seconds} s): ${whatToDo(asked)}`);
}

/** Why a process of this installation may be silent, and the remedy. */
export function whatToDo({ url, home }: Asked): string {
  const pid = pidBehind(home, url);
  if (pid === undefined)
    return 'its process may be stopped or overloaded; check it there, and restart it if it stays silent';
  if (isStopped(pid)) return `its process ${pid} is stopped; continue it with: kill -CONT ${pid}`;
  return `its process ${pid} is stuck or overloaded; if it stays silent, end it with "kill -9 ${pid}" and start it with "reveille up" (alarms are kept)`;
}

/** The process of a `reveille up` of this installation that listens at an address. The doctor reports an unreadable record. */
function pidBehind(home: Home, url: string): number | undefined {
  const run = orUndefined(() => readRun(home));
  return run && [run.chronos_url, run.router_url, run.public_url, run.executor_url].includes(url) ? run.pid : undefined;
}

/** The handler of a failure that does not matter here, or that another part reports. Only our errors are ignored. */
export function ignored(error: unknown): undefined {
  if (error instanceof ReveilleError) return undefined;
  throw error;
}

/** The result of `read`, or `undefined` for an {@link ignored} error. */
export function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    return ignored(error);
  }
}

/** Whether a process was stopped by a signal. Known on Linux only; elsewhere it counts as running. */
export function isStopped(pid: number): boolean {
  return /^t$/i.test(processInfo(pid)?.state ?? '');
}

/** A daemon's clock, from the `Date` header of its responses: whole seconds, truncated. */
export type ServerTime = {
  /** The second in which the daemon answered, epoch ms by its own clock. */
  second: number;
  /** How far its clock is ahead of ours, in ms. Differences within the header's resolution and the travel time are zero. */
  aheadMs: number;
};

const SECOND = 1000;

/**
 * How far another clock is ahead.
 *
 * @param second the other clock's time, truncated to seconds
 * @param sent our clock's time before the request
 * @param received our clock's time after the response
 */
export function aheadBy(second: number, sent: number, received: number): number {
  if (second > received) return second - received;
  // The other clock showed at most this when it answered, and ours at least `sent`.
  if (second + SECOND <= sent) return second + SECOND - 1 - sent;
  return 0;
}

/**
 * Reads a daemon's clock.
 *
 * @returns `undefined` when it does not answer within `timeoutMs`, or without a readable date
 */
export async function serverTime(url: string, clock: Clock): Promise<ServerTime | undefined> {
  const sent = clock.now();
  const limit = { clock, ms: 3000 };
  const answer = await exchange(plainTransport, { method: 'GET', url: joinUrl(url, '/healthz'), maxBytes: 0, limit });
  // Callers that need the daemon get its error from their own request.
  if (answer.result !== 'answered') return undefined;
  const second = Date.parse(String(answer.headers.date));
  return Number.isNaN(second) ? undefined : { second, aheadMs: aheadBy(second, sent, clock.now()) };
}
