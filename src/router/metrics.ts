/**
 * The metrics of the router's listeners in the text format of Prometheus: accepted and rejected requests, with reasons.
 */
import { Counter, Gauge, Registry } from 'prom-client';
import type { MetricsPage } from '../kit/http/metrics-route.ts';
import type { ListenerFigures } from '../kit/http/server.ts';
import type { PublicFigures } from './public/listener.ts';

export type RouterFigures = { internal: ListenerFigures; public: PublicFigures & { listener: ListenerFigures } };

/** The outcomes of a request, by the counter of each. */
const RESULTS = {
  carried: 'proxied',
  not_carried: 'notProxied',
  unauthorized: 'unauthorized',
  locked: 'locked',
  over_share: 'overShare',
  malformed: 'malformed',
} as const satisfies Record<string, Exclude<keyof PublicFigures, 'services'>>;

/** @param figures read at each scrape; `undefined` before the router listens */
export function routerMetrics(figures: () => RouterFigures | undefined): MetricsPage {
  const registry = new Registry();
  const registers = [registry];
  const listeners = () => {
    const now = figures();
    return now === undefined ? [] : [['internal', now.internal] as const, ['public', now.public.listener] as const];
  };
  // The listeners count; a counter of this library can only be incremented.
  new Counter({
    name: 'router_public_requests_total',
    help: 'Requests for the machines of users, by outcome',
    labelNames: ['result'],
    registers,
    collect() {
      this.reset();
      const now = figures()?.public;
      for (const [result, member] of Object.entries(RESULTS)) this.inc({ result }, now?.[member] ?? 0);
    },
  });
  new Counter({
    name: 'router_service_requests_total',
    help: 'Requests of programs with access tokens, by service and outcome',
    labelNames: ['service', 'result'],
    registers,
    collect() {
      this.reset();
      for (const [service, counts] of Object.entries(figures()?.public.services ?? {}))
        for (const [result, count] of Object.entries(counts)) this.inc({ service, result }, count);
    },
  });
  new Gauge({
    name: 'router_public_streams',
    help: 'Open streams of events of users',
    registers,
    collect() {
      this.set(figures()?.public.streams ?? 0);
    },
  });
  new Gauge({
    name: 'router_http_connections',
    help: 'Open connections',
    labelNames: ['listener'],
    registers,
    collect() {
      for (const [listener, counts] of listeners()) this.set({ listener }, counts.open);
    },
  });
  new Counter({
    name: 'router_http_connections_closed_total',
    help: 'Connections that the listener closed, by reason',
    labelNames: ['listener', 'reason'],
    registers,
    collect() {
      this.reset();
      for (const [listener, counts] of listeners())
        for (const [reason, count] of Object.entries(counts.closed)) this.inc({ listener, reason }, count);
    },
  });
  new Counter({
    name: 'router_wrong_tokens_total',
    help: 'Requests with an invalid bearer token',
    labelNames: ['listener'],
    registers,
    collect() {
      this.reset();
      for (const [listener, counts] of listeners()) this.inc({ listener }, counts.wrongTokens);
    },
  });
  return async () => ({ contentType: registry.contentType, text: await registry.metrics() });
}
