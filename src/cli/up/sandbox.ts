/** Hidden and visible files of the programs that this computer's daemons start in a sandbox. */
import { mkdirSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import type { NeoConfig } from '../../agents/neo/config.ts';
import type { ExecutorConfig } from '../../executor/config.ts';
import { ISOLATED_VARIABLE, type IsolationMode, Sandbox, type SandboxPaths } from '../../kit/process/isolation.ts';
import { type Grant, isWithin } from '../../kit/process/view.ts';
import { programFolders } from '../../mcp-host/bundled-programs.ts';
import { spillFolderPath } from '../../mcp-host/output-cap.ts';
import { lockPathOf } from '../../mcp-host/tool-lock.ts';
import type { CliContext } from '../context.ts';
import type { Home } from '../home/home.ts';
import { PACKAGE_ROOT, PROGRAM } from '../home/package-root.ts';

type Placed = Pick<CliContext, 'home' | 'settings' | 'environment'>;

const DATA_FOLDERS = ['CHRONOS', 'ROUTER', 'NEO', 'EXECUTOR', 'LEDGER', 'CHRONOMETRIC'].map(
  (name) => `${name}_DATA_DIR`,
);
/** Access to one of these gives control over the computer. */
const ENGINES = ['/run/docker.sock', '/run/podman', '/run/containerd', '/run/crio'];
/** Files that a shell, a desktop or ssh runs for the user: a program that writes them would leave the sandbox at the next login. */
const STARTED_BY_ITSELF = [
  ...['.profile', '.bashrc', '.bash_profile', '.bash_login', '.bash_logout'],
  ...['.zshrc', '.zshenv', '.zprofile', '.zlogin'],
  ...['.config/fish', '.config/autostart', '.config/systemd', '.config/environment.d'],
  ...['.local/share/systemd', '.local/share/dbus-1'],
  ...['.ssh', '.pam_environment', '.xprofile', '.xsessionrc', '.xinitrc', 'Library/LaunchAgents'],
];

function makeFolder(path: string, { recursive }: { recursive: boolean }): void {
  try {
    mkdirSync(path, { recursive, mode: 0o700 });
  } catch {
    // It exists, or belongs to another user, or is on a read-only medium: it is not created then.
  }
}

/**
 * Node's folder of compiled code of other programs (npm, TypeScript and others; ours is in the package). Its files are
 * executed unchecked, for the user. It is created here, because a missing folder cannot be protected.
 */
function compileCachePaths({ NODE_COMPILE_CACHE: configured }: Placed['environment']): string[] {
  const paths = [join(tmpdir(), 'node-compile-cache'), ...(configured ? [resolve(configured)] : [])];
  for (const path of paths) makeFolder(path, { recursive: true });
  return paths;
}

/** The folders that may contain the approver's key. */
function approverFolders(environment: Placed['environment'], person: string): string[] {
  const { REVEILLE_APPROVER_DIR: configured, XDG_CONFIG_HOME: config } = environment;
  if (process.platform === 'darwin')
    return [...(configured ? [configured] : []), join(person, 'Library', 'Application Support', 'reveille-approver')];
  return [
    configured,
    config && join(config, 'reveille-approver'),
    join(person, '.config', 'reveille-approver'),
  ].flatMap((path) => (path ? [resolve(path)] : []));
}

/**
 * The whole home, or its own files when it contains others. Files that are replaced at run time are hidden by folder,
 * because a mount over a file is lost when the file is replaced.
 */
function homePlaces(home: Home, person: string): string[] {
  if (!isWithin(person, home.path)) return [home.path];
  const ours = ['chronos', 'router', 'neo', 'executor', 'ledger', 'chronometric', 'presets'];
  const files = Object.values(home).filter((path) => path !== home.path);
  return [...files, ...ownFolders(home), ...ours.map((name) => join(home.path, name))];
}

/** Folders of the home with files that the command line creates. */
const ownFolders = (home: Home) => [dirname(home.keyFile), dirname(home.newsFile)];

/** Sockets of the user's keyring, session bus, terminals and agents. */
function sessionPlaces(environment: Placed['environment'], person: string): string[] {
  const uid = process.getuid?.();
  const { XDG_RUNTIME_DIR: runtime, DBUS_SESSION_BUS_ADDRESS: bus = '' } = environment;
  const buses = [...bus.matchAll(/unix:path=([^,;]+)/g)].map((match) => match[1]!);
  return [
    ...(runtime ? [runtime] : []),
    ...(uid === undefined ? [] : [`/run/user/${uid}`, `/tmp/tmux-${uid}`]),
    ...['.local/share/keyrings', '.local/share/kwalletd'].map((name) => join(person, name)),
    ...['/run/screen', ...buses],
  ];
}

/** Files with private keys, and folders, from settings. */
function configuredPaths(settings: Placed['settings']): string[] {
  const keys = Object.entries(settings).flatMap(([name, value]) =>
    value && /_(?:TLS_KEY|TLS_KEY_FILE|KEYFILE)$/.test(name) ? [value] : [],
  );
  const folders = [...DATA_FOLDERS, 'EXECUTOR_AGENT_KEYS'].flatMap((name) => settings[name] || []);
  return [...keys, ...folders].map((path) => resolve(path));
}

/** Files that define the tools and what they may do without approval. */
function rulePaths({ EXECUTOR_MANIFEST, EXECUTOR_POLICY, NEO_MANIFEST }: Placed['settings']): string[] {
  const manifests = [EXECUTOR_MANIFEST, NEO_MANIFEST].flatMap((path) => (path ? [path, lockPathOf(path)] : []));
  return [...manifests, ...(EXECUTOR_POLICY ? [EXECUTOR_POLICY] : [])].map((path) => resolve(path));
}

function placesOf({ home, settings, environment }: Placed, grantable: readonly Grant[]): SandboxPaths {
  const person = environment.HOME || homedir();
  const approver = approverFolders(environment, person);
  // Created before a hidden program could create them; a missing file cannot be hidden.
  for (const folder of approver.slice(0, 1)) makeFolder(folder, { recursive: true });
  for (const folder of ownFolders(home)) makeFolder(folder, { recursive: false });
  return {
    hidden: [
      ...homePlaces(home, person),
      ...approver,
      ...sessionPlaces(environment, person),
      ...ENGINES,
      ...configuredPaths(settings),
    ],
    shared: (settings.REVEILLE_HIDDEN ?? '').split(delimiter).filter((path) => isAbsolute(path)),
    grantable,
    kept: [PACKAGE_ROOT, process.execPath, ...compileCachePaths(environment), ...rulePaths(settings)],
    never: STARTED_BY_ITSELF.map((name) => join(person, name)),
    home: person,
    nesting: [PROGRAM],
    tools: programFolders(),
  };
}

/** Files for a program of the agent that its command or environment names. */
function agentGrants({ home, settings }: Placed): Grant[] {
  const { NEO_DATA_DIR, NEO_WORKSPACE, CHRONOMETRIC_DATA_DIR, MATRIX_EXECUTOR_KEYFILE } = settings;
  const { NEO_MANIFEST, NEO_SKILL } = settings;
  const writable = [NEO_DATA_DIR, NEO_WORKSPACE, CHRONOMETRIC_DATA_DIR].flatMap((path) => path || []);
  return [
    ...writable.map((path) => ({ path: resolve(path), writable: true })),
    ...[MATRIX_EXECUTOR_KEYFILE || home.keyFile, NEO_MANIFEST, NEO_SKILL].flatMap((path) =>
      path ? [{ path: resolve(path), writable: false }] : [],
    ),
  ];
}

/** The sandbox of a router's machines. */
export function machineSandbox(context: Placed, mode: IsolationMode): Sandbox {
  return new Sandbox(mode, placesOf(context, agentGrants(context)), context.environment.PATH);
}

/** Files that this installation's agent needs to set alarms, and the pins of its tools. */
export function accessGrants({ home, settings }: Placed): Grant[] {
  const { accessFile, identityFile, keyFile } = home;
  const pins = settings.NEO_MANIFEST ? [resolve(lockPathOf(settings.NEO_MANIFEST))] : [];
  return [accessFile, identityFile, keyFile, ...pins].map((path) => ({ path, writable: false }));
}

/** The sandbox of Neo's MCP servers. */
export function neoSandbox(
  context: Placed,
  { dataDir, tools, isolation }: Pick<NeoConfig, 'dataDir' | 'tools' | 'isolation'>,
): Sandbox {
  return toolServerSandbox(context, isolation, [tools?.workspace, spillFolderPath(dataDir)]);
}

/** The sandbox of the executor's MCP servers. */
export function executorSandbox(
  context: Placed,
  places: Pick<ExecutorConfig, 'dataDir' | 'workspace' | 'agentKeysDir' | 'isolation'>,
): Sandbox {
  const { dataDir, workspace, agentKeysDir, isolation } = places;
  const folders = [context.settings.LEDGER_DATA_DIR, workspace, spillFolderPath(dataDir)];
  return toolServerSandbox(context, isolation, folders, [agentKeysDir]);
}

/**
 * The sandbox of a daemon's MCP servers.
 *
 * @param folders data folders of the daemon in which a server works that refers to them
 * @param readable folders that such a server may read
 */
function toolServerSandbox(
  context: Placed,
  mode: IsolationMode,
  folders: readonly (string | undefined)[],
  readable: readonly string[] = [],
): Sandbox {
  const { CHRONOMETRIC_DATA_DIR, MATRIX_EXECUTOR_KEYFILE } = context.settings;
  const writable = [...folders, CHRONOMETRIC_DATA_DIR].flatMap((path) => path || []);
  const grants = [
    ...writable.map((path) => ({ path: resolve(path), writable: true })),
    ...readable.map((path) => ({ path, writable: false })),
    { path: resolve(MATRIX_EXECUTOR_KEYFILE || context.home.keyFile), writable: false },
  ];
  // A daemon in a sandbox may not be able to create another one; its servers share its own.
  const isSandboxed = context.environment[ISOLATED_VARIABLE] !== undefined;
  return new Sandbox(
    isSandboxed && mode === 'required' ? 'auto' : mode,
    placesOf(context, grants),
    context.environment.PATH,
  );
}
