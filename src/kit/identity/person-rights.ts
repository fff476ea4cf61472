/**
 * What follows from a person's token, besides the way in at the public listener: a key of theirs for their alarms, and a
 * token for their tasks (docs/decisions/0047-the-console-of-a-fleet.md). The router keeps a digest of the token, from
 * which none of it can be worked out; what an open session needs of it stays sealed under the session's own cookie.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { SUBMITTER_PREFIX } from '../../wire/submitter.ts';
import { AgentKey } from './keys.ts';
import { sameSecret, seal } from './secrets.ts';

const derived = (from: string, what: string) =>
  Buffer.from(hkdfSync('sha256', Buffer.from(from, 'utf8'), Buffer.alloc(0), `reveille ${what}`, 32));

/** From a person's token to what their rights are worked out from; the token does not follow from it. In base64url. */
export const rightsOf = (token: string): string => derived(token, 'person-rights1').toString('base64url');

/** The key with which this person proves to chronosd that they ask about their alarms. */
export const alarmKeyOf = (rights: string): AgentKey => new AgentKey(derived(rights, 'alarms1').toString('hex'));

/** The submitter's token under which this person looks at their tasks. */
export const taskTokenOf = (rights: string): string =>
  `${SUBMITTER_PREFIX}${derived(rights, 'tasks1').toString('base64url')}`;

const [IV_BYTES, TAG_BYTES] = [12, 16];

/** Seals rights under a secret that is kept nowhere (AES-256-GCM). In base64url. */
export function sealRights(rights: string, secret: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', derived(secret, 'sealed-rights1'), iv);
  return Buffer.concat([iv, cipher.update(rights, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url');
}

/** The rights again; `undefined` under another secret, or when they were changed. */
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

/** A key, and whose alarms it is enrolled for. */
export type KeyHolder = { readonly owner: string; readonly publicKey: string };

const contentOf = (name: string, { owner, publicKey }: KeyHolder) => [VERSION, name, owner, publicKey].join('\n');

/**
 * Says that a key is a person's and not an agent's: what is set with it are that person's words. For the header
 * `x-chronos-person`, with every request under that key.
 *
 * @param secret the operator's token of chronosd
 */
export function personKeyMark(name: string, holder: KeyHolder, secret: string): string {
  const encoded = Buffer.from(name, 'utf8').toString('base64url');
  return [VERSION, encoded, seal(secret, contentOf(encoded, holder))].join('.');
}

/** Whose key it is; `undefined` when the mark is not ours, or is another key's. */
export function readPersonKeyMark(mark: string, holder: KeyHolder, secret: string): string | undefined {
  const [version, name = '', mac = '', ...rest] = mark.split('.');
  if (version !== VERSION || rest.length > 0) return undefined;
  if (!sameSecret(mac, seal(secret, contentOf(name, holder)))) return undefined;
  const decoded = Buffer.from(name, 'base64url');
  return decoded.length === 0 || decoded.length > NAME_MAX_BYTES ? undefined : decoded.toString('utf8');
}
