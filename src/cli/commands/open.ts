/** `reveille open`: opens the console of this installation, or of another router, with a one-time address. */
import { spawn } from 'node:child_process';
import { makeCode } from '../../console/sessions.ts';
import { machineZone } from '../../kit/clock/zone.ts';
import { callOf, createCaller, withinTime } from '../../kit/http/caller.ts';
import { CONSOLE_CODE } from '../../router/public/routes.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { userOf } from '../access/chronos.ts';
import { findPerson } from '../access/router.ts';
import type { CliContext } from '../context.ts';
import { readRun } from '../home/home.ts';

const CALL_MS = 15_000;

/** Programs that open an address in the user's browser. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly [program: string, ...words: string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
  linux: ['xdg-open'],
};

/** An address that opens the console once, within ten minutes. */
export function consoleAddress(publicUrl: string, secret: string, user: string, now: number): string {
  return `${publicUrl}/o/${makeCode(secret, user, now)}`;
}

/** An address of another router, with a code that it creates for the user's token. */
async function addressAt(context: CliContext, given: string | undefined): Promise<string> {
  const { home, clock, settings } = context;
  const place = findPerson(given === undefined ? context : { home, settings: { ...settings, REVEILLE_URL: given } });
  const daemon = { name: 'the router', url: place.url, remedy: 'check the address', tokenName: 'REVEILLE_TOKEN' };
  const { address, call, read } = createCaller({ ...daemon, token: place.token });
  const zone = machineZone(settings.TZ);
  const asked = callOf(CONSOLE_CODE, {}, { body: { ...(zone !== undefined && { zone }) } });
  const answer = await withinTime(clock, CALL_MS)((signal) => call(asked, signal));
  return `${address}/o/${read(asked, CONSOLE_CODE.data, answer).code}`;
}

function ownAddress(context: CliContext): string {
  const run = readRun(context.home);
  if (run?.public_url === undefined || run.console_secret === undefined)
    throw new ReveilleError(
      'unavailable',
      `no "reveille up" with a console runs in ${context.home.path}; start it with: reveille up`,
      { retryable: false },
    );
  return consoleAddress(
    run.console_url ?? run.public_url,
    run.console_secret,
    userOf(context, undefined),
    context.clock.now(),
  );
}

/** @returns whether a program opened it */
export function openInBrowser(address: string): Promise<boolean> {
  const opener = OPENERS[process.platform];
  if (!opener) return Promise.resolve(false);
  const [program, ...words] = opener;
  return new Promise((resolve) => {
    const child = spawn(program, [...words, address], { stdio: 'ignore', detached: true });
    child.once('error', () => resolve(false));
    child.once('spawn', () => {
      child.unref();
      resolve(true);
    });
  });
}

export type OpenFlags = { print?: boolean; url?: string };

export async function open(context: CliContext, { print = false, url }: OpenFlags): Promise<void> {
  const { out, settings } = context;
  const named = url ?? settings.REVEILLE_URL;
  const isElsewhere = named !== undefined && named !== readRun(context.home)?.public_url;
  const address = isElsewhere ? await addressAt(context, url) : ownAddress(context);
  if (print) return out.result({ address }, [address]);
  const isShown = await openInBrowser(address);
  const lines = isShown
    ? ['The console opens in your browser.']
    : ['No browser was started here. Open this address; it works once, within ten minutes:', address];
  out.result({ address: isShown ? undefined : address, opened: isShown }, lines);
}
