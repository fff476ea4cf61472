/**
 * The optional tools of the tests: programs that a test starts and that npm does not install. Only this module decides
 * which of them are present. A test whose tool is missing is skipped, and its reason names the command that installs
 * the tool. With `CI` set it fails instead.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { probeBubblewrap } from '../../src/kit/process/bubblewrap.ts';
import type { SandboxMechanism } from '../../src/kit/process/view.ts';
import { findFaketime } from './cluster/wall-clock.ts';

type Requirement = {
  /** All of them must be on the PATH. */
  readonly programs: readonly string[];
  /** The packages of Debian and its derivatives that contain them; CI installs these. */
  readonly packages?: string;
  /** The command that installs them, where there is no such package. CI runs without them. */
  readonly install?: string;
  /** A further condition on the installed programs. */
  readonly works?: () => boolean;
};

const succeeds = (program: string, ...args: string[]) => spawnSync(program, args).status === 0;

/** The first Python with the library that the Python client needs: another one may be first on the PATH. */
export const pythonForClient = (): string | undefined =>
  ['python3', '/usr/bin/python3'].find((program) =>
    succeeds(program, '-c', 'import sys, cryptography; sys.exit(sys.version_info < (3, 11))'),
  );

const TOOLS = {
  bubblewrap: { programs: ['bwrap'], packages: 'bubblewrap' },
  git: { programs: ['git'], packages: 'git' },
  script: {
    programs: ['script', 'stty'],
    packages: 'bsdutils',
    // The `script` of other systems takes other options.
    works: () => /util-linux/.test(String(spawnSync('script', ['--version']).stdout)),
  },
  python3: {
    programs: ['python3'],
    packages: 'python3',
    works: () => succeeds('python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 11))'),
  },
  'python3-venv': {
    programs: ['python3'],
    packages: 'python3-venv',
    works: () => succeeds('python3', '-c', 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'),
  },
  'python3-cryptography': {
    programs: ['python3'],
    packages: 'python3-cryptography',
    works: () => pythonForClient() !== undefined,
  },
  zsh: { programs: ['zsh'], packages: 'zsh' },
  fish: { programs: ['fish'], packages: 'fish' },
  bash: { programs: ['bash'], packages: 'bash' },
  groff: { programs: ['groff'], packages: 'groff-base' },
  lsof: { programs: ['lsof'], packages: 'lsof' },
  unshare: { programs: ['unshare'], packages: 'util-linux' },
  setpriv: { programs: ['setpriv'], packages: 'util-linux' },
  setsid: { programs: ['setsid'], packages: 'util-linux' },
  mount: { programs: ['mount', 'umount'], packages: 'mount' },
  Xvfb: { programs: ['Xvfb'], packages: 'xvfb' },
  xdotool: { programs: ['xdotool'], packages: 'xdotool' },
  xprintidle: { programs: ['xprintidle'], packages: 'xprintidle' },
  'dbus-daemon': { programs: ['dbus-daemon'], packages: 'dbus' },
  gdbus: { programs: ['gdbus'], packages: 'libglib2.0-bin' },
  busctl: { programs: ['busctl'], packages: 'systemd' },
  systemd: { programs: ['systemctl'], packages: 'systemd' },
  faketime: { programs: [], packages: 'libfaketime', works: () => findFaketime() !== undefined },
  curl: { programs: ['curl'], packages: 'curl' },
  iproute2: { programs: ['ip'], packages: 'iproute2' },
  prometheus: { programs: ['prometheus', 'promtool'], packages: 'prometheus' },
  browser: {
    programs: ['playwright-mcp', 'chromium'],
    install: 'npm install --global @playwright/mcp@0.0.83 && apt-get install -y chromium',
  },
  helm: { programs: ['helm'], install: 'go install helm.sh/helm/v4/cmd/helm@v4.3.1' },
  patroni: {
    programs: ['patroni', 'etcd', 'haproxy', 'setpriv', 'pg_config'],
    packages: 'patroni etcd-server python3-etcd haproxy postgresql libpq-dev',
  },
} as const satisfies Record<string, Requirement>;
export type Tool = keyof typeof TOOLS;

/** The names of all optional tools. */
export const TOOL_NAMES = Object.keys(TOOLS) as Tool[];

/** The programs of a tool that the PATH must have. */
export const programsOf = (tool: Tool): readonly string[] => TOOLS[tool].programs;

/** The command that installs a tool. */
export function installCommand(tool: Tool): string {
  const { packages, install }: Requirement = TOOLS[tool];
  return install ?? `apt-get install -y --no-install-recommends ${packages}`;
}

/** The path of a program on the PATH, or `undefined`. */
export function onPath(program: string): string | undefined {
  const paths = (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '');
  return paths
    .map((folder) => join(folder, program))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

const found = new Map<Tool, boolean>();

function has(tool: Tool): boolean {
  const { programs, works = () => true }: Requirement = TOOLS[tool];
  if (!found.has(tool)) found.set(tool, programs.every((program) => onPath(program) !== undefined) && works());
  return found.get(tool)!;
}

/** The form of a skip reason that names missing tools: {@link toolsIn} reads it. */
const reasonOf = (tools: readonly Tool[]) => `needs ${tools.join(', ')} (${tools.map(installCommand).join('; ')})`;

/** The missing tools that a skip reason names; none for a skip of another kind. */
export function toolsIn(reason: unknown): Tool[] {
  const [, names = ''] = /^needs ([^(]+) \(/.exec(String(reason)) ?? [];
  return names.split(', ').filter((name): name is Tool => name in TOOLS);
}

/**
 * The skip option of a test or a suite that starts these tools.
 *
 * @param ci whether a missing tool is an error
 * @returns the reason to skip, or `false` when all are present
 * @throws in CI, when one is missing
 */
export function needs(tools: Tool | readonly Tool[], ci = process.env.CI !== undefined): string | false {
  const missing = [tools].flat().filter((tool) => !has(tool as Tool)) as Tool[];
  const isInCi = missing.some((tool) => 'packages' in TOOLS[tool]);
  return missing.length > 0 && skipReason(reasonOf(missing), ci && isInCi);
}

function skipReason(reason: string, ci = process.env.CI !== undefined): string {
  if (ci) throw new Error(`not tested: ${reason}`);
  return reason;
}

/**
 * Skips a running test that starts these tools, when one of them is missing.
 *
 * @returns whether the test was skipped and must return
 */
export function lacks(t: TestContext, tools: Tool | readonly Tool[]): boolean {
  const reason = needs(tools);
  if (reason !== false) t.skip(reason);
  return reason !== false;
}

/** The reason to skip a test with the sandbox; `false` when the computer has `means` for one. */
export function needsSandbox(means: SandboxMechanism): string | false {
  if (means.kind !== 'none') return false;
  return (process.platform === 'linux' && needs('bubblewrap')) || skipReason(means.why);
}

/** Whether bubblewrap works here. Where it does not, the test is skipped and must return. */
export async function hasBubblewrap(t: TestContext): Promise<boolean> {
  const isLinux = process.platform === 'linux';
  const reason = isLinux ? needsSandbox(await probeBubblewrap(process.env.PATH)) : 'bubblewrap is for Linux';
  if (reason !== false) t.skip(reason);
  return reason === false;
}

// `.ci/run` installs these.
if (import.meta.main) {
  const packages = Object.values<Requirement>(TOOLS).flatMap((tool) => tool.packages?.split(' ') ?? []);
  console.log([...new Set(packages)].join(' '));
}
