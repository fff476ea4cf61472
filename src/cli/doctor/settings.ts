/** What the doctor reads from settings alone: their values, Neo's model, the tools of the MCP server. */
import { join } from 'node:path';
import { parseChronosConfig } from '../../chronos/config.ts';
import { runSelftest } from '../../chronos-mcp/selftest.ts';
import { TOOLS_FILE } from '../../chronos-mcp/tools.ts';
import { parseNeoConfig } from '../../neo/config.ts';
import { parseRouterConfig } from '../../router/config.ts';
import type { CliContext } from '../context.ts';
import { PACKAGE_ROOT } from '../package-root.ts';
import { brokenBy, type Check } from './check.ts';

/** Whether every daemon would take its settings. Secrets may be missing: `reveille up` makes them. */
export function checkSettings({ settings }: CliContext): Check[] {
  const parsers = [
    () => parseChronosConfig({ ...settings, CHRONOS_DEV: '1' }),
    () => parseRouterConfig({ ...settings, ROUTER_DEV: '1' }),
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
