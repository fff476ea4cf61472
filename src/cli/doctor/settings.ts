/**
 * Checks of settings: their values, the models and files that they name, and the tools of the MCP server. A model's
 * endpoint gets one free request, for the list of its models.
 */
import { join } from 'node:path';
import { z } from 'zod';
import { parseNeoConfig } from '../../agents/neo/config.ts';
import { checkFiles } from '../../agents/neo/tools/file-check.ts';
import { manifestNeeds } from '../../agents/neo/tools/settings.ts';
import { parseChronosConfig } from '../../chronos/config.ts';
import { runSelftest } from '../../chronos-mcp/selftest.ts';
import { TOOLS_FILE } from '../../chronos-mcp/tools.ts';
import { parseExecutorConfig } from '../../executor/config.ts';
import { readPolicy } from '../../executor/policy/read-policy.ts';
import { systemClock } from '../../kit/clock/clock.ts';
import { codeOf, exchange } from '../../kit/http/exchange.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';
import { type EndpointConfig, parseModelConfig } from '../../kit/model/endpoint.ts';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { parseMcpHttpConfig } from '../../mcp-http/config.ts';
import { checkOauthServer } from '../../oauth-server/library.ts';
import { parseRouterConfig } from '../../router/config.ts';
import { withoutTrailing } from '../../wire/text.ts';
import { labelOf } from '../access/chronos.ts';
import { orUndefined } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { PACKAGE_ROOT } from '../home/package-root.ts';
import { counted } from '../screens/columns.ts';
import { brokenBy, type Check, STAND_INS } from './check.ts';
import { withoutSecrets } from './disabled.ts';

/** Whether every daemon accepts its settings. Secrets may be missing: `reveille up` generates them. */
export function checkSettings({ settings }: CliContext): Check[] {
  const parsers = [
    () => parseChronosConfig({ ...STAND_INS, ...settings }),
    () => parseRouterConfig({ ...settings, ROUTER_DEV: '1' }),
    () => parseMcpHttpConfig(settings),
    () => checkOauthServer(settings),
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

/** The models of Neo and of the executor: whether the endpoints are reachable. */
export async function checkModels({ settings }: CliContext): Promise<Check[]> {
  const own = ['MODEL', 'MODEL_PROVIDER', 'MODEL_BASE_URL', 'MODEL_API_KEY'];
  const ofExecutor = own.some((part) => settings[`EXECUTOR_${part}`] !== undefined);
  return Promise.all([
    checkModel('model', 'NEO', settings),
    ...(ofExecutor ? [checkModel('executor model', 'EXECUTOR', settings)] : []),
  ]);
}

async function checkModel(name: string, prefix: string, settings: CliContext['settings']): Promise<Check> {
  try {
    const { model, warnings } = parseModelConfig(prefix, settings);
    if (model.kind === 'offline') {
      const remedy = `set ${prefix}_MODEL, ${prefix}_MODEL_BASE_URL and ${prefix}_MODEL_API_KEY`;
      return { name, status: 'note', detail: 'none; Neo answers offline and only repeats its input', remedy };
    }
    const [exposed] = warnings;
    // A key is not sent unencrypted.
    if (exposed !== undefined) return { name, status: 'warning', detail: exposed, remedy: 'use an https:// address' };
    return await checkEndpoint(name, prefix, model);
  } catch (error) {
    return brokenBy(name, error);
  }
}

/** Files that Neo reads at its start: its settings, the skill, and the manifest with its variables. */
export async function checkNeoFiles(context: CliContext): Promise<Check> {
  const name = 'Neo';
  const label = labelOf(context) ?? 'not-made-yet';
  const known = { ...context.settings, MATRIX_USER_ID: label, NEO_DEV: '1', NEO_HOST: undefined };
  const { tools } = parseNeoConfig(known);
  if (tools === undefined) return { name, status: 'note', detail: 'has no tools, by its settings' };
  const url = 'http://127.0.0.1:9096';
  const later = { NEO_CHRONOS_URL: url, REVEILLE_CHRONOS_URL: url, MATRIX_CHRONOS_URL: url };
  await manifestNeeds(tools, { ...later, ...known });
  checkFiles(tools, { ...later, ...known }, context.home.path);
  return { name, status: 'ok', detail: 'its settings are readable; its manifest, lock and skill match' };
}

/** The policy and the manifest of the executor: a wrong policy prevents its start, and tools need the manifest. */
export async function checkExecutorFiles({ settings }: CliContext): Promise<Check> {
  const name = 'executor files';
  const config = orUndefined(() => parseExecutorConfig(withoutSecrets(settings)));
  // Wrong settings are reported by their own check.
  if (!config) return { name, status: 'note', detail: 'correct its settings first' };
  const { readLockedManifest, rejectDrift } = await import('../../mcp-host/drift.ts');
  const path = config.manifest === 'bundled' ? bundledManifest('executor') : config.manifest.path;
  const files = readLockedManifest(path, { ...settings, EXECUTOR_WORKSPACE: config.workspace });
  rejectDrift(files);
  const { servers } = files.manifest;
  const { file, warnings } = readPolicy(config.policy);
  const rules = file.rules?.length ?? 0;
  const policy =
    config.policy === undefined
      ? 'no policy: every call needs approval, except declared reads'
      : `a policy of ${counted(rules, 'rule')}`;
  const [warning] = warnings;
  if (warning !== undefined) return { name, status: 'warning', detail: warning };
  return { name, status: 'ok', detail: `${counted(servers.length, 'server')}; ${policy}` };
}

export function checkTools(): Check {
  const name = 'MCP tools';
  const places = {
    toolsFile: TOOLS_FILE,
    agentsDir: join(PACKAGE_ROOT, 'agents'),
    skillsDir: join(PACKAGE_ROOT, 'skills'),
  };
  const { ok, differences, checked } = runSelftest(places);
  if (ok) return { name, status: 'ok', detail: `match in ${checked.length} files` };
  return {
    name,
    status: 'broken',
    detail: differences.join('; '),
    remedy: 'reveille mcp --selftest lists them',
  };
}

const ASK_MS = 4000;
const MOST_BYTES = 4 * 1024 * 1024;
/** Both languages list their models alike. */
const listSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

function requestFor({ provider, baseUrl, apiKey }: EndpointConfig): { url: string; headers: Record<string, string> } {
  const base = withoutTrailing(baseUrl, '/');
  if (provider !== 'anthropic')
    return { url: `${base}/models`, headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` } };
  const headers = { 'anthropic-version': '2023-06-01', ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }) };
  return { url: `${base.endsWith('/v1') ? base : `${base}/v1`}/models?limit=1000`, headers };
}

/** The models of the endpoint; `undefined` when it does not list them. */
function listed(text: string): string[] | undefined {
  try {
    const list = listSchema.safeParse(JSON.parse(text));
    return list.success ? list.data.data.map(({ id }) => id) : undefined;
  } catch {
    return undefined;
  }
}

/** @param prefix of its variables: `NEO`, `EXECUTOR` */
async function checkEndpoint(name: string, prefix: string, model: EndpointConfig): Promise<Check> {
  const where = `${model.model} at ${model.baseUrl}`;
  const { url, headers } = requestFor(model);
  const limit = { clock: systemClock, ms: ASK_MS };
  const answer = await exchange(plainTransport, {
    method: 'GET',
    url: new URL(url),
    headers,
    maxBytes: MOST_BYTES,
    limit,
  });
  if (answer.result !== 'answered') {
    const remedy = `start its server, or correct ${prefix}_MODEL_BASE_URL`;
    const detail = `${where}: the endpoint cannot be reached (${codeOf(answer.error)})`;
    return { name, status: 'broken', detail, remedy };
  }
  const { status } = answer;
  if (status === 401 || status === 403) {
    const remedy = `correct ${prefix}_MODEL_API_KEY`;
    return { name, status: 'broken', detail: `${where}: the endpoint does not accept the key (${status})`, remedy };
  }
  if (status >= 500)
    return { name, status: 'warning', detail: `${where}: the endpoint answers ${status}`, remedy: 'try again later' };
  const models = status === 200 ? listed(answer.body.toString('utf8')) : undefined;
  if (models === undefined) return { name, status: 'ok', detail: `${where}: it answers and does not list its models` };
  if (models.includes(model.model)) return { name, status: 'ok', detail: `${where}: it answers and has the model` };
  const some = models.slice(0, 5).join(', ') || 'none';
  const remedy = `set ${prefix}_MODEL to one of its models: ${some}${models.length > 5 ? ', …' : ''}`;
  return { name, status: 'warning', detail: `${where}: the endpoint does not list this model`, remedy };
}
