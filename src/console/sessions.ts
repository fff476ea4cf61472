/**
 * Who is in: one-time codes that become sessions, and the cookie of a session. A cookie does not know ports, so that any
 * other server on the same computer would be sent one for `/`; ours is for a path that nobody else knows, and the pages
 * of a session live below it (docs/decisions/0043-the-console.md).
 */
import type { Clock } from '../kit/clock/clock.ts';
import { openRights, sealRights } from '../kit/identity/person-rights.ts';
import { randomSecret, sameSecret, seal, tokenDigest } from '../kit/identity/secrets.ts';
import type { SessionMessages } from './session-messages.ts';

/** A code is typed or opened at once. */
const CODE_MS = 10 * 60_000;
/** Without a request for so long, or after so long in any case, a session is over. */
const IDLE_MS = 12 * 3_600_000;
const LONGEST_MS = 7 * 24 * 3_600_000;
/** Of one person; the one that was used longest ago goes. */
const MOST_SESSIONS = 32;

const VERSION = 'c1';
const COOKIE = /(?:^|;\s*)([A-Za-z0-9_-]+)=([A-Za-z0-9_-]{1,100})(?=;|$)/g;

/** Somebody who comes in. */
export type Entry = {
  readonly user: string;
  /** What let them in, where that can be taken away. */
  readonly credential?: string | undefined;
  /** What the person may do elsewhere; it is kept sealed under the cookie. */
  readonly rights?: string | undefined;
  /** IANA; without it the console's own. */
  readonly zone?: string | undefined;
};

export type Session = Entry & {
  /** The path that its pages are below: `/~…/`. */
  readonly base: string;
  /** What every write has to say. */
  readonly csrf: string;
  readonly startedAt: number;
  /** What was done last and can be taken back, and what to say once. */
  readonly messages: SessionMessages;
};

/** A session as it is kept: nothing in it opens it. */
export type SessionRow = {
  readonly base: string;
  readonly user: string;
  readonly credential: string;
  /** SHA-256 of the cookie. */
  readonly digest: string;
  /** The person's rights, under the cookie. */
  readonly sealed: string;
  readonly zone?: string | undefined;
  readonly startedAt: number;
  readonly usedAt: number;
};

/** Where sessions are kept. */
export type SessionStore = {
  get(base: string): SessionRow | undefined;
  /** Kept when it resolves. Of one user so many are, those that were used last. */
  put(row: SessionRow, most: number): Promise<void>;
  /** Nobody waits for it. */
  touch(base: string, at: number): void;
  remove(base: string): Promise<void>;
};

/** Sessions that end with the process. */
function memoryBook(): SessionStore {
  const rows = new Map<string, SessionRow>();
  return {
    get: (base) => rows.get(base),
    async put(row, most) {
      rows.set(row.base, row);
      const own = [...rows.values()].filter(({ user }) => user === row.user);
      own.sort((one, other) => other.usedAt - one.usedAt);
      for (const { base } of own.slice(most)) rows.delete(base);
    },
    touch(base, usedAt) {
      const row = rows.get(base);
      if (row) rows.set(base, { ...row, usedAt });
    },
    async remove(base) {
      rows.delete(base);
    },
  };
}

/** How cookies are given out. */
export type CookieKind =
  /** For the path of the session: other servers of this computer are not sent it. */
  | 'path'
  /** The same, and never without TLS. */
  | 'secure-path'
  /** For this host alone, and never without TLS: no other name of the domain can put one of its own in its place. */
  | 'host';

const COOKIE_NAMES = { path: 'reveille', 'secure-path': '__Secure-reveille', host: '__Host-reveille' } as const;
/** How often the use of a session is written down. */
const TOUCH_EVERY_MS = 60_000;
/** So many sessions remember what was done last. */
const MAX_MESSAGE_STORES = 2000;

/**
 * A code that opens one session for one person, once, within ten minutes. Whoever has the secret can make one without
 * asking anybody; the console remembers those that were used.
 *
 * @param now epoch ms
 */
export function makeCode(secret: string, user: string, now: number): string {
  const text = [VERSION, now + CODE_MS, randomSecret(12), Buffer.from(user, 'utf8').toString('base64url')].join('.');
  return `${text}.${seal(secret, text)}`;
}

export type SessionFigures = { codesRefused: number; cookiesRefused: number; csrfRefused: number };

export class Sessions {
  readonly #clock: Clock;
  readonly #secret: string | undefined;
  readonly #kind: CookieKind;
  readonly #book: SessionStore;
  readonly #makeMessages: () => SessionMessages;
  readonly #credentialStands: (credential: string) => boolean;
  readonly #messages = new Map<string, SessionMessages>();
  /** Codes that were used, until they would have expired. */
  readonly #used = new Map<string, number>();
  readonly figures: SessionFigures = { codesRefused: 0, cookiesRefused: 0, csrfRefused: 0 };

  /**
   * @param options.codeSecret seals one-time codes; without it, none is taken
   * @param options.book memory unless told
   * @param options.credentialStands whether what let somebody in still does
   */
  constructor(options: {
    clock: Clock;
    codeSecret: string | undefined;
    cookie: CookieKind;
    makeMessages: () => SessionMessages;
    book?: SessionStore | undefined;
    credentialStands?: ((credential: string) => boolean) | undefined;
  }) {
    this.#clock = options.clock;
    this.#secret = options.codeSecret;
    this.#makeMessages = options.makeMessages;
    this.#kind = options.cookie;
    this.#book = options.book ?? memoryBook();
    this.#credentialStands = options.credentialStands ?? (() => true);
  }

  /** Whose code it is; used up by this. `undefined` when it is forged, too old, or was used. */
  takeCode(code: string): string | undefined {
    const [version, expires = '', nonce = '', user = '', mac = '', ...rest] = code.split('.');
    const isShaped = version === VERSION && rest.length === 0 && /^\d{1,15}$/.test(expires);
    if (this.#secret === undefined || !isShaped) return undefined;
    if (!sameSecret(mac, seal(this.#secret, [version, expires, nonce, user].join('.')))) return undefined;
    const now = this.#clock.now();
    for (const [used, until] of this.#used) if (until < now) this.#used.delete(used);
    if (Number(expires) < now || Number(expires) > now + CODE_MS || this.#used.has(nonce)) return undefined;
    this.#used.set(nonce, Number(expires));
    return Buffer.from(user, 'base64url').toString('utf8');
  }

  /** Opens a session. @returns it, and the header that gives its cookie */
  async open(entry: Entry): Promise<{ session: Session; setCookie: string }> {
    const now = this.#clock.now();
    const token = randomSecret();
    const row: SessionRow = {
      ...{ user: entry.user, credential: entry.credential ?? '', zone: entry.zone },
      ...{ base: `/~${randomSecret(16)}/`, digest: tokenDigest(token), startedAt: now, usedAt: now },
      sealed: entry.rights === undefined ? '' : sealRights(entry.rights, token),
    };
    await this.#book.put(row, MOST_SESSIONS);
    const age = Math.floor(LONGEST_MS / 1000);
    return { session: this.#sessionOf(row, token, entry.rights), setCookie: this.#cookieFor(row.base, token, age) };
  }

  /** The session of a request below a path, if its cookie is that session's and what let the person in still does. */
  find(base: string, cookies: string | null): Session | undefined {
    const now = this.#clock.now();
    const row = this.#book.get(base);
    const given = [...(cookies ?? '').matchAll(COOKIE)].filter(([, name]) => name === COOKIE_NAMES[this.#kind]);
    const token = given.map(([, , one]) => one!).find((one) => sameSecret(tokenDigest(one), row?.digest ?? ''));
    if (row === undefined || token === undefined) {
      if (given.length > 0) this.figures.cookiesRefused++;
      return undefined;
    }
    const rights = row.sealed === '' ? undefined : openRights(row.sealed, token);
    if (!this.#isAlive(row, now) || (row.sealed !== '' && rights === undefined)) {
      void this.close(row);
      return undefined;
    }
    if (now - row.usedAt >= TOUCH_EVERY_MS) this.#book.touch(base, now);
    return this.#sessionOf(row, token, rights);
  }

  /** Whether a session still stands, without counting as use: for what goes on without the person. */
  stands({ base, startedAt }: Session): boolean {
    const row = this.#book.get(base);
    return row !== undefined && row.startedAt === startedAt && this.#isAlive(row, this.#clock.now());
  }

  #isAlive({ credential, startedAt, usedAt }: SessionRow, now: number): boolean {
    const isInTime = now - usedAt <= IDLE_MS && now - startedAt <= LONGEST_MS;
    return isInTime && (credential === '' || this.#credentialStands(credential));
  }

  #sessionOf(
    { base, user, credential, zone, startedAt }: SessionRow,
    token: string,
    rights: string | undefined,
  ): Session {
    const messages = this.#messages.get(base) ?? this.#makeMessages();
    if (!this.#messages.has(base) && this.#messages.size >= MAX_MESSAGE_STORES) this.#messages.delete(this.#messages.keys().next().value!);
    this.#messages.set(base, messages);
    const csrf = tokenDigest(`csrf ${token}`);
    return { base, user, credential: credential === '' ? undefined : credential, rights, zone, csrf, startedAt, messages };
  }

  #cookieFor(base: string, token: string, age: number): string {
    const isSecure = this.#kind !== 'path';
    const path = this.#kind === 'host' ? '/' : base;
    const attributes = `HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
    return `${COOKIE_NAMES[this.#kind]}=${token}; Path=${path}; Max-Age=${age}; ${attributes}`;
  }

  /** Whether a write comes from a page of this session. */
  isFrom(session: Session, csrf: string | undefined): boolean {
    const is = csrf !== undefined && sameSecret(csrf, session.csrf);
    if (!is) this.figures.csrfRefused++;
    return is;
  }

  /** @returns the header that takes the cookie away, once the session is over */
  async close({ base }: Pick<Session, 'base'>): Promise<string> {
    this.#messages.delete(base);
    await this.#book.remove(base);
    return this.#cookieFor(base, '', 0);
  }
}
