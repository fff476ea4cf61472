/** What the router tells about its listeners in Prometheus' text format: who came in, who did not, and why. */
import { Counter, Gauge, Registry } from 'prom-client';
import type { MetricsPage } from '../kit/http/metrics-route.ts';
import type { DoorFigures } from '../kit/http/server.ts';
import type { PublicFigures } from './public/listener.ts';

export type RouterFigures = { internal: DoorFigures; public: PublicFigures & { door: DoorFigures } };

/** What came of a request, by the figure that counts it. */
const RESULTS = {
  carried: 'carried',
  not_carried: 'notCarried',
  unauthorized: 'unauthorized',
  locked: 'locked',
  over_share: 'overShare',
  malformed: 'malformed',
} as const satisfies Record<string, keyof PublicFigures>;

/** @param figures asked at each scrape; `undefined` before the router listens */
export function routerMetrics(figures: () => RouterFigures | undefined): MetricsPage {
  const registry = new Registry();
  const registers = [registry];
  const doors = () => {
    const now = figures();
    return now === undefined ? [] : [['internal', now.internal] as const, ['public', now.public.door] as const];
  };
  // The listeners count; a counter of this library can only be added to.
  new Counter({
    name: 'router_public_requests_total',
    help: "Requests for persons' machines, by what came of them",
    labelNames: ['result'],
    registers,
    collect() {
      this.reset();
      const now = figures()?.public;
      for (const [result, member] of Object.entries(RESULTS)) this.inc({ result }, now?.[member] ?? 0);
    },
  });
  new Gauge({
    name: 'router_public_streams',
    help: 'Streams of events that persons have open',
    registers,
    collect() {
      this.set(figures()?.public.streams ?? 0);
    },
  });
  new Gauge({
    name: 'router_http_connections',
    help: 'Connections that are open',
    labelNames: ['listener'],
    registers,
    collect() {
      for (const [listener, door] of doors()) this.set({ listener }, door.open);
    },
  });
  new Counter({
    name: 'router_http_connections_closed_total',
    help: 'Connections that did not end by themselves, by why they were closed',
    labelNames: ['listener', 'reason'],
    registers,
    collect() {
      this.reset();
      for (const [listener, door] of doors())
        for (const [reason, count] of Object.entries(door.closed)) this.inc({ listener, reason }, count);
    },
  });
  new Counter({
    name: 'router_wrong_tokens_total',
    help: 'Requests with a bearer token that is not a right one',
    labelNames: ['listener'],
    registers,
    collect() {
      this.reset();
      for (const [listener, door] of doors()) this.inc({ listener }, door.wrongTokens);
    },
  });
  return async () => ({ contentType: registry.contentType, text: await registry.metrics() });
}
