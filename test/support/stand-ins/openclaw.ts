/**
 * Stand-in for an OpenClaw gateway's hooks: one run for each idempotency key and request, as long as the request is the
 * same.
 */
import { answer, type HttpAgent, startHttpAgent } from './http-agent.ts';

export type StandInOpenclaw = HttpAgent & {
  readonly token: string;
  /** Started runs. */
  runs: Record<string, unknown>[];
};

export async function startStandInOpenclaw(token = 'hooks-token-of-openclaw'): Promise<StandInOpenclaw> {
  const known = new Map<string, string>();
  const agent = (await startHttpAgent(({ method, path, headers, text }, response) => {
    if (headers.authorization !== `Bearer ${token}`) return answer(response, 401, 'Unauthorized');
    if (method !== 'POST' || path !== '/hooks/agent') return answer(response, 404, 'Not Found');
    const body = JSON.parse(text);
    if (typeof body.message !== 'string') return answer(response, 400, { ok: false, error: 'message required' });
    const runId = known.get(text) ?? `run-${known.size + 1}`;
    if (!known.has(text)) server.runs.push(body);
    known.set(text, runId);
    return answer(response, 200, { ok: true, runId });
  })) as StandInOpenclaw;
  const server = Object.assign(agent, { token, runs: [] as Record<string, unknown>[] }) as StandInOpenclaw;
  return server;
}
