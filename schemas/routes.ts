/** The HTTP routes of every daemon, for the OpenAPI documents and `docs/contracts.md`. */
import { CHRONOS_ROUTES } from '../src/chronos/http/routes.ts';
import { EXECUTOR_ROUTES } from '../src/executor/http/routes.ts';
import { NEO_ROUTES } from '../src/neo/http/routes.ts';
import { ROUTER_ROUTES } from '../src/router/http/routes.ts';
import { PUBLIC_ROUTES } from '../src/router/public/routes.ts';
import type { Routes } from '../src/wire/route.ts';

export type Api = {
  readonly name: string;
  readonly description: string;
  readonly routes: Routes;
  /** Where it listens by default. */
  readonly port: number;
};

export const APIS: readonly Api[] = [
  {
    name: 'chronosd',
    description: 'Keeps alarms durably and fires them on time.',
    routes: CHRONOS_ROUTES,
    port: 9096,
  },
  {
    name: 'router',
    description: "Knows where each user's agent lives, starts that machine and delivers its wakes.",
    routes: ROUTER_ROUTES,
    port: 8088,
  },
  {
    name: 'router-public',
    description:
      "The router's public listener: a person's credential reaches their own machine, which a request wakes. Answers are the daemon's own.",
    routes: PUBLIC_ROUTES,
    port: 8087,
  },
  {
    name: 'neo',
    description:
      'A conversational agent daemon. Other daemons that the router wakes speak the same POST /chat and GET /healthz.',
    routes: NEO_ROUTES,
    port: 8080,
  },
  {
    name: 'executor',
    description:
      'Carries tasks out under the eyes of a person: compiles them to a plan, asks before every step that cannot be undone, and proves what happened.',
    routes: EXECUTOR_ROUTES,
    port: 8081,
  },
];
