/**
 * Checks of the running daemons, and of the router's public listener: reachable for users, encrypted, with a console.
 */
import { createServer } from 'node:net';
import { createChronosClient } from '../../chronos/client.ts';
import { createExecutorClient } from '../../executor/client.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { createCaller, withinTime } from '../../kit/http/caller.ts';
import { isLoopback } from '../../kit/http/connections.ts';
import { codeOf } from '../../kit/http/exchange.ts';
import { createRouterClient } from '../../router/client.ts';
import { didOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import { findChronos, labelOf, localAddress, localIdentity } from '../access/chronos.ts';
import { findExecutor } from '../access/executor.ts';
import { orUndefined, signOfLife, whatToDo } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { askListener, listenerAt } from '../up/listener.ts';
import type { KnownMachine } from './agent.ts';
import { brokenBy, type Check } from './check.ts';
import { runningHere } from './computer.ts';

const TIMEOUT_MS = 3000;

/** Why a port is not available; `undefined` when it is. */
function portTaken(url: string): Promise<string | undefined> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(Number(port), hostname.replace(/^\[|\]$/g, ''), () => server.close(() => resolve(undefined)));
  });
}

export type DaemonAddress = {
  /** The daemon's own name. */
  name: 'chronosd' | 'router' | 'executor';
  url: string;
  /** The reason why it must be there: a running `reveille up` or a setting. `undefined` when it may be stopped. */
  because: string | undefined;
  /** The variable with its port. */
  portVariable: string;
};

const anotherPort = (variable: string) => `stop what listens there, or choose another port with ${variable}`;

async function checkSilent(
  context: CliContext,
  { name, url, because, portVariable }: DaemonAddress,
  reason: string,
): Promise<Check> {
  if ((await signOfLife(url, context.clock)) === 'listens') {
    const remedy = because === undefined ? anotherPort(portVariable) : undefined;
    const asked = { url, home: context.home, clock: context.clock };
    return { name, status: 'broken', detail: `${url} listens, but does not answer`, remedy: remedy ?? whatToDo(asked) };
  }
  if (because !== undefined) {
    const remedy = `check whether it runs and is reachable from here; ${because}`;
    return { name, status: 'broken', detail: `nothing answers at ${url} (${reason})`, remedy };
  }
  const taken = await portTaken(url);
  if (taken === undefined)
    return { name, status: 'note', detail: `does not run; ${url} is free`, remedy: 'start it with: reveille up' };
  const remedy = anotherPort(portVariable);
  return { name, status: 'broken', detail: `${url} can be neither reached (${reason}) nor taken (${taken})`, remedy };
}

async function checkReady({ name, url }: DaemonAddress, version: string): Promise<Check> {
  try {
    const { call } = createCaller({ name, url, remedy: 'is it running?', tokenName: 'token' });
    await withinTime(systemClock, TIMEOUT_MS)((signal) => call({ method: 'GET', path: '/readyz' }, signal));
  } catch (thrown) {
    if (!(thrown instanceof ReveilleError)) throw thrown;
    return { name, status: 'broken', detail: `${url}: ${thrown.message}`, remedy: `look into the log of ${name}` };
  }
  if (version === VERSION) return { name, status: 'ok', detail: `${version} is ready at ${url}` };
  const detail = `${url} runs ${version}, this command is ${VERSION}`;
  return { name, status: 'warning', detail, remedy: 'restart it with the installed version' };
}

/** Whether a daemon answers and is ready, or could be started; `up`: it can be queried. */
export async function checkDaemon(context: CliContext, place: DaemonAddress): Promise<{ check: Check; up: boolean }> {
  const { name, url, portVariable } = place;
  const listener = await listenerAt(url, TIMEOUT_MS);
  if (listener.kind === 'silent') return { check: await checkSilent(context, place, listener.reason), up: false };
  if (listener.kind === 'daemon' && listener.name === name)
    return { check: await checkReady(place, listener.version), up: true };
  const what = listener.kind === 'daemon' ? listener.name : 'something else';
  const detail = `${what} answers at ${url}, not ${name}`;
  const remedy = anotherPort(portVariable);
  return { check: { name, status: 'broken', detail, remedy }, up: false };
}

/**
 * A daemon on a port of this computer belongs to this installation when it accepts its token. `access` is the result of
 * a query. Daemons that a setting or the running `up` names are not checked.
 */
export function foreignDaemonAt(
  { name, url, because, portVariable }: DaemonAddress,
  access: Check | undefined,
): Check | undefined {
  if (because !== undefined || access?.status !== 'broken') return undefined;
  const detail = `the ${name} of another installation answers at ${url}: it does not accept the token of this one`;
  const remedy = `stop it, or choose another port with ${portVariable}; to use it, set its token`;
  return { name, status: 'broken', detail, remedy };
}

/** Whether a daemon accepts a token. */
async function checkToken(system: string, token: () => Promise<unknown>, remedy: string): Promise<Check> {
  const name = `${system} token`;
  try {
    await token();
    return { name, status: 'ok', detail: 'accepted' };
  } catch (error) {
    if (!(error instanceof ReveilleError && error.code === 'unauthorized')) return brokenBy(name, error);
    const who = system === 'executor' ? 'the executor' : system;
    return { name, status: 'broken', detail: `${who} does not accept it`, remedy };
  }
}

/** Whether chronosd accepts this computer's agent. Nothing is pinned: the challenge is not answered. */
export function checkTransport(context: CliContext): Promise<Check> {
  const did = orUndefined(() => localIdentity(context))?.did ?? didOf('doctor', '0'.repeat(64));
  const challenge = async () => {
    const { url, token } = findChronos(context);
    await createChronosClient({ url, token, clock: context.clock, timeoutMs: TIMEOUT_MS }).challenge(did);
  };
  const remedy = 'set MATRIX_CHRONOS_TOKEN, or CHRONOS_TOKEN, to the token of chronosd';
  return checkToken('chronosd', challenge, remedy);
}

/** Whether the executor accepts this computer's user. */
export function checkExecutorToken(context: CliContext, url: string): Promise<Check> {
  const userId = orUndefined(() => labelOf(context)) ?? 'doctor';
  const { token } = findExecutor(context);
  const attend = withinTime(context.clock, TIMEOUT_MS);
  const remedy = 'set EXECUTOR_TOKEN, or NEO_EXECUTOR_TOKEN, to the token of the executor';
  return checkToken('executor', () => createExecutorClient({ url, token, userId, attend }).list({ limit: 1 }), remedy);
}

const MACHINE_REMEDY = {
  active: undefined,
  provisioning: 'set it to active when it is ready: reveille machine put … --state active',
  suspended: 'restore it with: reveille machine restore',
  deleted: 'register it again with: reveille machine put',
} as const;

/** Whether the router accepts this installation's token and knows this computer's agent, and the agent's machine. */
export async function checkMachine(
  context: CliContext,
  url: string,
): Promise<{ check: Check | undefined; access: Check | undefined; machine?: KnownMachine }> {
  const name = 'machine';
  const identity = orUndefined(() => localIdentity(context));
  const owner = identity?.owner ?? 'doctor';
  try {
    const token = context.settings.ROUTER_ADMIN_TOKEN;
    const attend = withinTime(context.clock, TIMEOUT_MS);
    const machine = await createRouterClient({ url, token, attend }).show(owner);
    const { provider, state, running } = machine;
    const detail = `${provider}, ${state}${running === undefined ? '' : `, ${running}`}`;
    const remedy = MACHINE_REMEDY[state];
    const check: Check =
      remedy === undefined ? { name, status: 'ok', detail } : { name, status: 'warning', detail, remedy };
    return { check, access: undefined, machine };
  } catch (error) {
    const code = error instanceof ReveilleError ? error.code : undefined;
    if (code === 'not_found') {
      if (!identity) return { check: undefined, access: undefined };
      const check: Check = {
        name,
        status: 'warning',
        detail: `the router has no machine of ${owner}: its alarms wake no agent`,
        remedy: 'register one with: reveille machine put',
      };
      return { check, access: undefined };
    }
    if (code !== 'unauthorized') return { check: brokenBy(name, error), access: undefined };
    const remedy = 'set ROUTER_ADMIN_TOKEN to the token of the router';
    const check: Check = { name, status: 'broken', detail: 'the router does not accept ROUTER_ADMIN_TOKEN', remedy };
    return { check, access: check };
  }
}

const NAME = 'public listener';

const ask = (url: string, path: string) => askListener(url, path, TIMEOUT_MS);

function addressOf(context: CliContext): string | undefined {
  const { settings } = context;
  const running = runningHere(context)?.public_url;
  const port = Number(settings.ROUTER_PUBLIC_PORT ?? 8087);
  if (running !== undefined || !Number.isInteger(port) || port <= 0 || port > 65_535) return running;
  return localAddress(settings.ROUTER_PUBLIC_HOST, port, settings.ROUTER_PUBLIC_TLS_CERT);
}

/** Errors of an address without a listener, or without support on this system. */
const NOBODY = new Set(['ECONNREFUSED', 'EADDRNOTAVAIL', 'EAFNOSUPPORT', 'ENETUNREACH', 'EPROTONOSUPPORT']);

/**
 * Whether another program answers at [::1] of our port at 127.0.0.1: a browser may use either for the name `localhost`.
 *
 * @param front our own front page
 */
async function strangerAt(context: CliContext, url: string, front: Buffer): Promise<string | undefined> {
  const { hostname, port, protocol } = new URL(url);
  // With TLS another program has no certificate for the name.
  if (hostname !== '127.0.0.1' || protocol !== 'http:') return undefined;
  const other = `http://[::1]:${port}`;
  const there = await ask(other, '/');
  if (there.result === 'answered') {
    const record = runningHere(context);
    // A router with a console and no address for it by that name does not accept it.
    const isKeptOut = record?.console_secret !== undefined && record.console_url === undefined;
    return isKeptOut || !there.body.equals(front) ? other : undefined;
  }
  return NOBODY.has(codeOf(there.error)) ? undefined : other;
}

/** For a running router. `undefined` when its port is unknown. */
export async function checkPublicListener(context: CliContext): Promise<Check | undefined> {
  const url = addressOf(context);
  if (url === undefined) return undefined;
  const [health, front] = await Promise.all([ask(url, '/healthz'), ask(url, '/')]);
  if (health.result !== 'answered' || front.result !== 'answered') {
    const why = health.result === 'answered' ? 'it does not answer in time' : codeOf(health.error);
    const remedy = url.startsWith('https:')
      ? 'check the log of the router; for a certificate of a private authority, set REVEILLE_TLS_CA'
      : 'check the log of the router, ROUTER_PUBLIC_HOST and ROUTER_PUBLIC_PORT';
    return { name: NAME, status: 'broken', detail: `users cannot connect at ${url} (${why})`, remedy };
  }
  if (health.status !== 200)
    return {
      name: NAME,
      status: 'broken',
      detail: `${url} answers ${health.status}`,
      remedy: 'check the log of the router',
    };
  const { settings } = context;
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  const bound = settings.ROUTER_PUBLIC_HOST ?? host;
  const isFrontedElsewhere = settings.ROUTER_PUBLIC_TLS === 'terminated-in-front';
  const safety = url.startsWith('https:')
    ? 'with TLS'
    : isFrontedElsewhere
      ? 'with TLS in a proxy'
      : 'without TLS, for this computer only';
  const console = String(front.headers['content-type']).startsWith('text/html') ? 'with the console' : 'no console';
  const detail = `users connect at ${url}, ${safety}, ${console}`;
  const stranger = console === 'with the console' ? await strangerAt(context, url, front.body) : undefined;
  if (stranger !== undefined) {
    const remedy =
      'end that program, or set ROUTER_PUBLIC_PORT to another port; until then open the console by its IP address';
    const who = `another program listens at ${stranger}, which the name localhost may mean as well`;
    return { name: NAME, status: 'warning', detail: `${detail}; ${who}`, remedy };
  }
  const isOpen = !url.startsWith('https:') && !isFrontedElsewhere && !isLoopback(bound) && bound !== 'localhost';
  if (!isOpen) return { name: NAME, status: 'ok', detail };
  const remedy = 'set ROUTER_PUBLIC_TLS_CERT and ROUTER_PUBLIC_TLS_KEY: the network can read tokens and pages';
  return { name: NAME, status: 'warning', detail: `users connect at ${url} without TLS, ${console}`, remedy };
}
