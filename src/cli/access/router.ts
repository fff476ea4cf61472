/** The router of the commands on this computer. */
import { z } from 'zod';
import { createRouterClient, type RouterClient } from '../../router/client.ts';
import { parseSettings, portSetting } from '../../wire/settings.ts';
import type { CliContext } from '../context.ts';
import { readRun } from '../home/home.ts';
import { localAddress } from './chronos.ts';
import { attend } from './unreachable.ts';

const schema = z.object({
  ROUTER_HOST: z.string().optional(),
  ROUTER_PORT: portSetting.default(8088),
  ROUTER_TLS_CERT: z.string().optional(),
});

/** The address of this computer's router, running or not. */
export function routerUrl({ home, settings }: Pick<CliContext, 'home' | 'settings'>): string {
  const { ROUTER_HOST, ROUTER_PORT, ROUTER_TLS_CERT } = parseSettings(schema, settings);
  return readRun(home)?.router_url ?? localAddress(ROUTER_HOST, ROUTER_PORT, ROUTER_TLS_CERT);
}

/** A client for this machine's router. */
export function routerClient(context: Pick<CliContext, 'home' | 'settings' | 'clock'>): RouterClient {
  const { home, clock, settings } = context;
  const url = routerUrl(context);
  return createRouterClient({ url, token: settings.ROUTER_ADMIN_TOKEN, attend: attend({ url, home, clock }) });
}
