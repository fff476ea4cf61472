/**
 * Converts the listener's requests for the library, which expects those of Node's HTTP server. The public address comes
 * from the configuration and not from headers, so that no client can choose the addresses in an answer.
 */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** A request in Node's form, and its answer. */
export type NodeExchange = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Resolves with the complete answer. */
  readonly answered: Promise<Response>;
};

/** Collects the answer instead of sending it. */
class KeptResponse extends ServerResponse {
  readonly answered: Promise<Response>;
  readonly #resolve: (response: Response) => void;

  constructor(req: IncomingMessage) {
    super(req);
    const { promise, resolve } = Promise.withResolvers<Response>();
    this.answered = promise;
    this.#resolve = resolve;
  }

  override end(chunk?: unknown): this {
    this.finished = true;
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.getHeaders()))
      for (const one of [value ?? []].flat()) headers.append(name, String(one));
    // The listener sets it.
    headers.delete('content-length');
    const hasBody = (typeof chunk === 'string' || chunk instanceof Uint8Array) && chunk.length > 0;
    const isEmpty = this.statusCode === 204 || this.statusCode === 304;
    const body = hasBody && !isEmpty ? (typeof chunk === 'string' ? chunk : new Uint8Array(chunk)) : null;
    this.#resolve(new Response(body, { status: this.statusCode, headers }));
    this.emit('finish');
    return this;
  }
}

const withoutCookie = (cookies: string, name: string): string =>
  cookies
    .split(';')
    .filter((pair) => ![name, `${name}.sig`].includes(pair.split('=', 1)[0]!.trim()))
    .join(';');

/** Headers with which a proxy describes a request. */
const OF_PROXIES = /^(?:x-forwarded-|forwarded$|x-real-ip$|via$)/;

export type ExchangeAt = {
  /** The address of the server, such as `https://example.com/oauth`. */
  readonly base: URL;
  /** The path and query below it. */
  readonly path: string;
  readonly remoteAddress: string;
  /** A cookie that is dropped, with its signature. */
  readonly without?: string | undefined;
};

export async function nodeExchange(request: Request, at: ExchangeAt): Promise<NodeExchange> {
  const { base, path, remoteAddress, without } = at;
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress });
  const req = new IncomingMessage(socket);
  const given = [...request.headers].filter(([name]) => !OF_PROXIES.test(name));
  req.headers = {
    ...Object.fromEntries(given),
    host: base.host,
    'x-forwarded-proto': base.protocol.slice(0, -1),
  };
  if (without !== undefined && req.headers.cookie !== undefined)
    req.headers.cookie = withoutCookie(req.headers.cookie, without);
  req.method = request.method;
  req.url = path;
  Object.assign(req, { originalUrl: `${base.pathname}${path}` });
  const body = Buffer.from(await request.arrayBuffer());
  if (req.headers['content-length'] !== undefined) req.headers['content-length'] = String(body.length);
  if (body.length > 0) req.push(body);
  req.push(null);
  const res = new KeptResponse(req);
  return { req, res, answered: res.answered };
}
