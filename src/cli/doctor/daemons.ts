/** What the doctor asks the daemons. */
import { createServer } from 'node:net';
import { createChronosClient } from '../../chronos/client.ts';
import { openEnvelope } from '../../wire/envelope.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { VERSION } from '../../wire/version.ts';
import { WAKE_HEADERS } from '../../wire/wake.ts';
import { findChronos, labelOf, localIdentity } from '../chronos-access.ts';
import type { CliContext } from '../context.ts';
import { findExecutor } from '../executor-access.ts';
import { createRouterClient } from '../router-access.ts';
import { reasonOf } from '../unreachable.ts';
import { brokenBy, type Check, orUndefined } from './check.ts';

const TIMEOUT_MS = 3000;

/** What listens at an address. */
type Listener =
  | { kind: 'ours'; version: string }
  | { kind: 'other'; what: string }
  | { kind: 'silent'; reason: string };

async function ask(url: string): Promise<{ status: number; text: string }> {
  const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'manual' });
  return { status: response.status, text: await response.text() };
}

async function listenerAt(url: string, name: string): Promise<Listener> {
  let answer: Awaited<ReturnType<typeof ask>>;
  try {
    answer = await ask(`${url}/`);
  } catch (thrown) {
    return { kind: 'silent', reason: reasonOf(thrown) };
  }
  const data = orUndefined(() => openEnvelope(answer.text, answer.status, url).value());
  if (typeof data !== 'object' || data === null || !('name' in data)) return { kind: 'other', what: 'something else' };
  if (data.name !== name) return { kind: 'other', what: String(data.name) };
  return { kind: 'ours', version: 'version' in data ? String(data.version) : 'an unknown version' };
}

/** Why a port cannot be listened on; `undefined` when it can. */
function portTaken(url: string): Promise<string | undefined> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen(Number(port), hostname.replace(/^\[|\]$/g, ''), () => server.close(() => resolve(undefined)));
  });
}

export type Place = {
  /** As the daemon calls itself. */
  name: 'chronosd' | 'router' | 'executor';
  url: string;
  /** It is certain to be there: a running `reveille up` or a setting says so. `undefined` when it may well not run. */
  because: string | undefined;
  /** The variable that moves it to another port. */
  portVariable: string;
};

async function checkSilent({ name, url, because, portVariable }: Place, reason: string): Promise<Check> {
  if (because !== undefined) {
    const remedy = `look whether it runs and can be reached from here; ${because}`;
    return { name, status: 'broken', detail: `nothing answers at ${url} (${reason})`, remedy };
  }
  const taken = await portTaken(url);
  if (taken === undefined)
    return { name, status: 'note', detail: `does not run; ${url} is free`, remedy: 'start it with: reveille up' };
  const remedy = `stop what listens there, or choose another port with ${portVariable}`;
  return { name, status: 'broken', detail: `${url} can be neither reached (${reason}) nor taken (${taken})`, remedy };
}

async function checkReady({ name, url }: Place, version: string): Promise<Check> {
  try {
    const { status, text } = await ask(`${url}/readyz`);
    openEnvelope(text, status, name);
  } catch (thrown) {
    const why = thrown instanceof ReveilleError ? thrown.message : `/readyz does not answer (${reasonOf(thrown)})`;
    return { name, status: 'broken', detail: `${url}: ${why}`, remedy: `look into the log of ${name}` };
  }
  if (version === VERSION) return { name, status: 'ok', detail: `${version} is ready at ${url}` };
  const detail = `${url} runs ${version}, this command is ${VERSION}`;
  return { name, status: 'warning', detail, remedy: 'start it again with the version that is installed' };
}

/** Whether a daemon answers and can do its job, or could be started; `up` tells whether it can be asked more. */
export async function checkDaemon(place: Place): Promise<{ check: Check; up: boolean }> {
  const { name, url, portVariable } = place;
  const listener = await listenerAt(url, name);
  if (listener.kind === 'silent') return { check: await checkSilent(place, listener.reason), up: false };
  if (listener.kind === 'ours') return { check: await checkReady(place, listener.version), up: true };
  const detail = `${listener.what} answers at ${url}, not ${name}`;
  const remedy = `stop what listens there, or choose another port with ${portVariable}`;
  return { check: { name, status: 'broken', detail, remedy }, up: false };
}

/** Whether chronosd lets this machine's agent in. Nothing is pinned: a challenge is asked for, not answered. */
export async function checkTransport(context: CliContext): Promise<Check | undefined> {
  const name = 'chronosd token';
  const identity = orUndefined(() => localIdentity(context));
  if (!identity) return undefined;
  try {
    const { url, token } = findChronos(context);
    await createChronosClient({ url, token, clock: context.clock, timeoutMs: TIMEOUT_MS }).challenge(identity.did);
    return { name, status: 'ok', detail: 'accepted' };
  } catch (error) {
    if (!(error instanceof ReveilleError && error.code === 'unauthorized')) return brokenBy(name, error);
    const remedy = 'set MATRIX_CHRONOS_TOKEN, or CHRONOS_TOKEN, to what chronosd was started with';
    return { name, status: 'broken', detail: 'chronosd does not accept it', remedy };
  }
}

/** Whether the executor lets this machine's user in. */
export async function checkExecutorToken(context: CliContext, url: string): Promise<Check | undefined> {
  const name = 'executor token';
  const userId = orUndefined(() => labelOf(context));
  if (userId === undefined) return undefined;
  const { token } = findExecutor(context);
  try {
    const response = await fetch(`${url}/intents?limit=1`, {
      headers: { [WAKE_HEADERS.user]: userId, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      redirect: 'manual',
    });
    openEnvelope(await response.text(), response.status, 'the executor');
    return { name, status: 'ok', detail: 'accepted' };
  } catch (error) {
    if (!(error instanceof ReveilleError)) return { name, status: 'broken', detail: reasonOf(error) };
    if (error.code !== 'unauthorized') return brokenBy(name, error);
    const remedy = 'set EXECUTOR_TOKEN, or NEO_EXECUTOR_TOKEN, to what the executor was started with';
    return { name, status: 'broken', detail: 'the executor does not accept it', remedy };
  }
}

const MACHINE_REMEDY = {
  active: undefined,
  provisioning: 'set it to active when it is there: reveille machine put … --state active',
  suspended: 'let it be woken again with: reveille machine restore',
  deleted: 'register it anew with: reveille machine put',
} as const;

/** Whether the router knows where this machine's agent lives. */
export async function checkMachine(context: CliContext, url: string): Promise<Check | undefined> {
  const name = 'machine';
  const identity = orUndefined(() => localIdentity(context));
  if (!identity) return undefined;
  try {
    const router = createRouterClient({ url, token: context.settings.ROUTER_ADMIN_TOKEN });
    const { provider, state, running } = await router.show(identity.owner);
    const detail = `${provider}, ${state}${running === undefined ? '' : `, ${running}`}`;
    const remedy = MACHINE_REMEDY[state];
    return remedy === undefined ? { name, status: 'ok', detail } : { name, status: 'warning', detail, remedy };
  } catch (error) {
    const code = error instanceof ReveilleError ? error.code : undefined;
    if (code === 'not_found')
      return {
        name,
        status: 'warning',
        detail: `the router knows no machine of ${identity.owner}: its alarms wake nobody`,
        remedy: 'register one with: reveille machine put',
      };
    if (code !== 'unauthorized') return brokenBy(name, error);
    const remedy = 'set ROUTER_ADMIN_TOKEN to what the router was started with';
    return { name, status: 'broken', detail: 'the router does not accept ROUTER_ADMIN_TOKEN', remedy };
  }
}
