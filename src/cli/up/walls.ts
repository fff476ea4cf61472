/**
 * What programs that the daemons of this computer start must not see, and what they get back
 * (docs/decisions/0019-separation.md).
 */
import { mkdirSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import type { ExecutorConfig } from '../../executor/config.ts';
import { type Places, SEPARATED_VARIABLE, type SeparationMode, Walls } from '../../kit/process/separation.ts';
import { type Grant, isWithin } from '../../kit/process/view.ts';
import { programFolders } from '../../mcp-host/bundled-programs.ts';
import { spillFolderPath } from '../../mcp-host/spill-folder.ts';
import { lockPathOf } from '../../mcp-host/tool-lock.ts';
import type { NeoConfig } from '../../neo/config.ts';
import type { CliContext } from '../context.ts';
import type { Home } from '../home/home.ts';
import { PACKAGE_ROOT, PROGRAM } from '../home/package-root.ts';

type Placed = Pick<CliContext, 'home' | 'settings' | 'environment'>;

const DATA_FOLDERS = ['CHRONOS', 'ROUTER', 'NEO', 'EXECUTOR', 'LEDGER', 'CHRONOMETRIC'].map(
  (name) => `${name}_DATA_DIR`,
);
/** Whoever may use one of these can do anything on the computer. */
const ENGINES = ['/run/docker.sock', '/run/podman', '/run/containerd', '/run/crio'];
/**
 * What a shell, a desktop or ssh runs by itself for the user: a program that wrote there would leave the sandbox with
 * the next login.
 */
const STARTED_BY_ITSELF = [
  ...[
    '.profile',
    '.bashrc',
    '.bash_profile',
    '.bash_login',
    '.bash_logout',
    '.zshrc',
    '.zshenv',
    '.zprofile',
    '.zlogin',
  ],
  ...[
    '.config/fish',
    '.config/autostart',
    '.config/systemd',
    '.config/environment.d',
    '.local/share/systemd',
    '.local/share/dbus-1',
  ],
  ...['.ssh', '.pam_environment', '.xprofile', '.xsessionrc', '.xinitrc', 'Library/LaunchAgents'],
];

function makeFolder(path: string, { recursive }: { recursive: boolean }): void {
  try {
    mkdirSync(path, { recursive, mode: 0o700 });
  } catch {
    // It is there; or it is somebody else's, on a medium that is only read, or in no home at all: nobody makes it then.
  }
}

/**
 * Where Node keeps compiled code of programs that ask for it (npm, TypeScript and others do; ours lies in the package):
 * what lies there is run without another look, for the person. Made here, for what is not there cannot be kept.
 */
function compiledPlaces({ NODE_COMPILE_CACHE: told }: Placed['environment']): string[] {
  const places = [join(tmpdir(), 'node-compile-cache'), ...(told ? [resolve(told)] : [])];
  for (const place of places) makeFolder(place, { recursive: true });
  return places;
}

/** The folders that may hold the key of who approves. */
function approverFolders(environment: Placed['environment'], person: string): string[] {
  const { REVEILLE_APPROVER_DIR: told, XDG_CONFIG_HOME: config } = environment;
  if (process.platform === 'darwin')
    return [...(told ? [told] : []), join(person, 'Library', 'Application Support', 'reveille-approver')];
  return [told, config && join(config, 'reveille-approver'), join(person, '.config', 'reveille-approver')].flatMap(
    (path) => (path ? [resolve(path)] : []),
  );
}

/**
 * The home as a whole, or, where more than ours lives in it, what is ours there: what is replaced while we run as the
 * folder that it lies in, for what covers a file goes with the file.
 */
function homePlaces(home: Home, person: string): string[] {
  if (!isWithin(person, home.path)) return [home.path];
  const ours = ['chronos', 'router', 'neo', 'executor', 'ledger', 'chronometric', 'presets'];
  const files = Object.values(home).filter((path) => path !== home.path);
  return [...files, ...ownFolders(home), ...ours.map((name) => join(home.path, name))];
}

/** Folders of the home that files lie in which the command line makes. */
const ownFolders = (home: Home) => [dirname(home.keyFile), dirname(home.newsFile)];

/** Where the person's key store, session bus, terminals and agents listen. */
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

/** Files with private keys, and folders, that settings name. */
function toldPlaces(settings: Placed['settings']): string[] {
  const keys = Object.entries(settings).flatMap(([name, value]) =>
    value && /_(?:TLS_KEY|TLS_KEY_FILE|KEYFILE)$/.test(name) ? [value] : [],
  );
  const folders = [...DATA_FOLDERS, 'EXECUTOR_AGENT_KEYS'].flatMap((name) => settings[name] || []);
  return [...keys, ...folders].map((path) => resolve(path));
}

/** What says which tools there are, and what they may do without a question. */
function rulePlaces({ EXECUTOR_MANIFEST, EXECUTOR_POLICY, NEO_MANIFEST }: Placed['settings']): string[] {
  const manifests = [EXECUTOR_MANIFEST, NEO_MANIFEST].flatMap((path) => (path ? [path, lockPathOf(path)] : []));
  return [...manifests, ...(EXECUTOR_POLICY ? [EXECUTOR_POLICY] : [])].map((path) => resolve(path));
}

function placesOf({ home, settings, environment }: Placed, grantable: readonly Grant[]): Places {
  const person = environment.HOME || homedir();
  const approver = approverFolders(environment, person);
  // Before anybody could make them who is not to see them; also, what is not there cannot be hidden.
  for (const folder of approver.slice(0, 1)) makeFolder(folder, { recursive: true });
  for (const folder of ownFolders(home)) makeFolder(folder, { recursive: false });
  return {
    hidden: [
      ...homePlaces(home, person),
      ...approver,
      ...sessionPlaces(environment, person),
      ...ENGINES,
      ...toldPlaces(settings),
    ],
    shared: (settings.REVEILLE_HIDDEN ?? '').split(delimiter).filter((path) => isAbsolute(path)),
    grantable,
    kept: [PACKAGE_ROOT, process.execPath, ...compiledPlaces(environment), ...rulePlaces(settings)],
    never: STARTED_BY_ITSELF.map((name) => join(person, name)),
    home: person,
    nesting: [PROGRAM],
    tools: programFolders(),
  };
}

/** What a program of the agent may have when its command or its environment names it. */
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

/** Walls around the machines of a router. */
export function machineWalls(context: Placed, mode: SeparationMode): Walls {
  return new Walls(mode, placesOf(context, agentGrants(context)), context.environment.PATH);
}

/** What the agent of this installation needs to set alarms, whatever program it is, and the pins of its tools. */
export function accessGrants({ home, settings }: Placed): Grant[] {
  const { accessFile, identityFile, keyFile } = home;
  const pins = settings.NEO_MANIFEST ? [resolve(lockPathOf(settings.NEO_MANIFEST))] : [];
  return [accessFile, identityFile, keyFile, ...pins].map((path) => ({ path, writable: false }));
}

/** Walls around the MCP servers of Neo. */
export function neoWalls(
  context: Placed,
  { dataDir, tools, separation }: Pick<NeoConfig, 'dataDir' | 'tools' | 'separation'>,
): Walls {
  return serverWalls(context, separation, [tools?.workspace, spillFolderPath(dataDir)]);
}

/** Walls around the MCP servers of the executor. */
export function executorWalls(
  context: Placed,
  places: Pick<ExecutorConfig, 'dataDir' | 'workspace' | 'agentKeysDir' | 'separation'>,
): Walls {
  const { dataDir, workspace, agentKeysDir, separation } = places;
  const folders = [context.settings.LEDGER_DATA_DIR, workspace, spillFolderPath(dataDir)];
  return serverWalls(context, separation, folders, [agentKeysDir]);
}

/**
 * Walls around the MCP servers of a daemon.
 *
 * @param folders what of the daemon's data a server that is told of it works in
 * @param readable what of it such a server may read
 */
function serverWalls(
  context: Placed,
  mode: SeparationMode,
  folders: readonly (string | undefined)[],
  readable: readonly string[] = [],
): Walls {
  const { CHRONOMETRIC_DATA_DIR, MATRIX_EXECUTOR_KEYFILE } = context.settings;
  const writable = [...folders, CHRONOMETRIC_DATA_DIR].flatMap((path) => path || []);
  const grants = [
    ...writable.map((path) => ({ path: resolve(path), writable: true })),
    ...readable.map((path) => ({ path, writable: false })),
    { path: resolve(MATRIX_EXECUTOR_KEYFILE || context.home.keyFile), writable: false },
  ];
  // A daemon that is behind walls itself may not be able to build more; its servers share its own then.
  const isBehindWalls = context.environment[SEPARATED_VARIABLE] !== undefined;
  return new Walls(
    isBehindWalls && mode === 'required' ? 'auto' : mode,
    placesOf(context, grants),
    context.environment.PATH,
  );
}
