/** `reveille open`: the console of the running `reveille up`, by an address that works once. */
import { spawn } from 'node:child_process';
import { makeCode } from '../../console/sessions.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliContext } from '../context.ts';
import { userOf } from '../flags/machine-user.ts';
import { readRun } from '../home/home.ts';

/** What opens an address in the person's browser. */
const OPENERS: Partial<Record<NodeJS.Platform, readonly [program: string, ...words: string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
  linux: ['xdg-open'],
};

/** An address that opens the console once, within ten minutes. */
export function consoleAddress(publicUrl: string, secret: string, user: string, now: number): string {
  return `${publicUrl}/open?code=${makeCode(secret, user, now)}`;
}

function addressOf(context: CliContext): string {
  const run = readRun(context.home);
  if (run?.public_url === undefined || run.console_secret === undefined)
    throw new ReveilleError(
      'unavailable',
      `no "reveille up" with a console runs in ${context.home.path}; start it with: reveille up`,
      { retryable: false },
    );
  return consoleAddress(run.public_url, run.console_secret, userOf(context, undefined), context.clock.now());
}

/** @returns whether a program took it */
function show(address: string): Promise<boolean> {
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

export async function open(context: CliContext, { print = false }: { print?: boolean }): Promise<void> {
  const { out } = context;
  const address = addressOf(context);
  if (print) return out.result({ address }, [address]);
  const isShown = await show(address);
  const lines = isShown
    ? ['The console opens in your browser.']
    : ['No browser could be started here. Open this address; it works once, within ten minutes:', address];
  out.result({ address: isShown ? undefined : address, opened: isShown }, lines);
}
