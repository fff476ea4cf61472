/** Reads Neo's data through its API: starts Neo on the data and sends requests. */
import { spawn } from 'node:child_process';
import { openEnvelope } from '../../../src/wire/envelope.ts';
import { eventuallyBy } from '../eventually.ts';
import { reservePort } from '../ports.ts';
import { PROGRAM } from './processes.ts';

/** The source text of the `data` of a GET. */
export type NeoGet = (path: string) => Promise<string>;

/** Starts another Neo on the data of one that is not running, lets `read` query it, and ends it. */
export async function readNeo<T>(
  { home, dataDir, token }: { home: string; dataDir: string; token: string },
  read: (get: NeoGet) => Promise<T>,
): Promise<T> {
  const port = await reservePort();
  const child = spawn(process.execPath, [PROGRAM, 'neo', '--json'], {
    env: {
      PATH: process.env.PATH,
      REVEILLE_HOME: home,
      REVEILLE_LOG: 'error',
      NEO_DATA_DIR: dataDir,
      NEO_DAEMON_TOKEN: token,
      NEO_PORT: String(port),
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const url = `http://127.0.0.1:${port}`;
  try {
    const ready = () =>
      fetch(`${url}/healthz`).then(
        (answer) => answer.ok,
        () => false,
      );
    await eventuallyBy(child, 'neo is ready', ready);
    return await read(async (path) => {
      const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } });
      return openEnvelope(await answer.text(), answer.status, 'neo').text;
    });
  } finally {
    child.kill('SIGTERM');
    await exited;
  }
}
