/** A2A, server side, for the public listener of a router. Connects the parts. */
import { join } from 'node:path';
import type { Clock } from '../kit/clock/clock.ts';
import { WebAccess } from '../kit/http/web-access.ts';
import type { Logger } from '../kit/log/log.ts';
import { publicCard } from './agent-card.ts';
import { type Authenticate, callerKey, PERSONAL_ISSUER } from './caller.ts';
import { A2aHttp, isA2a, OUTCOMES, type Outcome, type RequestInfo } from './http.ts';
import { CallerLimits } from './limits.ts';
import { createPush, notificationOf } from './push.ts';
import { RequestHandler } from './request-handler.ts';
import { openTaskStore } from './store.ts';
import { Tasks, type TasksOptions } from './tasks.ts';

export type A2aServerOptions = Pick<TasksOptions, 'agentOf' | 'onMachine' | 'isAwake'> & {
  /** The folder of its database. */
  dataDir: string;
  authenticate: Authenticate;
  /** The trusted authorization servers; none by default. */
  issuers?: () => readonly string[];
  /** The address by which others reach the listener, without a trailing slash. */
  publicUrl: () => string;
  /** Admits one request of a user. @returns releases its slot @throws ReveilleError `rate_limited` */
  enter: (userId: string) => () => void;
  /** Private hosts to which notifications may be sent, `host` or `host:port`, separated by commas. */
  allow: string | undefined;
  version: string;
  /** Unfinished tasks continue when it resolves; by default immediately. */
  startAfter?: Promise<void> | undefined;
  clock: Clock;
  log: Logger;
};

/** Maximum size of a request body. */
const BODY_BYTES = 64 * 1024;

export type A2aServer = {
  readonly name: string;
  readonly bodyBytes: number;
  owns(target: string): boolean;
  answer(request: Request, info: RequestInfo): Promise<Response>;
  figures(): Readonly<Record<string, number>>;
  /** Ends what a client of a user whose access was revoked has left: push configurations and unfinished tasks. */
  endClient(userId: string, clientId: string): Promise<{ push_targets: number; tasks: number }>;
  close(): Promise<void>;
};

/** Starts the server and continues unfinished tasks. @throws ReveilleError if the database cannot be opened */
export function openA2aServer(options: A2aServerOptions): A2aServer {
  const { dataDir, authenticate, issuers = () => [], publicUrl, allow, version, clock, log } = options;
  const web = new WebAccess({ clock, allow, setting: 'ROUTER_A2A_ALLOW' });
  const store = openTaskStore({ path: join(dataDir, 'a2a.db'), clock, notificationOf });
  const tasks = new Tasks({ ...options, store });
  const push = createPush({ store, web, clock, log });
  const card = () => publicCard(publicUrl(), version);
  const handler = new RequestHandler({ store, tasks, web, card, clock, log });
  const counts = Object.fromEntries(OUTCOMES.map((outcome) => [outcome, 0])) as Record<Outcome, number>;
  const limits = new CallerLimits(clock, options.enter);
  const count = (outcome: Outcome) => void counts[outcome]++;
  const http = new A2aHttp({ handler, authenticate, issuers, publicUrl, limits, clock, log, count });
  void (options.startAfter ?? Promise.resolve()).then(() => tasks.start());
  push.start();
  let closed: Promise<void> | undefined;
  const close = async () => {
    await tasks.close();
    // Current deliveries end first: they use the connections.
    await push.close();
    await web.close();
    await store.close();
  };
  return {
    name: 'a2a',
    bodyBytes: BODY_BYTES,
    owns: isA2a,
    answer: (request, info) => http.answer(request, info),
    figures: () => ({ ...counts }),
    async endClient(userId, clientId) {
      const ended = { push_targets: 0, tasks: 0 };
      for (const issuer of new Set([PERSONAL_ISSUER, ...issuers()])) {
        // Only our own issuers report a revocation, and there a subject is a user.
        const { push_targets, tasks: those } = await tasks.endCaller(
          callerKey({ userId, issuer, subject: userId, clientId, scopes: new Set() }),
        );
        ended.push_targets += push_targets;
        ended.tasks += those;
      }
      return ended;
    },
    close() {
      closed ??= close();
      return closed;
    },
  };
}
