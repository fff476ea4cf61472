/**
 * The credentials of the user at MCP servers, one file per server. A file is encrypted with a key in the same folder and
 * bound to the server's alias and address, so it cannot be opened for another alias or address.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type {
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import { z } from 'zod';
import { type Clock, wait } from '../../kit/clock/clock.ts';
import { readPrivateFile, replacePrivateFile, writePrivateFile } from '../../kit/identity/private-file.ts';
import { ReveilleError, systemCodeOf } from '../../wire/errors.ts';

/** A sign-in that waits for the user's consent. */
export type PendingSignIn = {
  readonly state: string;
  readonly codeVerifier: string;
  readonly redirectUrl: string;
  /** The requested scope. */
  readonly scope?: string | undefined;
  readonly discovery: OAuthDiscoveryState;
  /** When it began, epoch milliseconds. */
  readonly at: number;
};

export type Credentials = {
  readonly client?: StoredOAuthClientInformation | undefined;
  readonly tokens?: StoredOAuthTokens | undefined;
  /** The requirements of the server's last refusal. */
  readonly challenge?:
    | { readonly scope?: string | undefined; readonly resourceMetadataUrl?: string | undefined }
    | undefined;
  readonly pending?: PendingSignIn | undefined;
};

/** The server to which stored credentials belong. */
export type Place = { readonly alias: string; readonly url: string };

const hex = z.string().regex(/^[0-9a-f]*$/);
const fileSchema = z.strictObject({ version: z.literal(1), nonce: hex, text: hex, tag: hex });

const KEY_BYTES = 32;
/** Maximum size of a file, for writes as for reads. */
const LONGEST_TEXT = 24 * 1024;
const LOCK_RETRY_MS = 50;
const LOCK_WAIT_MS = 30_000;
/** An older lock belongs to a process that was killed. */
const STALE_LOCK_MS = 60_000;

/** Whether the server has required a sign-in or a scope that is missing. */
export function lacksSignIn({ tokens, challenge }: Credentials): boolean {
  if (challenge === undefined) return false;
  const granted = new Set(tokens?.scope?.split(' '));
  return (
    tokens === undefined || (challenge.scope ?? '').split(' ').some((scope) => scope !== '' && !granted.has(scope))
  );
}

/** The folder of the credentials below a daemon's data folder. */
export const signInFolder = (dataDir: string) => join(dataDir, 'mcp-sign-in');

const associated = ({ alias, url }: Place) => Buffer.from(`reveille-mcp-sign-in/1 ${JSON.stringify([alias, url])}`);

export class TokenStore {
  readonly #folder: string;
  readonly #clock: Clock;
  #key: Buffer | undefined;

  constructor(dataDir: string, clock: Clock) {
    this.#folder = signInFolder(dataDir);
    this.#clock = clock;
  }

  /**
   * @returns empty credentials for a file of another server or address, or one that was sealed with another key
   * @throws ReveilleError `forbidden` if others can read the file, `unavailable` if it cannot be read
   */
  read(place: Place): Credentials {
    const text = readPrivateFile(this.#pathOf(place.alias));
    if (text === undefined) return {};
    try {
      const sealed = fileSchema.parse(JSON.parse(text));
      const decipher = createDecipheriv('aes-256-gcm', this.#readKey(), Buffer.from(sealed.nonce, 'hex'));
      decipher.setAAD(associated(place)).setAuthTag(Buffer.from(sealed.tag, 'hex'));
      const opened = Buffer.concat([decipher.update(Buffer.from(sealed.text, 'hex')), decipher.final()]);
      return JSON.parse(opened.toString('utf8')) as Credentials;
    } catch (thrown) {
      if (thrown instanceof ReveilleError) throw thrown;
      return {};
    }
  }

  /** @throws ReveilleError `unavailable` */
  write(place: Place, credentials: Credentials): void {
    const text = JSON.stringify(credentials);
    if (text.length > LONGEST_TEXT)
      throw new ReveilleError('unavailable', `the credentials of "${place.alias}" are too large to be stored`, {
        retryable: false,
      });
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#readKey(), nonce);
    cipher.setAAD(associated(place));
    const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
    const tag = cipher.getAuthTag();
    const file = { version: 1, nonce: nonce.toString('hex'), text: sealed.toString('hex'), tag: tag.toString('hex') };
    replacePrivateFile(this.#pathOf(place.alias), JSON.stringify(file));
  }

  update(place: Place, change: (before: Credentials) => Credentials): void {
    this.write(place, change(this.read(place)));
  }

  /** @returns whether credentials were stored */
  remove({ alias }: Pick<Place, 'alias'>): boolean {
    const path = this.#pathOf(alias);
    const isThere = statSync(path, { throwIfNoEntry: false }) !== undefined;
    rmSync(path, { force: true });
    return isThere;
  }

  /**
   * Runs an operation while no other process renews the credentials of this server. An authorization server revokes all
   * tokens if a refresh token is used twice.
   *
   * @throws ReveilleError `unavailable` if another process holds the lock for too long, or the error of `run`
   */
  async exclusively<T>({ alias }: Pick<Place, 'alias'>, run: () => Promise<T>): Promise<T> {
    const path = join(this.#folder, `${alias}.lock`);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (let waited = 0; !takeLock(path, this.#clock.now()); waited += LOCK_RETRY_MS) {
      if (waited >= LOCK_WAIT_MS)
        throw new ReveilleError('unavailable', `another process uses the sign-in of "${alias}" (${path}); try again`);
      await wait(this.#clock, LOCK_RETRY_MS);
    }
    try {
      return await run();
    } finally {
      rmSync(path, { force: true });
    }
  }

  #pathOf(alias: string): string {
    return join(this.#folder, `${alias}.json`);
  }

  #readKey(): Buffer {
    if (this.#key) return this.#key;
    const path = join(this.#folder, 'key');
    if (readPrivateFile(path) === undefined)
      try {
        writePrivateFile(path, randomBytes(KEY_BYTES).toString('hex'));
      } catch (thrown) {
        // Another process has just made the key.
        if (!(thrown instanceof ReveilleError && thrown.code === 'conflict')) throw thrown;
      }
    const key = Buffer.from(readPrivateFile(path) ?? '', 'hex');
    if (key.length !== KEY_BYTES)
      throw new ReveilleError('unavailable', `${path} is not a valid key; remove its folder, and sign in again`, {
        retryable: false,
      });
    this.#key = key;
    return key;
  }
}

/** @returns whether this process has the lock now */
function takeLock(path: string, now: number): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600));
    return true;
  } catch (thrown) {
    if (systemCodeOf(thrown) !== 'EEXIST') throw thrown;
    const stat = statSync(path, { throwIfNoEntry: false });
    // Its process was killed.
    if (stat && stat.mtimeMs < now - STALE_LOCK_MS) rmSync(path, { force: true });
    return false;
  }
}
