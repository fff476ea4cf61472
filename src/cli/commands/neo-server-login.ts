/** `reveille neo server login` and `logout`: signs in at an MCP server behind OAuth, with a browser here or elsewhere. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline/promises';
import { z } from 'zod';
import { foldersOf, manifestPathOf } from '../../agents/neo/tools/file-check.ts';
import { parseToolConfig } from '../../agents/neo/tools/settings.ts';
import { parseExecutorConfig } from '../../executor/config.ts';
import { wait } from '../../kit/clock/clock.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { loadManifest } from '../../mcp-host/manifest.ts';
import type { AuthorizationOptions } from '../../mcp-host/oauth/server-authorization.ts';
import { beginSignIn, finishSignIn } from '../../mcp-host/oauth/sign-in.ts';
import { TokenStore } from '../../mcp-host/oauth/token-store.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import type { CliContext } from '../context.ts';
import { withoutSecrets } from '../doctor/disabled.ts';
import { settingsOfAgent } from '../home/neo-manifest.ts';
import { openInBrowser } from './open.ts';

export type LoginFlags = { paste?: boolean; browser?: boolean; executor?: boolean; url?: string };

/** The redirect address with --paste. Nothing listens there: the browser shows an error, and the user copies its address. */
const PASTE_URL = 'http://127.0.0.1:33418/callback';
const CALLBACK_PATH = '/callback';
const WAIT_MS = 30 * 60_000;
const PAGE_HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'",
  'referrer-policy': 'no-referrer',
  connection: 'close',
};

/** The servers of a daemon, and its data folder. */
function manifestOf(context: CliContext, ofExecutor: boolean) {
  if (ofExecutor) {
    const { manifest, workspace, dataDir } = parseExecutorConfig(withoutSecrets(context.settings));
    const path = manifest === 'bundled' ? bundledManifest('executor') : manifest.path;
    return { ...loadManifest(path, { ...context.settings, EXECUTOR_WORKSPACE: workspace }), dataDir };
  }
  const settings = settingsOfAgent(context);
  const dataDir = settings.NEO_DATA_DIR!;
  const config = parseToolConfig(settings, dataDir);
  if (config.manifest === undefined)
    throw new ReveilleError('invalid_request', 'NEO_MANIFEST is "none": Neo has no servers');
  const variables = { ...settings, ...foldersOf(config, dataDir) };
  return { ...loadManifest(manifestPathOf(config.manifest), variables), dataDir };
}

/**
 * @param url of a server that the manifest does not have yet
 * @throws ReveilleError `not_found`, or `invalid_request` for a server without a sign-in
 */
function placeOf(context: CliContext, alias: string, { executor = false, url }: LoginFlags): AuthorizationOptions {
  const { servers, path, dataDir } = manifestOf(context, executor);
  const isKnown = servers.some((server) => server.alias === alias);
  if (url !== undefined && !isKnown) {
    const link = { kind: 'http' as const, url: parseOrThrow(httpUrl, url), headers: {}, oauth: {} };
    return { spec: { alias }, link, store: new TokenStore(dataDir, context.clock), clock: context.clock };
  }
  const spec = servers.find((server) => server.alias === alias);
  if (spec === undefined) {
    const names = servers.map((server) => server.alias).join(', ') || 'none';
    throw new ReveilleError(
      'not_found',
      `the manifest ${path} has no server ${JSON.stringify(alias)}; it has ${names}`,
    );
  }
  const { link, missing } = spec;
  if (missing.length > 0)
    throw new ReveilleError('invalid_request', `server "${alias}" refers to ${missing.join(', ')}, which must be set`);
  if (link.kind !== 'http' || link.oauth === undefined)
    throw new ReveilleError(
      'invalid_request',
      `server "${alias}" has no sign-in: ${link.kind === 'http' ? 'it has its own credentials, or "oauth" is false' : 'it is a program on this computer'}`,
    );
  const { clock } = context;
  return { spec, link: { ...link, oauth: link.oauth }, store: new TokenStore(dataDir, clock), clock };
}

const httpUrl = z.url({ protocol: /^https?$/ });

/** Accepts the answer of a browser on this computer. */
class AnswerListener {
  readonly #server = createServer((request, response) => void this.#onRequest(request, response));
  readonly #finished = Promise.withResolvers<{ scope: string | undefined }>();
  #finish: ((answer: string) => Promise<{ scope: string | undefined }>) | undefined;
  #port = 0;

  /** @param port the preferred one; another one if it is in use */
  async listen(port: number): Promise<void> {
    this.#finished.promise.catch(() => {});
    const listen = (on: number) =>
      new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject);
        this.#server.listen(on, '127.0.0.1', () => {
          this.#server.off('error', reject);
          resolve();
        });
      });
    await listen(port).catch(() => listen(0));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}${CALLBACK_PATH}`;
  }

  /** Resolves with the first answer of this sign-in; others are refused, and do not end the wait. */
  answered(finish: (answer: string) => Promise<{ scope: string | undefined }>): Promise<{ scope: string | undefined }> {
    this.#finish = finish;
    return this.#finished.promise;
  }

  async #onRequest({ method, url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, text: string) => void response.writeHead(status, PAGE_HEADERS).end(`${text}\n`);
    const isAnswer =
      method === 'GET' && url.startsWith(`${CALLBACK_PATH}?`) && headers.host === `127.0.0.1:${this.#port}`;
    if (!isAnswer || this.#finish === undefined) return send(404, 'This address has no page.');
    try {
      const found = await this.#finish(`http://127.0.0.1:${this.#port}${url}`);
      send(200, 'You are signed in. You can close this page and return to the terminal.');
      this.#finished.resolve(found);
    } catch (thrown) {
      send(400, 'The sign-in did not succeed; the terminal says why.');
      // An answer of another page must not end this sign-in.
      if (!(thrown instanceof ReveilleError && thrown.code === 'invalid_request')) this.#finished.reject(thrown);
    }
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

/** The port of the stored registration, whose redirect address an authorization server may compare literally. */
function preferredPort({ store, spec, link }: AuthorizationOptions): number {
  const { client } = store.read({ alias: spec.alias, url: link.url });
  const uris = client !== undefined && 'redirect_uris' in client ? (client.redirect_uris as unknown[]) : [];
  const url = typeof uris[0] === 'string' ? URL.parse(uris[0]) : null;
  return url?.hostname === '127.0.0.1' ? Number(url.port) : 0;
}

/** Reads pasted addresses until one is the answer. */
async function pasted(
  { process, out }: CliContext,
  finish: (answer: string) => Promise<{ scope: string | undefined }>,
  signal: AbortSignal,
): Promise<{ scope: string | undefined }> {
  const reader = createInterface({ input: process.stdin, output: process.stdout });
  const closed = new Promise<undefined>((resolve) => reader.once('close', () => resolve(undefined)));
  try {
    for (;;) {
      const line = await Promise.race([reader.question('Address: ', { signal }), closed]);
      if (line === undefined) throw new ReveilleError('invalid_request', 'no address was given; nothing was stored');
      if (line.trim() === '') continue;
      try {
        return await finish(line);
      } catch (thrown) {
        const isWrong = thrown instanceof ReveilleError && thrown.code === 'invalid_request';
        if (!isWrong || process.stdin.isTTY !== true) throw thrown;
        out.remark(thrown.message);
      }
    }
  } finally {
    reader.close();
  }
}

export async function serverLogin(context: CliContext, flags: LoginFlags, alias: string): Promise<void> {
  const { out, clock } = context;
  const { paste = false, browser = true } = flags;
  const options = placeOf(context, alias, flags);
  if (options.link.oauth.grant === 'client_credentials')
    throw new ReveilleError('invalid_request', `server "${alias}" uses a client of its own; no person signs in there`);
  const listener = paste ? undefined : new AnswerListener();
  const over = new AbortController();
  try {
    await listener?.listen(preferredPort(options));
    const request = await beginSignIn(options, listener?.url ?? PASTE_URL);
    const finish = (answer: string) => finishSignIn(options, answer);
    const answered = listener?.answered(finish);
    const scope = request.scope === undefined ? '' : ` It requests the scopes: ${oneLine(request.scope)}.`;
    const lines = [
      `The server "${alias}" (${new URL(options.link.url).host}) sends you to ${request.host} to sign in.${scope}`,
      ...(request.accessHost === request.host
        ? []
        : [`The access itself goes to ${request.accessHost}: continue only if that host belongs to ${request.host}.`]),
      'Check this name before you enter a password. Open this address:',
      '',
      request.url,
      '',
      paste
        ? 'Afterwards the browser shows an error for an address at 127.0.0.1. Copy that address from the browser, and paste it here.'
        : 'Waiting for the browser… (on a computer without one, use --paste)',
    ];
    // With --json only the result is on stdout.
    for (const line of lines) {
      if (out.json) out.remark(line);
      else out.line(line);
    }
    if (!paste && browser && out.live) await openInBrowser(request.url);
    const late = wait(clock, WAIT_MS, over.signal).then((): never => {
      throw new ReveilleError('unavailable', 'no answer came within 30 minutes; begin again', { retryable: false });
    });
    // Nothing awaits this promise after the end.
    late.catch(() => {});
    const found = await Promise.race([answered ?? pasted(context, finish, over.signal), late]);
    out.result({ server: alias, issuer: request.issuer, scope: found.scope }, [
      `Signed in at "${alias}". A running agent uses it within seconds.`,
    ]);
  } finally {
    over.abort();
    listener?.close();
  }
}

export function serverLogout(context: CliContext, flags: LoginFlags, alias: string): void {
  const { store, spec } = placeOf(context, alias, flags);
  const wasIn = store.remove(spec);
  context.out.result({ server: alias, removed: wasIn }, [
    wasIn
      ? `Removed the sign-in at "${alias}" from this computer. Its access also ends if you revoke it at the server.`
      : `There was no sign-in at "${alias}".`,
  ]);
}
