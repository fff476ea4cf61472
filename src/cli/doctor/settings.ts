/** What the doctor reads from settings alone: their values, Neo's model, the tools of the MCP server. */
import { join } from 'node:path';
import { parseChronosConfig } from '../../chronos/config.ts';
import { runSelftest } from '../../chronos-mcp/selftest.ts';
import { TOOLS_FILE } from '../../chronos-mcp/tools.ts';
import { parseExecutorConfig } from '../../executor/config.ts';
import { readPolicy } from '../../executor/policy/read-policy.ts';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { parseNeoConfig } from '../../neo/config.ts';
import { parseRouterConfig } from '../../router/config.ts';
import type { CliContext } from '../context.ts';
import { PACKAGE_ROOT } from '../package-root.ts';
import { brokenBy, type Check, orUndefined } from './check.ts';

/** What the executor's settings are without the secrets that `reveille up` makes. */
const withoutSecrets = (settings: CliContext['settings']) => ({
  ...settings,
  EXECUTOR_DEV: '1',
  ...(settings.EXECUTOR_TOKEN === undefined ? { EXECUTOR_HOST: undefined } : {}),
});

/** In place of the secrets that `reveille up` makes. */
const STAND_INS = Object.fromEntries(
  ['TOKEN', 'AGENT_AUTH_SECRET', 'ADMIN_TOKEN', 'WAKE_TOKEN'].map((name) => [
    `CHRONOS_${name}`,
    `stand-in for ${name}`,
  ]),
);

/** Whether every daemon would take its settings. Secrets may be missing: `reveille up` makes them. */
export function checkSettings({ settings }: CliContext): Check[] {
  const parsers = [
    () => parseChronosConfig({ ...STAND_INS, ...settings }),
    () => parseRouterConfig({ ...settings, ROUTER_DEV: '1' }),
    () => parseExecutorConfig(withoutSecrets(settings)),
  ];
  const wrong = parsers.flatMap((parse) => {
    try {
      parse();
      return [];
    } catch (error) {
      return [{ ...brokenBy('settings', error), remedy: 'correct it in the environment or in config.yaml' }];
    }
  });
  return wrong.length > 0 ? wrong : [{ name: 'settings', status: 'ok', detail: 'every value is allowed' }];
}

export function checkModel({ settings }: CliContext): Check {
  const name = 'model';
  try {
    const { model, warnings } = parseNeoConfig({ ...settings, NEO_DEV: '1', NEO_HOST: undefined });
    if (model.kind === 'offline') {
      const remedy = 'set NEO_MODEL, NEO_MODEL_BASE_URL and NEO_MODEL_API_KEY to give it one';
      return { name, status: 'note', detail: 'none; Neo answers offline, from what reaches it', remedy };
    }
    const exposed = warnings.find((warning) => warning.startsWith('NEO_MODEL'));
    if (exposed !== undefined) return { name, status: 'warning', detail: exposed, remedy: 'use an https:// address' };
    return { name, status: 'ok', detail: `${model.model} at ${model.baseUrl}` };
  } catch (error) {
    return brokenBy(name, error);
  }
}

/** The rules and the manifest of the executor: it does not start with a policy that is wrong, and has no tools without its manifest. */
export async function checkExecutorFiles({ settings }: CliContext): Promise<Check> {
  const name = 'executor files';
  const config = orUndefined(() => parseExecutorConfig(withoutSecrets(settings)));
  // Settings that are wrong are told by their own check.
  if (!config) return { name, status: 'note', detail: 'its settings have to be right first' };
  try {
    const { loadManifest } = await import('../../mcp-host/manifest.ts');
    const path = config.manifest === 'bundled' ? bundledManifest('executor') : config.manifest.path;
    const { servers } = loadManifest(path, settings);
    const { file, warnings } = readPolicy(config.policy);
    const rules = file.rules?.length ?? 0;
    const policy =
      config.policy === undefined ? 'no policy: everything is asked' : `a policy of ${count(rules, 'rule')}`;
    const [warning] = warnings;
    if (warning !== undefined) return { name, status: 'warning', detail: warning };
    return { name, status: 'ok', detail: `${count(servers.length, 'server')}; ${policy}` };
  } catch (error) {
    return brokenBy(name, error);
  }
}

const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`;

export function checkTools(): Check {
  const name = 'MCP tools';
  const places = {
    toolsFile: TOOLS_FILE,
    agentsDir: join(PACKAGE_ROOT, 'agents'),
    skillsDir: join(PACKAGE_ROOT, 'skills'),
  };
  const { ok, differences, checked } = runSelftest(places);
  if (ok) return { name, status: 'ok', detail: `agree in ${checked.length} files` };
  return {
    name,
    status: 'broken',
    detail: differences.join('; '),
    remedy: 'reveille mcp --selftest shows them one by one',
  };
}
