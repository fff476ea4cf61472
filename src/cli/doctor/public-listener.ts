/** Checks of the router's public listener: reachable for users, encrypted, with a console. */
import { systemClock } from '../../kit/clock/clock.ts';
import { isLoopback } from '../../kit/http/connections.ts';
import { below, codeOf, exchange } from '../../kit/http/exchange.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';
import { localAddress } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import type { Check } from './check.ts';
import { runningHere } from './own-files.ts';

const NAME = 'public listener';
const TIMEOUT_MS = 3000;
const MOST_BYTES = 64 * 1024;

const ask = (url: string, path: string) =>
  exchange(plainTransport, {
    ...{ method: 'GET', url: below(url, path), maxBytes: MOST_BYTES },
    limit: { clock: systemClock, ms: TIMEOUT_MS },
  });

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
