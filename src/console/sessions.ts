/**
 * Sessions: one-time codes that open them, and their cookies. A cookie is not bound to a port, so every server on the
 * same computer receives a cookie for `/`. The cookie of a session is bound to a secret path, below which its pages are
 * served (docs/internals/decisions/0019-people-and-the-console.md).
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../kit/clock/clock.ts';
import { openRights, sealRights } from '../kit/identity/person-rights.ts';
import { randomSecret, sameSecret, seal, tokenDigest } from '../kit/identity/secrets.ts';

const MAX_STEPS = 16;

export type FlashMessage = {
  readonly text: string;
  readonly tone: 'good' | 'bad';
  /** The name of the step to undo. */
  readonly undo?: string | undefined;
};

/** One-time messages of a session, and the steps that it can undo. In memory. */
export class SessionMessages {
  readonly #steps = new Map<string, () => Promise<string>>();
  #message: FlashMessage | undefined;

  /** @param step undoes the action and returns a message */
  success(text: string, step?: () => Promise<string>): void {
    const undo = step && randomSecret(9);
    if (undo !== undefined) {
      this.#steps.set(undo, step!);
      const [oldest] = this.#steps.keys();
      if (this.#steps.size > MAX_STEPS) this.#steps.delete(oldest!);
    }
    this.#message = { text, tone: 'good', undo };
  }

  error(text: string): void {
    this.#message = { text, tone: 'bad' };
  }

  /** Returns the message once. */
  take(): FlashMessage | undefined {
    const message = this.#message;
    this.#message = undefined;
    return message;
  }

  /** Returns a step once. */
  step(name: string): (() => Promise<string>) | undefined {
    const step = this.#steps.get(name);
    this.#steps.delete(name);
    return step;
  }
}

/** Lifetime of a one-time code. */
const CODE_MS = 10 * 60_000;
/** A session ends after this time without a request, or this time after its start. */
const IDLE_MS = 12 * 3_600_000;
const LONGEST_MS = 7 * 24 * 3_600_000;
/** Per user. A new session replaces the least recently used one. */
const MAX_SESSIONS = 32;

const COOKIE = /(?:^|;\s*)([A-Za-z0-9_-]+)=([A-Za-z0-9_-]{1,100})(?=;|$)/g;

export type SignedInUser = {
  readonly user: string;
  /** The credential of the sign-in, if it can be revoked. */
  readonly credential?: string | undefined;
  /** The user's rights at other services; stored sealed with the cookie. */
  readonly rights?: string | undefined;
  /** IANA; the console's own zone by default. */
  readonly zone?: string | undefined;
};

export type Session = SignedInUser & {
  /** The path of its pages: `/~…/`. */
  readonly base: string;
  /** The CSRF token of every write. */
  readonly csrf: string;
  readonly startedAt: number;
  /** One-time messages and the steps to undo. */
  readonly messages: SessionMessages;
};

/** A stored session. It does not contain the cookie. */
export type SessionRow = {
  readonly base: string;
  readonly user: string;
  readonly credential: string;
  /** SHA-256 of the cookie. */
  readonly digest: string;
  /** The user's rights, sealed with the cookie. */
  readonly sealed: string;
  readonly zone?: string | undefined;
  readonly startedAt: number;
  readonly usedAt: number;
};

export type SessionStore = {
  get(base: string): SessionRow | undefined;
  /** Resolves when the row is stored. Keeps the `most` recently used sessions of the user. */
  put(row: SessionRow, most: number): Promise<void>;
  /** Records a use; the caller does not wait. */
  touch(base: string, at: number): void;
  remove(base: string): Promise<void>;
};

/** Sessions that end with the process. */
function memoryStore(): SessionStore {
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

/** The scope of session cookies. */
export type CookieKind =
  /** For the path of the session: other servers on this computer do not receive it. */
  | 'path'
  /** The same, with TLS alone. */
  | 'secure-path'
  /** For this host alone, with TLS alone: other hosts of the domain cannot replace it. */
  | 'host';

const COOKIE_NAMES = { path: 'reveille', 'secure-path': '__Secure-reveille', host: '__Host-reveille' } as const;
/** Interval at which the use of a session is recorded. */
const TOUCH_EVERY_MS = 60_000;
/** Sessions whose messages are kept in memory. */
const MAX_MESSAGE_STORES = 2000;

/** The first byte of a code, by the form of its user. */
const CODE_FOR_TEXT = 1;
const CODE_FOR_UUID = 2;
const CODE_NONCE_BYTES = 6;
/** A code is valid for ten minutes, and each guess is a request, so 96 bits are enough. */
const CODE_MAC_BYTES = 12;
const CODE_HEAD_BYTES = 1 + 4 + CODE_NONCE_BYTES;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(Math.ceil(value));
  return bytes;
}

const codeMac = (secret: string, text: Buffer) =>
  Buffer.from(seal(secret, `console-code/2 ${text.toString('base64url')}`), 'base64url').subarray(0, CODE_MAC_BYTES);

/**
 * A code that opens one session for one user, once, within ten minutes. Every program with the secret can make one; the
 * console remembers the used codes.
 *
 * @param now epoch ms
 */
export function makeCode(secret: string, user: string, now: number): string {
  const isUuid = UUID.test(user);
  const text = Buffer.concat([
    Buffer.of(isUuid ? CODE_FOR_UUID : CODE_FOR_TEXT),
    u32((now + CODE_MS) / 1000),
    randomBytes(CODE_NONCE_BYTES),
    isUuid ? Buffer.from(user.replaceAll('-', ''), 'hex') : Buffer.from(user, 'utf8'),
  ]);
  return Buffer.concat([text, codeMac(secret, text)]).toString('base64url');
}

export type SessionFigures = { codesRefused: number; cookiesRefused: number; csrfRefused: number };

export class Sessions {
  readonly #clock: Clock;
  readonly #secret: string | undefined;
  readonly #kind: CookieKind;
  readonly #store: SessionStore;
  readonly #makeMessages: () => SessionMessages;
  readonly #isCredentialValid: (credential: string) => boolean;
  readonly #messages = new Map<string, SessionMessages>();
  /** Used codes, until they would have expired. */
  readonly #used = new Map<string, number>();
  readonly figures: SessionFigures = { codesRefused: 0, cookiesRefused: 0, csrfRefused: 0 };

  /**
   * @param options.codeSecret seals one-time codes; without it, codes are not accepted
   * @param options.store memory by default
   * @param options.isCredentialValid whether the credential of a sign-in is still valid
   */
  constructor(options: {
    clock: Clock;
    codeSecret: string | undefined;
    cookie: CookieKind;
    makeMessages: () => SessionMessages;
    store?: SessionStore | undefined;
    isCredentialValid?: ((credential: string) => boolean) | undefined;
  }) {
    this.#clock = options.clock;
    this.#secret = options.codeSecret;
    this.#makeMessages = options.makeMessages;
    this.#kind = options.cookie;
    this.#store = options.store ?? memoryStore();
    this.#isCredentialValid = options.isCredentialValid ?? (() => true);
  }

  /** Consumes a code. @returns its user; `undefined` for a forged, expired or used code */
  takeCode(code: string): string | undefined {
    if (this.#secret === undefined || !/^[\w-]{32,512}$/.test(code)) return undefined;
    const bytes = Buffer.from(code, 'base64url');
    const text = bytes.subarray(0, -CODE_MAC_BYTES);
    const mac = bytes.subarray(-CODE_MAC_BYTES);
    // The canonical form only: another spelling of the same bytes is another text.
    if (bytes.toString('base64url') !== code || text.length <= CODE_HEAD_BYTES) return undefined;
    if (!timingSafeEqual(mac, codeMac(this.#secret, text))) return undefined;
    const now = this.#clock.now();
    for (const [used, until] of this.#used) if (until < now) this.#used.delete(used);
    const expires = text.readUInt32BE(1) * 1000;
    const nonce = text.subarray(5, CODE_HEAD_BYTES).toString('base64url');
    // Expiry is rounded up to a second.
    if (expires < now || expires > now + CODE_MS + 1000 || this.#used.has(nonce)) return undefined;
    this.#used.set(nonce, expires);
    const user = text.subarray(CODE_HEAD_BYTES);
    if (text[0] !== CODE_FOR_UUID) return user.toString('utf8');
    return user.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  /** Opens a session. @returns the session and the header with its cookie */
  async open(entry: SignedInUser): Promise<{ session: Session; setCookie: string }> {
    const now = this.#clock.now();
    const token = randomSecret();
    const row: SessionRow = {
      ...{ user: entry.user, credential: entry.credential ?? '', zone: entry.zone },
      ...{ base: `/~${randomSecret(16)}/`, digest: tokenDigest(token), startedAt: now, usedAt: now },
      sealed: entry.rights === undefined ? '' : sealRights(entry.rights, token),
    };
    await this.#store.put(row, MAX_SESSIONS);
    const age = Math.floor(LONGEST_MS / 1000);
    return { session: this.#sessionOf(row, token, entry.rights), setCookie: this.#cookieFor(row.base, token, age) };
  }

  /** The session of a request, if its cookie belongs to the path and the credential is still valid. */
  find(base: string, cookies: string | null): Session | undefined {
    const now = this.#clock.now();
    const row = this.#store.get(base);
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
    if (now - row.usedAt >= TOUCH_EVERY_MS) this.#store.touch(base, now);
    return this.#sessionOf(row, token, rights);
  }

  /** Whether a session is still valid. The check does not count as a use. */
  isValid({ base, startedAt }: Session): boolean {
    const row = this.#store.get(base);
    return row !== undefined && row.startedAt === startedAt && this.#isAlive(row, this.#clock.now());
  }

  #isAlive({ credential, startedAt, usedAt }: SessionRow, now: number): boolean {
    const isInTime = now - usedAt <= IDLE_MS && now - startedAt <= LONGEST_MS;
    return isInTime && (credential === '' || this.#isCredentialValid(credential));
  }

  #sessionOf(
    { base, user, credential, zone, startedAt }: SessionRow,
    token: string,
    rights: string | undefined,
  ): Session {
    const messages = this.#messages.get(base) ?? this.#makeMessages();
    if (!this.#messages.has(base) && this.#messages.size >= MAX_MESSAGE_STORES)
      this.#messages.delete(this.#messages.keys().next().value!);
    this.#messages.set(base, messages);
    const csrf = tokenDigest(`csrf ${token}`);
    return {
      base,
      user,
      credential: credential === '' ? undefined : credential,
      rights,
      zone,
      csrf,
      startedAt,
      messages,
    };
  }

  #cookieFor(base: string, token: string, age: number): string {
    const isSecure = this.#kind !== 'path';
    const path = this.#kind === 'host' ? '/' : base;
    const attributes = `HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
    return `${COOKIE_NAMES[this.#kind]}=${token}; Path=${path}; Max-Age=${age}; ${attributes}`;
  }

  /** Whether a CSRF token belongs to this session. */
  isFrom(session: Session, csrf: string | undefined): boolean {
    const isOwn = csrf !== undefined && sameSecret(csrf, session.csrf);
    if (!isOwn) this.figures.csrfRefused++;
    return isOwn;
  }

  /** Ends a session. @returns the header that removes its cookie */
  async close({ base }: Pick<Session, 'base'>): Promise<string> {
    this.#messages.delete(base);
    await this.#store.remove(base);
    return this.#cookieFor(base, '', 0);
  }
}
