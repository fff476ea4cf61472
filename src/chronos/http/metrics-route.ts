/** `GET /metrics`: for a scraper on this machine, or one that carries the scrape token. */
import { bearerMatches, refuseBearer } from '../../kit/http/bearer.ts';
import type { HttpApp } from '../../kit/http/environment.ts';
import { serve } from '../../kit/http/serve.ts';
import { CHRONOS_ROUTES } from './routes.ts';

/** A page of metrics and how it is encoded. */
export type MetricsPage = () => Promise<{ contentType: string; text: string }>;

const LOOPBACK = /^(?:::ffff:)?127\.|^::1$/;

/** @param scrapeToken lets callers from elsewhere in; without one only this machine may look */
export function metricsRoute(app: HttpApp, page: MetricsPage, scrapeToken: string | undefined): void {
  serve(app, CHRONOS_ROUTES.metrics, async (c) => {
    const near = LOOPBACK.test(c.env.incoming.socket.remoteAddress ?? '');
    const known = scrapeToken !== undefined && bearerMatches(c.req.header('authorization'), scrapeToken);
    if (!near && !known)
      throw await refuseBearer(
        c,
        '/metrics is for this machine, or for whoever sends "Authorization: Bearer <CHRONOS_METRICS_TOKEN>"',
      );
    const { contentType, text } = await page();
    return c.body(text, 200, { 'content-type': contentType });
  });
}
