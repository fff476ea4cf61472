/** Webhooks on their way: a sender, the router's public listener, chronosd, and its store. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { eventStateOf, waitingEvents } from '../../../src/chronos/alarm/events.ts';
import type { AdmissionSettings } from '../../../src/chronos/http/admission.ts';
import { webhookSigner } from '../../../src/kit/identity/webhook-signature.ts';
import { startBench } from '../../../src/router/testing/bench.ts';
import { createHttpBench, type Data, type ServiceOverrides } from './http-bench.ts';

type Hook = { address: string; verify: string; secret?: string };
export type Created = Data & { hook: Hook };

/** chronosd and a router whose public listener passes webhooks on. */
export async function createHookBench(t: TestContext, floods?: AdmissionSettings, overrides: ServiceOverrides = {}) {
  const bench = await createHttpBench(t, { ...overrides, ...(floods && { floods }) });
  const router = await startBench(t, {
    settings: { ROUTER_CHRONOS_URL: bench.url },
    ...(overrides.log && { log: overrides.log }),
  });
  const ada = await bench.agent('ada');
  async function set(fields: object, agent = ada): Promise<Created> {
    const body = { wake_message: 'look at it', ...fields };
    const { status, data, text } = await agent.call('POST', '/v1/alarms', { body });
    assert.equal(status, 200, text);
    return data as Created;
  }
  const send = (address: string, body: string | undefined, headers: Record<string, string> = {}, method = 'POST') =>
    fetch(`http://127.0.0.1:${router.public.port}${address}`, { method, headers, ...(body !== undefined && { body }) });
  const now = () => bench.clock.now();
  const signed = ({ hook }: Created, body: string, id = 'msg_1', at = now()) => ({
    'content-type': 'application/json',
    ...webhookSigner(hook.secret!)({ id, timestampSeconds: at / 1000, body }),
  });
  const waiting = async ({ id }: Created, owner = 'ada') =>
    waitingEvents(eventStateOf((await bench.store.get(owner, id))!.alarm));
  return { ...bench, ada, set, send, signed, waiting, router };
}

export const answerOf = async (response: Response) => {
  const { data, error } = (await response.json()) as { data?: object; error?: { message: string } };
  return [response.status, data ?? error!.message] as const;
};
