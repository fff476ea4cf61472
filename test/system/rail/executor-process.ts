/** The executor as a process of its own, with the bundled ledger of play money. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { openBook } from '../../../examples/ledger/book.ts';
import { systemClock } from '../../../src/kit/clock/clock.ts';
import { openEnvelope } from '../../../src/wire/envelope.ts';
import { ADMIN_TOKEN } from '../../support/cluster/approval.ts';
import { PROGRAM } from '../../support/cluster/processes.ts';

export const EXECUTOR_TOKEN = 'the-executor-token-of-the-tests';

export type ExecutorProcess = {
  readonly url: string;
  /** Its stderr so far. */
  log(): string;
  /** The `data` of a GET as this user, as its source text. */
  get(user: string, path: string): Promise<string>;
  /** Sends the signal and resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
};

/**
 * Starts `reveille executor` below a home folder; resolves when it accepts requests.
 *
 * @param as another user of the system, for a test that runs as root
 */
export async function startExecutorProcess(
  home: string,
  env: Record<string, string>,
  as: { uid?: number; gid?: number } = {},
): Promise<ExecutorProcess> {
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, 'executor', '--json'], {
    env: {
      PATH: process.env.PATH,
      REVEILLE_HOME: home,
      EXECUTOR_PORT: '0',
      EXECUTOR_DATA_DIR: join(home, 'executor'),
      LEDGER_DATA_DIR: join(home, 'ledger'),
      EXECUTOR_TOKEN,
      EXECUTOR_ADMIN_TOKEN: ADMIN_TOKEN,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...as,
  });
  let log = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const closed = once(child, 'close');
  const ready = await Promise.race([once(child.stdout!, 'data'), closed.then(() => undefined)]);
  if (!ready) throw new Error(log.trim());
  const { url } = JSON.parse(String(ready[0])) as { url: string };
  return {
    url,
    log: () => log,
    async get(user, path) {
      const headers = { authorization: `Bearer ${EXECUTOR_TOKEN}`, 'x-matrix-user': user };
      const answer = await fetch(url + path, { headers });
      return openEnvelope(await answer.text(), answer.status, 'the executor').text;
    },
    async end(signal) {
      child.kill(signal);
      await closed;
    },
  };
}

/** The balances of the ledger's accounts. */
export function balancesOf(home: string): Record<string, string> {
  const book = openBook(join(home, 'ledger'), systemClock);
  try {
    return Object.fromEntries(book.accounts().map(({ account, balance }) => [account, balance]));
  } finally {
    book.close();
  }
}
