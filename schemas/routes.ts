/** The HTTP routes of every daemon, for the OpenAPI documents and `docs/reference/routes.md`. */

import { NEO_ROUTES } from '../src/agents/neo/http/routes.ts';
import { CHRONOS_ROUTES } from '../src/chronos/http/routes.ts';
import { EXECUTOR_ROUTES } from '../src/executor/http/routes.ts';
import { ROUTER_ROUTES } from '../src/router/http/routes.ts';
import { PUBLIC_ROUTES } from '../src/router/public/routes.ts';
import type { Routes } from '../src/wire/route.ts';

export type Api = {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly routes: Routes;
  /** The default port. */
  readonly port: number;
};

export const APIS: readonly Api[] = [
  {
    name: 'chronosd',
    title: 'chronosd',
    description: 'Keeps alarms durably and fires them on time.',
    routes: CHRONOS_ROUTES,
    port: 9096,
  },
  {
    name: 'router',
    title: 'Router, internal listener',
    description: 'Stores where the agent of each user lives, starts that machine and delivers its wakes.',
    routes: ROUTER_ROUTES,
    port: 8088,
  },
  {
    name: 'router-public',
    title: 'Router, public listener',
    description:
      'Forwards a request of a user to the daemon on their own machine, and starts that machine. Answers are those of the daemon.',
    routes: PUBLIC_ROUTES,
    port: 8087,
  },
  {
    name: 'neo',
    title: 'Neo',
    description:
      'A conversational agent daemon. Other daemons that the router wakes serve the same POST /chat and GET /healthz.',
    routes: NEO_ROUTES,
    port: 8080,
  },
  {
    name: 'executor',
    title: 'Executor',
    description:
      'Compiles tasks to plans, asks an approver before each step that cannot be undone, executes the plan and records it in a signed receipt.',
    routes: EXECUTOR_ROUTES,
    port: 8081,
  },
];
