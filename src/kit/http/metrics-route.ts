/** `GET /metrics`: for a scraper on this machine, or one that carries the scrape token. */
import type { Route } from '../../wire/route.ts';
import { bearerMatches, refuseBearer } from './bearer.ts';
import { addressOf, isLoopback } from './connections.ts';
import type { HttpApp } from './environment.ts';
import { serve } from './serve.ts';

/** A page of metrics and how it is encoded. */
export type MetricsPage = () => Promise<{ contentType: string; text: string }>;

export type MetricsRouteOptions = {
  page: MetricsPage;
  /** Lets callers from elsewhere in; without one only this machine may look. */
  scrapeToken: string | undefined;
  /** The variable that the token stands in. */
  tokenName: string;
};

export function metricsRoute(app: HttpApp, route: Route, { page, scrapeToken, tokenName }: MetricsRouteOptions): void {
  serve(app, route, async (c) => {
    const near = isLoopback(addressOf(c.env.incoming.socket));
    const known = scrapeToken !== undefined && bearerMatches(c.req.header('authorization'), scrapeToken);
    if (!near && !known)
      throw await refuseBearer(
        c,
        `/metrics is for this machine, or for whoever sends "Authorization: Bearer <${tokenName}>"`,
      );
    const { contentType, text } = await page();
    return c.body(text, 200, { 'content-type': contentType });
  });
}
