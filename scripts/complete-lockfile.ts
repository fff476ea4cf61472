/**
 * `npm run lock`, and `node scripts/complete-lockfile.ts bench/peers`: adds entries to package-lock.json that npm omits
 * when its registry lacks the packages of other platforms. Without those entries `npm ci` refuses the file; with them
 * it installs the packages of its platform (npm/cli issue 9846).
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

type Entry = {
  version?: string;
  integrity?: string;
  link?: boolean;
  optional?: boolean;
  dev?: boolean;
  os?: string[];
  cpu?: string[];
  optionalDependencies?: Record<string, string>;
};
type Lockfile = { packages: Record<string, Entry> };

const SYSTEMS: Readonly<Record<string, string>> = { windows: 'win32' };
const NAMED_SYSTEMS = [
  'darwin',
  'linux',
  'win32',
  'windows',
  'android',
  'freebsd',
  'openharmony',
  'netbsd',
  'openbsd',
  'sunos',
  'aix',
];
const NAMED_CPUS = ['x64', 'arm64', 'arm', 'ia32', 'ppc64', 'riscv64', 's390x', 'loong64', 'mips64el'];

/** The platform of a package, from its name: `@biomejs/cli-darwin-arm64`. */
function platformOf(name: string): Pick<Entry, 'os' | 'cpu'> {
  const words = name.split(/[/\-_.]/);
  const os = NAMED_SYSTEMS.find((system) => words.includes(system));
  const cpu = NAMED_CPUS.find((architecture) => words.includes(architecture));
  return { ...(cpu ? { cpu: [cpu] } : {}), ...(os ? { os: [SYSTEMS[os] ?? os] } : {}) };
}

/** The optional dependencies that the lock file names without an entry for them. */
export function missingOptional(lockfile: Lockfile): Map<string, Entry> {
  const missing = new Map<string, Entry>();
  for (const { optionalDependencies = {}, dev } of Object.values(lockfile.packages)) {
    for (const [name, version] of Object.entries(optionalDependencies)) {
      const path = `node_modules/${name}`;
      if (lockfile.packages[path] || !/^\d+\.\d+\.\d+/.test(version)) continue;
      missing.set(path, { version, ...platformOf(name), ...(dev ? { dev } : {}), optional: true });
    }
  }
  return missing;
}

/** The paths of all installed entries without a checksum. */
export function withoutIntegrity({ packages }: Lockfile): string[] {
  return Object.entries(packages).flatMap(([path, { integrity, link }]) =>
    path === '' || integrity !== undefined || link ? [] : [path],
  );
}

/** The registry's answer; `undefined` when it does not have the package. */
function integrityOf(path: string, version: string | undefined): string | undefined {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  try {
    const said = execFileSync('npm', ['view', `${name}@${version}`, 'dist.integrity'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return String(said).trim() || undefined;
  } catch {
    return undefined;
  }
}

if (import.meta.main) {
  const folder = process.argv[2] ?? join(import.meta.dirname, '..');
  const path = join(folder, 'package-lock.json');
  const lockfile = JSON.parse(readFileSync(path, 'utf8')) as Lockfile;
  const missing = missingOptional(lockfile);
  const [[root, rootEntry], ...rest] = Object.entries(lockfile.packages) as [[string, Entry], ...[string, Entry][]];
  const sorted = [...rest, ...missing].sort(([one], [other]) => (one < other ? -1 : 1));
  lockfile.packages = { [root]: rootEntry, ...Object.fromEntries(sorted) };
  for (const entry of withoutIntegrity(lockfile)) {
    const found = lockfile.packages[entry]!;
    const integrity = integrityOf(entry, found.version);
    if (integrity !== undefined) lockfile.packages[entry] = { ...found, integrity };
  }
  const open = withoutIntegrity(lockfile);
  if (open.length > 0) console.log(`without integrity, for this registry does not carry them: ${open.join(', ')}`);
  writeFileSync(path, `${JSON.stringify(lockfile, null, 2)}\n`);
  console.log(`${missing.size} entries added to package-lock.json`);
}
