/**
 * Secrets derived from a person's token, besides access to the public listener: a key for their alarms, and a token for
 * their tasks (docs/internals/decisions/0019-people-and-the-console.md). The router stores a digest of the token, from which none
 * of them can be derived. The rights of an open session are sealed with the session's cookie.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { SUBMITTER_PREFIX } from '../../wire/submitter.ts';
import { AgentKey } from './keys.ts';
import { sameSecret, seal } from './secrets.ts';

const derived = (from: string, what: string) =>
  Buffer.from(hkdfSync('sha256', Buffer.from(from, 'utf8'), Buffer.alloc(0), `reveille ${what}`, 32));

/** The rights derived from a person's token, in base64url. The token cannot be derived from them. */
export const rightsOf = (token: string): string => derived(token, 'person-rights1').toString('base64url');

/** The key with which this person authenticates at chronosd for their alarms. */
export const alarmKeyOf = (rights: string): AgentKey => new AgentKey(derived(rights, 'alarms1').toString('hex'));

/** The submitter's token with which this person reads their tasks. */
export const taskTokenOf = (rights: string): string =>
  `${SUBMITTER_PREFIX}${derived(rights, 'tasks1').toString('base64url')}`;

const [IV_BYTES, TAG_BYTES] = [12, 16];

/** Seals rights under a secret that is not stored (AES-256-GCM), in base64url. */
export function sealRights(rights: string, secret: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', derived(secret, 'sealed-rights1'), iv);
  return Buffer.concat([iv, cipher.update(rights, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url');
}

/** Opens sealed rights; `undefined` under another secret, or if they were changed. */
export function openRights(sealed: string, secret: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url');
  if (bytes.length <= IV_BYTES + TAG_BYTES) return undefined;
  const opened = createDecipheriv('aes-256-gcm', derived(secret, 'sealed-rights1'), bytes.subarray(0, IV_BYTES));
  opened.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    return opened.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + opened.final('utf8');
  } catch {
    return undefined;
  }
}

const VERSION = 'person-key1';
const NAME_MAX_BYTES = 400;

/** A key, and the owner of the alarms that it is enrolled for. */
export type KeyHolder = { readonly owner: string; readonly publicKey: string };

const contentOf = (name: string, { owner, publicKey }: KeyHolder) => [VERSION, name, owner, publicKey].join('\n');

/**
 * Marks a key as a person's, not an agent's: alarms set with it have that person as author. For the header
 * `x-chronos-person`, with every request under that key.
 *
 * @param secret the operator's token of chronosd
 */
export function personKeyMark(name: string, holder: KeyHolder, secret: string): string {
  const encoded = Buffer.from(name, 'utf8').toString('base64url');
  return [VERSION, encoded, seal(secret, contentOf(encoded, holder))].join('.');
}

/** The name of the key's person; `undefined` if the mark is invalid or belongs to another key. */
export function readPersonKeyMark(mark: string, holder: KeyHolder, secret: string): string | undefined {
  const [version, name = '', mac = '', ...rest] = mark.split('.');
  if (version !== VERSION || rest.length > 0) return undefined;
  if (!sameSecret(mac, seal(secret, contentOf(name, holder)))) return undefined;
  const decoded = Buffer.from(name, 'base64url');
  return decoded.length === 0 || decoded.length > NAME_MAX_BYTES ? undefined : decoded.toString('utf8');
}
