/**
 * The mechanism of isolation on this computer, and the disabled parts of an installation: the missing program or setting,
 * and the remedy.
 */
import { z } from 'zod';
import { foldersOf, manifestPathOf } from '../../agents/neo/tools/file-check.ts';
import { parseToolConfig } from '../../agents/neo/tools/settings.ts';
import { parseExecutorConfig } from '../../executor/config.ts';
import { parseModelConfig } from '../../kit/model/endpoint.ts';
import { NO_SANDBOX_PATHS, Sandbox } from '../../kit/process/isolation.ts';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { loadManifest, type ServerSpec } from '../../mcp-host/manifest.ts';
import { lacksSignIn, TokenStore } from '../../mcp-host/oauth/token-store.ts';
import { cannotRunAs } from '../../router/providers/isolation.ts';
import { isolationSetting, parseSettings, type Settings } from '../../wire/settings.ts';
import { orUndefined } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { settingsOfAgent } from '../home/neo-manifest.ts';
import { EXPERIMENTAL } from '../service/experimental.ts';
import type { Check } from './check.ts';

const SIGN_IN = 'reveille neo server login';

/** The executor's settings without generated secrets. */
export const withoutSecrets = (settings: Settings): Settings => ({
  ...settings,
  EXECUTOR_DEV: '1',
  ...(settings.EXECUTOR_TOKEN === undefined ? { EXECUTOR_HOST: undefined } : {}),
});

/** What the servers of a manifest lack: a program, a setting, or a sign-in that they have asked for. */
function lacksOf(path: string, variables: Settings, signIns: TokenStore, signInCommand: string): string[] {
  const signInLack = ({ alias, link }: ServerSpec): string | undefined => {
    if (link.kind !== 'http' || link.oauth === undefined || link.oauth.grant === 'client_credentials') return undefined;
    const lacks = lacksSignIn(signIns.read({ alias, url: link.url }));
    return lacks ? `it needs sign-in, or more scopes; run: ${signInCommand} ${alias}` : undefined;
  };
  return loadManifest(path, variables).servers.flatMap((spec) => {
    const lack = spec.unmetNeed ?? signInLack(spec);
    return lack === undefined ? [] : [`${spec.alias}: ${lack}`];
  });
}

function lacksOfNeo(context: CliContext): string[] {
  const settings = settingsOfAgent(context);
  const dataDir = settings.NEO_DATA_DIR!;
  const config = parseToolConfig(settings, dataDir);
  if (config.manifest === undefined) return [];
  const variables = { ...settings, ...foldersOf(config, dataDir) };
  return lacksOf(manifestPathOf(config.manifest), variables, new TokenStore(dataDir, context.clock), SIGN_IN);
}

function lacksOfExecutor({ settings, clock }: CliContext): string[] {
  const { manifest, workspace, dataDir } = parseExecutorConfig(withoutSecrets(settings));
  const path = manifest === 'bundled' ? bundledManifest('executor') : manifest.path;
  const variables = { ...settings, EXECUTOR_WORKSPACE: workspace };
  return lacksOf(path, variables, new TokenStore(dataDir, clock), `${SIGN_IN} --executor`);
}

/**
 * The disabled capabilities of the agent and of the executor, one sentence each: its name, the missing program or
 * setting, and the remedy. Wrong settings and manifests have checks of their own.
 */
export function disabledCapabilities(context: CliContext): string[] {
  const ofNeo = orUndefined(() => lacksOfNeo(context)) ?? [];
  return [...new Set([...ofNeo, ...(orUndefined(() => lacksOfExecutor(context)) ?? [])])];
}

/**
 * The missing sandbox and the disabled capabilities. Capabilities that only need the sandbox's program share its
 * sentence. Pure.
 *
 * @param why why there is no sandbox; `undefined` when that is not reported
 */
export function sandboxAndCapabilities(why: string | undefined, capabilities: readonly string[]): string[] {
  if (why === undefined) return [...capabilities];
  const causedByIt = why.startsWith('bubblewrap is not installed')
    ? /^([^:]+): there is no program bwrap\b/
    : undefined;
  const aliasOf = (sentence: string) => causedByIt?.exec(sentence)?.[1];
  const names = ['sandbox', ...capabilities.flatMap((sentence) => aliasOf(sentence) ?? [])];
  return [`${names.join(', ')}: ${why}`, ...capabilities.filter((sentence) => aliasOf(sentence) === undefined)];
}

/** The sentences of {@link disabledCapabilities} and those of the model and of the sandbox. */
export async function disabledParts(context: CliContext): Promise<string[]> {
  const model = orUndefined(() => parseModelConfig('NEO', context.settings).model.kind);
  const sandbox = await isolationFacts(context);
  return [
    ...(model === 'offline'
      ? ['model: Neo answers offline; set NEO_MODEL, NEO_MODEL_BASE_URL and NEO_MODEL_API_KEY']
      : []),
    ...sandboxAndCapabilities(sandbox?.mode === 'auto' ? sandbox.why : undefined, disabledCapabilities(context)),
  ];
}

/** The doctor's line for each disabled capability. */
export function checkCapabilities(context: CliContext): Check {
  const name = 'capabilities';
  const disabled = disabledCapabilities(context);
  if (disabled.length === 0) return { name, status: 'ok', detail: 'all are enabled' };
  return { name, status: 'note', detail: disabled.map((sentence) => `off: ${sentence}`).join('\n') };
}

/** The status without isolation. `off` is the operator's choice. */
const STATUS = { required: 'broken', auto: 'warning', off: 'note' } as const;

type IsolationFacts = {
  readonly mode: 'auto' | 'required' | 'off';
  /** The mechanism of the sandbox; `undefined` without one. */
  readonly by: 'bubblewrap' | 'sandbox-exec' | undefined;
  /** Why there is none. */
  readonly why: string | undefined;
  /** Why machines cannot have another user id; `undefined` when they can. */
  readonly noRunAs: string | undefined;
  /** Whether this user's daemons run as root. */
  readonly isRoot: boolean;
};

/** @returns `undefined` for a wrong setting, which another check reports */
async function isolationFacts(context: CliContext): Promise<IsolationFacts | undefined> {
  const schema = z.object({ REVEILLE_SEPARATION: isolationSetting });
  const mode = orUndefined(() => parseSettings(schema, context.settings))?.REVEILLE_SEPARATION;
  if (mode === undefined) return undefined;
  // Only the mechanism is tried here.
  const means = await new Sandbox(mode, NO_SANDBOX_PATHS, context.environment.PATH).mechanism();
  const by = means.kind === 'bubblewrap' ? 'bubblewrap' : means.kind === 'seatbelt' ? 'sandbox-exec' : undefined;
  const isRoot = process.geteuid?.() === 0;
  return { mode, by, why: means.kind === 'none' ? means.why : undefined, noRunAs: cannotRunAs(), isRoot };
}

const WRITABLE = 'they write to their working folder, their data folders, a private /tmp and what --writable names';
const HIDDEN = "the home, the approver's key, the session bus, other machines' folders and other processes are hidden";
const AS_ROOT =
  'run Reveille as an ordinary user (reveille service install as that user), or give each machine its own user (machine put --run-as)';

/** What isolates machines and MCP servers here. Pure. */
export function isolationCheck({ mode, by, why, isRoot }: IsolationFacts): Check {
  const name = 'isolation';
  if (by === undefined) {
    const detail = isRoot
      ? `machines and MCP servers run as root, without a sandbox: they can read and change everything on this computer: ${why}`
      : `machines and MCP servers run as this user, without a sandbox, and can read its files, secrets included: ${why}`;
    const remedy =
      mode === 'off'
        ? 'remove REVEILLE_SEPARATION=off'
        : 'on Linux, install bubblewrap and allow user namespaces; see: reveille docs isolation';
    return { name, status: STATUS[mode], detail, remedy: isRoot ? `${remedy}; ${AS_ROOT}` : remedy };
  }
  if (by === 'sandbox-exec')
    return {
      name,
      status: 'note',
      detail: `machines and MCP servers run in a sandbox of sandbox-exec, which is ${EXPERIMENTAL}: ${HIDDEN}; ${WRITABLE}`,
      remedy: 'do not rely on it; run programs that you do not trust on another computer or in a container',
    };
  if (isRoot)
    return {
      name,
      status: 'warning',
      detail: `the daemons run as root: machines and MCP servers run in a sandbox of bubblewrap with root's rights. The system is read-only for them; ${WRITABLE}. A fault of the kernel or of bubblewrap would give them the computer`,
      remedy: AS_ROOT,
    };
  return {
    name,
    status: 'ok',
    detail: `machines and MCP servers run in a sandbox of bubblewrap as this user: the system is read-only, ${HIDDEN}; ${WRITABLE}. They can read other files of this user and use the network`,
  };
}

/** Whether machines and MCP servers are isolated here. */
export async function checkIsolation(context: CliContext): Promise<Check | undefined> {
  const facts = await isolationFacts(context);
  return facts && isolationCheck(facts);
}
