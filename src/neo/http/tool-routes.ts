/** `GET /tools`: the model's functions, the tools reserved for the executor, and warnings about both. */
import { type HttpApp, sendOk, serve } from '../../kit/http/handlers.ts';
import type { SurfaceView } from '../../wire/tool-surface.ts';
import { NEO_ROUTES } from './routes.ts';

/**
 * @param describe waits until the servers had time to start
 * @param model the name of the answering model
 */
export function toolRoutes(app: HttpApp, describe: () => Promise<SurfaceView>, model: string): void {
  serve(app, NEO_ROUTES.tools, async (c) => sendOk(c, { ...(await describe()), model }));
}
