/** `GET /metrics`: for a scraper on this machine, or one with the scrape token. */
import type { Route } from '../../wire/route.ts';
import { bearerMatches, refuseBearer } from './bearer.ts';
import { addressOf, isLoopback } from './connections.ts';
import { type HttpApp, serve } from './handlers.ts';

export type MetricsPage = () => Promise<{ contentType: string; text: string }>;

export type MetricsRouteOptions = {
  page: MetricsPage;
  /** Allows callers on other machines; without it, only this machine may read the metrics. */
  scrapeToken: string | undefined;
  /** The name of the token's variable. */
  tokenName: string;
};

export function metricsRoute(app: HttpApp, route: Route, { page, scrapeToken, tokenName }: MetricsRouteOptions): void {
  serve(app, route, async (c) => {
    const near = isLoopback(addressOf(c.env.incoming.socket));
    const known = scrapeToken !== undefined && bearerMatches(c.req.header('authorization'), scrapeToken);
    if (!near && !known)
      throw await refuseBearer(
        c,
        `/metrics needs a request from this machine, or "Authorization: Bearer <${tokenName}>"`,
      );
    const { contentType, text } = await page();
    return c.body(text, 200, { 'content-type': contentType });
  });
}
