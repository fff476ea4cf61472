/** `GET /tools`: what the model can call, what only the executor may, and what is wrong with either. */
import { sendOk } from '../../kit/http/envelope.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import type { SurfaceView } from '../../wire/tool-surface.ts';
import { NEO_ROUTES } from './routes.ts';

/**
 * @param describe waits until the servers have had their time to start
 * @param model the name of the one that answers
 */
export function toolRoutes(app: HttpApp, describe: () => Promise<SurfaceView>, model: string): void {
  serve(app, NEO_ROUTES.tools, async (c) => sendOk(c, { ...(await describe()), model }));
}
