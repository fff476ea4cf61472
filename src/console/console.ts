/**
 * The console: the web pages of one user for alarms, chat, approvals and the machine. It answers requests of a listener
 * that another program owns. Start reading here.
 */
import { Hono } from 'hono';
import type { Clock } from '../kit/clock/clock.ts';
import { isZone } from '../kit/clock/zone.ts';
import { markProved } from '../kit/http/body.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import type { ConsoleBackend } from './backend.ts';
import { ChangeWatcher } from './change-watcher.ts';
import { openLive } from './live.ts';
import { type Frame, loadAssets, mainOf, type Page, wholePage } from './page.ts';
import type { JsonAnswer, RequestContext, Screen } from './request-context.ts';
import { createRequestGuard, type GuardFigures, HEADERS } from './request-guard.ts';
import { followChat } from './screens/chat-events.ts';
import { type LinkContext, type LinkPage, type Links, linkChallenge, showLink, useLink } from './screens/link.ts';
import { MOVED, SCREEN_ROUTES } from './screens/routes.ts';
import { errorMain, errorPage, openedPage, signInPage } from './screens/sign-in.ts';
import {
  type CookieKind,
  type Session,
  type SessionFigures,
  SessionMessages,
  type SessionStore,
  Sessions,
  type SignedInUser,
} from './sessions.ts';
import { SharedReads } from './shared-reads.ts';
import { waitingOf } from './waiting-questions.ts';

export type ConsoleOptions = {
  clock: Clock;
  log: Logger;
  cookie: CookieKind;
  /** Host names that are accepted in addition to those of the loopback address. */
  hosts: readonly string[];
  /** Seals one-time codes; without it, codes are not accepted. */
  codeSecret?: string | undefined;
  /** Authenticates the users of a shared console. */
  users?: UserAccess | undefined;
  /** Links of notifications, each for one answer; without them, such links return 404. */
  links?: Links | undefined;
  /** The backend of a user. It is called with every request and should return the same object. */
  backendOf: (entry: SignedInUser) => ConsoleBackend;
};

export type UserAccess = {
  /** The owner of a token; `undefined` for an invalid token. @throws ReveilleError `rate_limited` */
  signIn(token: string, remoteAddress: string): SignedInUser | undefined;
  /** Consumes a one-time code; `undefined` for an invalid code. */
  redeem(code: string): Promise<SignedInUser | undefined>;
  /** Whether a credential is still valid. */
  isValid(credential: string): boolean;
  readonly sessions: SessionStore;
};

/** The connection of a request. */
export type ConsoleInfo = {
  readonly remoteAddress: string;
  /** Aborts when the listener closes. */
  readonly closing: AbortSignal;
};

export type ConsoleFigures = GuardFigures & SessionFigures & { streams: number };

export type ConsoleApp = {
  fetch(request: Request, info: ConsoleInfo): Promise<Response>;
  /** Uses a one-time code for another sign-in of the same listener; `undefined` for an invalid one. */
  redeem(code: string): Promise<SignedInUser | undefined>;
  figures(): ConsoleFigures;
  close(): void;
};

type Env = { Bindings: { info: ConsoleInfo } };
type Open = { readonly session: Session; close(): void };

/** Long enough that pages with the same hint share their reads. */
const SHARED_MS = 1000;
const BODY_BYTES = 64 * 1024;
/** Interval at which the sessions of open streams are checked. */
const SESSION_CHECK_MS = 1000;
const STREAMS_PER_SESSION = 12;
/** A backend whose stream of events opens later does not delay the page. */
const HELLO_MS = 1000;
const BASE = '/:base{~[A-Za-z0-9_-]{22}}';

export function createConsole(options: ConsoleOptions): ConsoleApp {
  const { clock, log, codeSecret, users: people, links, backendOf } = options;
  const assets = loadAssets();
  const guard = createRequestGuard(options.hosts);
  const reads = new SharedReads(clock, SHARED_MS);
  const sessions = new Sessions({
    ...{ clock, codeSecret, cookie: options.cookie, makeMessages: () => new SessionMessages() },
    ...{ store: people?.sessions, isCredentialValid: people && ((credential) => people.isValid(credential)) },
  });
  const watcher = new ChangeWatcher({
    clock,
    onHint: () => reads.forget(),
  });
  const streams = new Map<string, Set<Open>>();
  // A stream may be silent for long, but it must not outlive its session.
  const sessionCheck = setInterval(() => {
    for (const open of [...streams.values()].flatMap((opened) => [...opened]))
      if (!sessions.isValid(open.session)) open.close();
  }, SESSION_CHECK_MS).unref();

  const respond = (text: string, status = 200, headers: Record<string, string> = {}) =>
    new Response(text, { status, headers: { ...HEADERS, 'content-type': 'text/html; charset=utf-8', ...headers } });
  const redirect = (to: string, headers: Record<string, string> = {}) =>
    new Response(null, { status: 303, headers: { ...HEADERS, location: to, ...headers } });
  const jsonResponse = (json: object) =>
    respond(JSON.stringify(json), 200, { 'content-type': 'application/json; charset=utf-8' });
  const outside = async (status = 401, complaint?: string) =>
    respond(String(await signInPage({ assets, complaint, byToken: people !== undefined })), status);

  /** The context of a request with a valid session; `undefined` without one. */
  const contextOf = async (request: Request, params: Record<string, string>): Promise<RequestContext | undefined> => {
    const { base = '', ...others } = params;
    const session = sessions.find(`/${base}/`, request.headers.get('cookie'));
    if (!session) return undefined;
    markProved(request);
    const url = new URL(request.url);
    const backend = backendOf(session);
    const form = request.method === 'POST' ? await readForm(request) : new URLSearchParams();
    if (request.method === 'POST' && !sessions.isFrom(session, form.get('csrf') ?? undefined))
      throw new ReveilleError('forbidden', 'this form does not belong to this session: open the page again');
    return {
      ...{ session, backend, clock, form, reads, params: others, query: url.searchParams, signal: request.signal },
      origin: url.origin,
      here: { now: clock.now(), zone: backend.zone },
      path: url.pathname.slice(session.base.length),
    };
  };

  const countOf = (backend: ConsoleBackend): Promise<number | undefined> =>
    waitingOf(backend, reads)
      .then(({ length }) => length)
      .catch(() => undefined);

  /** @param part the part that the script of an open page requests; `null` for a whole page */
  const pageFor = async (context: RequestContext, page: Page, part: string | null): Promise<Response> => {
    const { status = 200 } = page;
    if (part === 'main') return respond(String(await mainOf(page)), status);
    const { session, backend, here } = context;
    const waiting = await countOf(backend);
    const path = `${context.path}${context.query.size > 0 ? `?${context.query}` : ''}`;
    // A one-time message belongs to a whole page, not to an update of an open one.
    const message = part === null ? session.messages.take() : undefined;
    const frame: Frame = { session, backend, here, assets, message, waiting, path };
    return respond(String(await wholePage(page, frame)), status);
  };

  const show = async (context: RequestContext, screen: Screen, request: Request): Promise<Response> => {
    const part = request.headers.get('x-reveille-part');
    // The address of a form's answer belongs to another page; fetching it would replace the answer.
    const withoutUpdates = (page: Page): Page => (request.method === 'POST' ? { ...page, looksAt: [] } : page);
    // Starts the count in parallel with the screen; the page needs both.
    if (request.method === 'GET' && part === null) void countOf(context.backend);
    try {
      const answer = await screen(context);
      if (request.method === 'POST') reads.forget();
      if ('json' in answer) return jsonResponse(answer.json);
      if ('download' in answer) {
        const { name, text } = answer.download;
        return respond(text, 200, {
          'content-type': 'application/json; charset=utf-8',
          'content-disposition': `attachment; filename="${name}"`,
        });
      }
      if ('to' in answer) return redirect(context.session.base + answer.to);
      return await pageFor(context, withoutUpdates(answer), part);
    } catch (thrown) {
      const error = toReveilleError(thrown);
      if (error.code === 'internal') log.error({ err: thrown, path: context.path }, 'a console page failed');
      return pageFor(context, withoutUpdates({ ...errorMain(error, context), status: error.status }), part);
    }
  };

  const live = async (
    context: RequestContext,
    info: ConsoleInfo,
    conversation: string | undefined,
  ): Promise<Response> => {
    const { session, backend } = context;
    const opened = streams.get(session.base) ?? new Set();
    if (opened.size >= STREAMS_PER_SESSION)
      throw new ReveilleError(
        'rate_limited',
        `a session may have at most ${STREAMS_PER_SESSION} live pages: close one`,
      );
    const stream = openLive(clock, AbortSignal.any([info.closing, context.signal]), HEADERS);
    const open = { session, close: stream.close };
    streams.set(session.base, opened.add(open));
    const { opened: covered, stop } = watcher.watch(backend, (hint) => {
      if (sessions.isValid(session)) stream.send({ event: 'hint', data: hint });
      else stream.close();
    });
    stream.closed.addEventListener('abort', () => {
      stop();
      opened.delete(open);
      if (opened.size === 0) streams.delete(session.base);
    });
    // The page reads itself again. Hints cover changes from here on, so older reads must not be reused.
    const hello = () => {
      reads.forget();
      stream.send({ event: 'hello', data: '' });
    };
    const cancel = clock.after(HELLO_MS, hello);
    void covered.then(() => {
      cancel();
      hello();
    });
    if (conversation !== undefined)
      void followChat(context, { conversation, seen: context.query.get('seen') ?? '' }, stream);
    return stream.response;
  };

  const redeem = async (code: string): Promise<SignedInUser | undefined> => {
    const user = sessions.takeCode(code);
    return people ? people.redeem(code) : user === undefined ? undefined : { user };
  };

  const app = new Hono<Env>();
  app.get('/assets/:name', (c) => assets.serve(c.req.param('name')) ?? outside(404));
  // At the root, because the scope of a service worker is its own folder.
  app.get('/worker.js', () => assets.serve('worker.js')!);
  app.get('/manifest.webmanifest', () => assets.serve('manifest.webmanifest')!);
  app.get('/', () => outside(200));
  // `/o/CODE` is the short form that fits on a line of a terminal.
  app.on('GET', ['/open', '/o/:code'], async (c) => {
    const code = c.req.param('code') ?? c.req.query('code') ?? '';
    // A foreign page could sign the browser in to a console of another user, where its user might enter secrets.
    if (people && c.req.header('sec-fetch-site') === 'cross-site')
      return outside(403, 'Another site opened this address. If you trust it, paste it into the address bar.');
    const entry = await redeem(code);
    if (entry === undefined) {
      sessions.figures.codesRefused++;
      return outside(401, 'This address was already used or has expired. Open the console with: reveille open');
    }
    const { session, setCookie } = await sessions.open(entry);
    // A page instead of a redirect: after a cross-site link, a browser follows a redirect without the new cookie.
    return respond(String(await openedPage(session.base, assets)), 200, { 'set-cookie': setCookie });
  });
  app.post('/sign-in', async (c) => {
    if (!people) return outside(404);
    const form = await readForm(c.req.raw);
    let entry: SignedInUser | undefined;
    try {
      entry = people.signIn(form.get('token')?.trim() ?? '', c.env.info.remoteAddress);
    } catch (thrown) {
      const error = toReveilleError(thrown);
      if (error.code === 'rate_limited') return outside(429, error.message);
      throw thrown;
    }
    if (entry === undefined) return outside(401, 'unauthorized');
    const zone = form.get('zone')?.trim() ?? '';
    const { session, setCookie } = await sessions.open({ ...entry, zone: isZone(zone) ? zone : undefined });
    return respond(String(await openedPage(session.base, assets)), 200, { 'set-cookie': setCookie });
  });
  const linked = async (
    request: Request,
    token: string,
    answerLink: (context: LinkContext) => Promise<LinkPage | JsonAnswer>,
  ): Promise<Response> => {
    if (!links) return outside(404);
    const { origin } = new URL(request.url);
    const here = ({ zone }: ConsoleBackend) => ({ now: clock.now(), zone });
    const own = (user: string) => backendOf({ user });
    const answer = await answerLink({ links, token, assets, here, backendOf: own, clock, origin });
    if ('json' in answer) return jsonResponse(answer.json);
    reads.forget();
    const { page, status, retryAfterSeconds } = answer;
    const headers = retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterSeconds)) };
    return respond(String(await page), status, headers);
  };
  app.get('/answer/:token', (c) => linked(c.req.raw, c.req.param('token'), showLink));
  app.post('/answer/:token', async (c) => {
    const form = await readForm(c.req.raw);
    return linked(c.req.raw, c.req.param('token'), (context) => useLink(context, form));
  });
  app.post('/answer/:token/passkey', (c) => linked(c.req.raw, c.req.param('token'), linkChallenge));
  app.get(`${BASE}/`, async (c) => {
    const context = await contextOf(c.req.raw, c.req.param());
    return context ? redirect(`${context.session.base}upcoming`) : outside();
  });
  app.post(`${BASE}/sign-out`, async (c) => {
    const context = await contextOf(c.req.raw, c.req.param());
    return context ? redirect('/', { 'set-cookie': await sessions.close(context.session) }) : outside();
  });
  app.get(`${BASE}/live`, async (c) => {
    const context = await contextOf(c.req.raw, c.req.param());
    return context ? live(context, c.env.info, c.req.query('conversation')) : outside();
  });
  // 308 keeps the method and the body of a form.
  for (const [former, path] of Object.entries(MOVED))
    app.on(['GET', 'POST'], [`${BASE}/${former}`, `${BASE}/${former}/*`], (c) => {
      const { pathname, search } = new URL(c.req.url);
      const [, base, , ...rest] = pathname.split('/');
      const location = ['', base, path, ...rest].join('/') + search;
      return new Response(null, { status: 308, headers: { ...HEADERS, location } });
    });
  for (const { method, path, screen } of SCREEN_ROUTES)
    app.on(method, [`${BASE}/${path}`], async (c) => {
      const context = await contextOf(c.req.raw, c.req.param());
      return context ? show(context, screen, c.req.raw) : outside();
    });
  app.notFound(async (c) => {
    const base = /^\/(~[A-Za-z0-9_-]{22})\//.exec(c.req.path)?.[1];
    const context = base === undefined || c.req.method === 'POST' ? undefined : await contextOf(c.req.raw, { base });
    const nowhere: Screen = () => Promise.reject(new ReveilleError('not_found', 'this page does not exist'));
    return context ? show(context, nowhere, c.req.raw) : outside(404);
  });
  app.onError(async (thrown) => {
    const error = toReveilleError(thrown);
    if (error.code === 'internal') log.error({ err: thrown }, 'a console request failed');
    return respond(String(await errorPage(error, assets)), error.status);
  });

  return {
    async fetch(request, info) {
      try {
        guard.check(request);
      } catch (thrown) {
        const { status, message } = toReveilleError(thrown);
        return new Response(message, { status, headers: { ...HEADERS, 'content-type': 'text/plain; charset=utf-8' } });
      }
      return app.fetch(request, { info });
    },
    redeem,
    figures: () => ({
      ...{ ...guard.figures, ...sessions.figures },
      streams: [...streams.values()].reduce((sum, open) => sum + open.size, 0),
    }),
    close() {
      clearInterval(sessionCheck);
      watcher.close();
    },
  };
}

/** @throws ReveilleError `invalid_request` for a body of another type, 413 for a large one */
async function readForm(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get('content-type') ?? '';
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
    throw new ReveilleError('invalid_request', 'content-type must be application/x-www-form-urlencoded');
  const text = await request.text();
  if (text.length > BODY_BYTES)
    throw new ReveilleError('invalid_request', `the form must have at most ${BODY_BYTES} bytes (got ${text.length})`, {
      status: 413,
    });
  return new URLSearchParams(text);
}
