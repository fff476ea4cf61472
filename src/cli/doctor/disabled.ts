/** The disabled parts of an installation: the missing program or setting, and the remedy. */
import { parseExecutorConfig } from '../../executor/config.ts';
import { parseModelConfig } from '../../kit/model/settings.ts';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { loadManifest } from '../../mcp-host/manifest.ts';
import { foldersOf, manifestPathOf } from '../../neo/tools/file-check.ts';
import { parseToolConfig } from '../../neo/tools/settings.ts';
import type { Settings } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { settingsOfAgent } from '../up/tool-options.ts';
import { type Check, orUndefined } from './check.ts';
import { isolationFacts } from './isolation.ts';

/** The executor's settings without generated secrets. */
export const withoutSecrets = (settings: Settings): Settings => ({
  ...settings,
  EXECUTOR_DEV: '1',
  ...(settings.EXECUTOR_TOKEN === undefined ? { EXECUTOR_HOST: undefined } : {}),
});

const lacksOf = (path: string, variables: Settings): string[] =>
  loadManifest(path, variables).servers.flatMap(({ alias, unmetNeed: lack }) =>
    lack === undefined ? [] : [`${alias}: ${lack}`],
  );

function lacksOfNeo(context: CliContext): string[] {
  const settings = settingsOfAgent(context);
  const dataDir = settings.NEO_DATA_DIR!;
  const config = parseToolConfig(settings, dataDir);
  if (config.manifest === undefined) return [];
  return lacksOf(manifestPathOf(config.manifest), { ...settings, ...foldersOf(config, dataDir) });
}

function lacksOfExecutor({ settings }: CliContext): string[] {
  const { manifest, workspace } = parseExecutorConfig(withoutSecrets(settings));
  const path = manifest === 'bundled' ? bundledManifest('executor') : manifest.path;
  return lacksOf(path, { ...settings, EXECUTOR_WORKSPACE: workspace });
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
