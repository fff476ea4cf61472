/** Whether a model endpoint is reachable and accepts the key: one free request, for the list of its models. */
import { z } from 'zod';
import { systemClock } from '../../kit/clock/clock.ts';
import { codeOf, exchange } from '../../kit/http/exchange.ts';
import { plainTransport } from '../../kit/http/plain-transport.ts';
import type { EndpointConfig } from '../../kit/model/settings.ts';
import type { Check } from './check.ts';

const ASK_MS = 4000;
const MOST_BYTES = 4 * 1024 * 1024;
/** Both languages list their models alike. */
const listSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

function requestFor({ provider, baseUrl, apiKey }: EndpointConfig): { url: string; headers: Record<string, string> } {
  const base = baseUrl.replace(/\/+$/, '');
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
export async function checkEndpoint(name: string, prefix: string, model: EndpointConfig): Promise<Check> {
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
