/**
 * The console: the page at which a person sees what their agent has set, is asked, and answers. It answers requests that
 * somebody else's listener has taken; start reading here.
 */
import { Hono } from 'hono';
import type { Clock } from '../kit/clock/clock.ts';
import { isZone } from '../kit/clock/zone.ts';
import type { Logger } from '../kit/log/log.ts';
import { ReveilleError, toReveilleError } from '../wire/errors.ts';
import { loadAssets } from './assets.ts';
import type { Desk } from './desk.ts';
import { createRequestGuard, type GuardFigures, HEADERS } from './request-guard.ts';
import { openLive } from './live.ts';
import { type Frame, mainOf, type Page, wholePage } from './page.ts';
import { ChangeWatcher } from './change-watcher.ts';
import { askOfLink, type LinkPage, type Links, type LinkContext, showLink, useLink } from './screens/link.ts';
import { SCREEN_ROUTES } from './screens/routes.ts';
import { followTalk } from './screens/chat-events.ts';
import { errorMain, errorPage, openedPage, signInPage } from './screens/sign-in.ts';
import {
  type CookieKind,
  type Entry,
  type Session,
  type SessionStore,
  type SessionFigures,
  Sessions,
} from './sessions.ts';
import { SharedReads } from './shared-reads.ts';
import { SessionMessages } from './session-messages.ts';
import type { Screen, JsonAnswer, RequestContext } from './request-context.ts';
import { waitingOf } from './waiting-questions.ts';

export type ConsoleOptions = {
  clock: Clock;
  log: Logger;
  cookie: CookieKind;
  /** Names in `Host` that pass besides loopback's. */
  hosts: readonly string[];
  /** Seals one-time codes; without it nobody comes in by one. */
  codeSecret?: string | undefined;
  /** How people come in to a console of many. */
  people?: UserAccess | undefined;
  /** Links of notifications, each to one answer; without them there is no page behind any. */
  links?: Links | undefined;
  /** The backend of a person; it is asked for with every request, and should be the same one. */
  deskOf: (entry: Entry) => Desk;
};

export type UserAccess = {
  /** Whose token it is; `undefined` for one that does not stand. It may throw `rate_limited`. */
  signIn(token: string, remoteAddress: string): Entry | undefined;
  /** Uses a one-time code up; `undefined` for one that does not stand. */
  redeem(code: string): Promise<Entry | undefined>;
  /** Whether what let somebody in still does. */
  stands(credential: string): boolean;
  /** Where sessions are kept. */
  readonly sessions: SessionStore;
};

/** Who asks, as the listener knows. */
export type ConsoleInfo = {
  readonly remoteAddress: string;
  /** Aborts when the listener closes. */
  readonly closing: AbortSignal;
};

export type ConsoleFigures = GuardFigures & SessionFigures & { streams: number };

export type ConsoleApp = {
  fetch(request: Request, info: ConsoleInfo): Promise<Response>;
  figures(): ConsoleFigures;
  close(): void;
};

type Env = { Bindings: { info: ConsoleInfo } };
type Open = { readonly session: Session; close(): void };

/** Long enough that pages that look at the same hint share what is read for it. */
const SHARED_MS = 1000;
const BODY_BYTES = 64 * 1024;
/** How often the sessions of open streams are looked at again. */
const LOOK_AGAIN_MS = 1000;
const STREAMS_PER_SESSION = 12;
const BASE = '/:base{~[A-Za-z0-9_-]{22}}';

export function createConsole(options: ConsoleOptions): ConsoleApp {
  const { clock, log, codeSecret, people, links, deskOf: backendOf } = options;
  const assets = loadAssets();
  const guard = createRequestGuard(options.hosts);
  const reads = new SharedReads(clock, SHARED_MS);
  const sessions = new Sessions({
    ...{ clock, codeSecret, cookie: options.cookie, makeMessages: () => new SessionMessages() },
    ...{ book: people?.sessions, credentialStands: people && ((credential) => people.stands(credential)) },
  });
  const watcher = new ChangeWatcher({ clock, waiting: (backend) => waitingOf(backend, reads), onHint: () => reads.forget() });
  const streams = new Map<string, Set<Open>>();
  // Nothing may come for long: whoever is not in any more must not go on listening.
  const looking = setInterval(() => {
    for (const open of [...streams.values()].flatMap((those) => [...those]))
      if (!sessions.stands(open.session)) open.close();
  }, LOOK_AGAIN_MS).unref();

  const respond = (text: string, status = 200, headers: Record<string, string> = {}) =>
    new Response(text, { status, headers: { ...HEADERS, 'content-type': 'text/html; charset=utf-8', ...headers } });
  const redirect = (to: string, headers: Record<string, string> = {}) =>
    new Response(null, { status: 303, headers: { ...HEADERS, location: to, ...headers } });
  const jsonResponse = (json: object) =>
    respond(JSON.stringify(json), 200, { 'content-type': 'application/json; charset=utf-8' });
  const outside = async (status = 401, complaint?: string) =>
    respond(String(await signInPage({ assets, complaint, byToken: people !== undefined })), status);

  /** What is asked for, by whom: nobody who is not in gets further. */
  const contextOf = async (request: Request, params: Record<string, string>): Promise<RequestContext | undefined> => {
    const { base = '', ...others } = params;
    const session = sessions.find(`/${base}/`, request.headers.get('cookie'));
    if (!session) return undefined;
    const url = new URL(request.url);
    const backend = backendOf(session);
    const form = request.method === 'POST' ? await readForm(request) : new URLSearchParams();
    if (request.method === 'POST' && !sessions.isFrom(session, form.get('csrf') ?? undefined))
      throw new ReveilleError('forbidden', 'this form is not from a page of this session; open the page again');
    return {
      ...{ session, backend, clock, form, reads, params: others, query: url.searchParams, signal: request.signal },
      origin: url.origin,
      here: { now: clock.now(), zone: backend.zone },
      path: url.pathname.slice(session.base.length),
    };
  };

  const countOf = (backend: Desk): Promise<number | undefined> =>
    waitingOf(backend, reads)
      .look()
      .then(({ length }) => length)
      .catch(() => undefined);

  /** @param part what the script of an open page asks for; `null` where a person came */
  const pageFor = async (context: RequestContext, page: Page, part: string | null): Promise<Response> => {
    const { status = 200 } = page;
    if (part === 'main') return respond(String(await mainOf(page)), status);
    const { session, backend, here } = context;
    const waiting = await countOf(backend);
    const path = `${context.path}${context.query.size > 0 ? `?${context.query}` : ''}`;
    // What is said once is for the page that somebody came to, not for one that looks again behind their back.
    const message = part === null ? session.messages.take() : undefined;
    const frame: Frame = { session, backend, here, assets, message, waiting, path };
    return respond(String(await wholePage(page, frame)), status);
  };

  const show = async (context: RequestContext, screen: Screen, request: Request): Promise<Response> => {
    const part = request.headers.get('x-reveille-part');
    // The address of an answer to a form shows another page: fetched again, that page would replace the answer.
    const lasting = (page: Page): Page => (request.method === 'POST' ? { ...page, looksAt: [] } : page);
    // Asked for beside what the screen asks for; the page waits for both.
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
      return await pageFor(context, lasting(answer), part);
    } catch (thrown) {
      const error = toReveilleError(thrown);
      if (error.code === 'internal') log.error({ err: thrown, path: context.path }, 'a page of the console failed');
      return pageFor(context, lasting({ ...errorMain(error, context), status: error.status }), part);
    }
  };

  const live = async (context: RequestContext, info: ConsoleInfo, talk: string | undefined): Promise<Response> => {
    const { session, backend } = context;
    const those = streams.get(session.base) ?? new Set();
    if (those.size >= STREAMS_PER_SESSION)
      throw new ReveilleError('rate_limited', `one session has at most ${STREAMS_PER_SESSION} live pages`);
    const stream = openLive(clock, AbortSignal.any([info.closing, context.signal]), HEADERS);
    const open = { session, close: stream.close };
    streams.set(session.base, those.add(open));
    // From here on it is told what changes: nothing older may be taken for what is there now.
    reads.forget();
    const stop = watcher.watch(backend, (hint) => {
      if (sessions.stands(session)) stream.send({ event: 'hint', data: hint });
      else stream.close();
    });
    stream.closed.addEventListener('abort', () => {
      stop();
      those.delete(open);
      if (those.size === 0) streams.delete(session.base);
    });
    stream.send({ event: 'hello', data: '' });
    if (talk !== undefined) void followTalk(context, { conversation: talk, seen: context.query.get('seen') ?? '' }, stream);
    return stream.response;
  };

  const app = new Hono<Env>();
  app.get('/assets/:name', (c) => assets.serve(c.req.param('name')) ?? outside(404));
  // At the root: a worker shows what is pushed for all that is below it.
  app.get('/worker.js', () => assets.serve('worker.js')!);
  app.get('/manifest.webmanifest', () => assets.serve('manifest.webmanifest')!);
  app.get('/', () => outside(200));
  app.get('/open', async (c) => {
    const code = c.req.query('code') ?? '';
    // A page of somebody else's could send a visitor into that somebody's console, where they would say too much.
    if (people && c.req.header('sec-fetch-site') === 'cross-site')
      return outside(
        403,
        'Another page has led here. If you asked for this address, put it into the address bar yourself.',
      );
    const user = sessions.takeCode(code);
    const entry = people ? await people.redeem(code) : user === undefined ? undefined : { user };
    if (entry === undefined) {
      sessions.figures.codesRefused++;
      return outside(401, 'That address has been used, or is too old. Open the console with: reveille open');
    }
    const { session, setCookie } = await sessions.open(entry);
    // A page and not a redirect: a browser that came from elsewhere would follow that without its new cookie.
    return respond(String(await openedPage(session.base, assets)), 200, { 'set-cookie': setCookie });
  });
  app.post('/sign-in', async (c) => {
    if (!people) return outside(404);
    const form = await readForm(c.req.raw);
    let entry: Entry | undefined;
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
    look: (context: LinkContext) => Promise<LinkPage | JsonAnswer>,
  ): Promise<Response> => {
    if (!links) return outside(404);
    const { origin } = new URL(request.url);
    const here = ({ zone }: Desk) => ({ now: clock.now(), zone });
    const own = (user: string) => backendOf({ user });
    const answer = await look({ links, token, assets, here, backendOf: own, clock, origin });
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
  app.post('/answer/:token/passkey', (c) => linked(c.req.raw, c.req.param('token'), askOfLink));
  app.get(`${BASE}/`, async (c) => {
    const context = await contextOf(c.req.raw, c.req.param());
    return context ? redirect(`${context.session.base}ahead`) : outside();
  });
  app.post(`${BASE}/sign-out`, async (c) => {
    const context = await contextOf(c.req.raw, c.req.param());
    return context ? redirect('/', { 'set-cookie': await sessions.close(context.session) }) : outside();
  });
  app.get(`${BASE}/live`, async (c) => {
    const context = await contextOf(c.req.raw, c.req.param());
    return context ? live(context, c.env.info, c.req.query('talk')) : outside();
  });
  for (const { method, path, screen } of SCREEN_ROUTES)
    app.on(method, [`${BASE}/${path}`], async (c) => {
      const context = await contextOf(c.req.raw, c.req.param());
      return context ? show(context, screen, c.req.raw) : outside();
    });
  app.notFound(async (c) => {
    const base = /^\/(~[A-Za-z0-9_-]{22})\//.exec(c.req.path)?.[1];
    const context = base === undefined || c.req.method === 'POST' ? undefined : await contextOf(c.req.raw, { base });
    const nowhere: Screen = () => Promise.reject(new ReveilleError('not_found', 'there is no such page here'));
    return context ? show(context, nowhere, c.req.raw) : outside(404);
  });
  app.onError(async (thrown) => {
    const error = toReveilleError(thrown);
    if (error.code === 'internal') log.error({ err: thrown }, 'a request to the console failed');
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
    figures: () => ({
      ...{ ...guard.figures, ...sessions.figures },
      streams: [...streams.values()].reduce((sum, open) => sum + open.size, 0),
    }),
    close() {
      clearInterval(looking);
      watcher.close();
    },
  };
}

/** @throws ReveilleError `invalid_request` for a body that is no form, 413 for one that is too large */
async function readForm(request: Request): Promise<URLSearchParams> {
  const type = request.headers.get('content-type') ?? '';
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type))
    throw new ReveilleError('invalid_request', 'content-type must be application/x-www-form-urlencoded');
  const text = await request.text();
  if (text.length > BODY_BYTES)
    throw new ReveilleError('invalid_request', `the form must be at most ${BODY_BYTES} bytes`, { status: 413 });
  return new URLSearchParams(text);
}
