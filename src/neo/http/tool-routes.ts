/** `GET /tools`: what the model can call. This storey of Neo has no hands yet, and says so. */
import { sendOk } from '../../http-kit/envelope.ts';
import type { HttpApp } from '../../http-kit/environment.ts';
import type { NeoConfig } from '../config.ts';

export function toolRoutes(app: HttpApp, { manifest }: NeoConfig): void {
  const warnings =
    manifest === undefined ? [] : [`NEO_MANIFEST names ${manifest}, but this version of Neo does not load tools yet`];
  app.get('/tools', (c) => sendOk(c, { tools: [], escalate: [], warnings }));
}
