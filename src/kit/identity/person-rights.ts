/**
 * The rights of persons. Secrets are derived from a person's token, besides access to the public listener: a key for
 * their alarms, and a token for their tasks (docs/internals/decisions/0019-people-and-the-console.md). The router stores
 * a digest of the token, from which none of them can be derived. The rights of an open session are sealed with the
 * session's cookie. A key and a request can be proven to be a person's.
 */
import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto';
import type { SetBy } from '../../wire/set-by.ts';
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

/** A label's maximum length, with four bytes per character. */
const NAME_MAX_BYTES = 400;

const encodedName = (name: string) => Buffer.from(name, 'utf8').toString('base64url');

/** The name in a proof; `undefined` if it is empty or too long. */
function decodedName(encoded: string): string | undefined {
  const bytes = Buffer.from(encoded, 'base64url');
  return bytes.length === 0 || bytes.length > NAME_MAX_BYTES ? undefined : bytes.toString('utf8');
}

const KEY_MARK = 'person-key1';

/** A key, and the owner of the alarms that it is enrolled for. */
export type KeyHolder = { readonly owner: string; readonly publicKey: string };

const markSeal = (secret: string, name: string, { owner, publicKey }: KeyHolder) =>
  seal(secret, [KEY_MARK, name, owner, publicKey].join('\n'));

/**
 * Marks a key as a person's, not an agent's: alarms set with it have that person as author. For the header
 * `x-chronos-person`, with every request under that key.
 *
 * @param secret the operator's token of chronosd
 */
export function personKeyMark(name: string, holder: KeyHolder, secret: string): string {
  const encoded = encodedName(name);
  return [KEY_MARK, encoded, markSeal(secret, encoded, holder)].join('.');
}

/** Whether a proof is the mark of a key, and not the proof of one request. */
export const isKeyMark = (proof: string): boolean => proof.startsWith(`${KEY_MARK}.`);

/** The name of the key's person; `undefined` if the mark is invalid or belongs to another key. */
export function readPersonKeyMark(mark: string, holder: KeyHolder, secret: string): string | undefined {
  const [version, name = '', mac = '', ...rest] = mark.split('.');
  if (version !== KEY_MARK || rest.length > 0) return undefined;
  return sameSecret(mac, markSeal(secret, name, holder)) ? decodedName(name) : undefined;
}

const PROOFS = { person: 'person1', client: 'client1' } as const;
const PROOF_MAX_AGE_MS = 5 * 60_000;

export type Signed = { method: string; path: string; body: string | Uint8Array };

const proofSeal = (secret: string, version: string, name: string, at: string, { method, path, body }: Signed) =>
  seal(secret, [version, name, at, method, path, hash('sha256', body)].join('\n'));

function authorProof(version: string, name: string, signed: Signed, { secret, now }: { secret: string; now: number }) {
  const encoded = encodedName(name);
  return [version, encoded, now, proofSeal(secret, version, encoded, String(now), signed)].join('.');
}

/**
 * Proves that a person makes a request, not an agent: a MAC with the operator's token (`CHRONOS_ADMIN_TOKEN`), which
 * agents and their programs do not have. The token is not sent. The MAC covers method, path and body, so it is invalid
 * for any other request, and it is valid for a few minutes.
 *
 * @param name the person's name, 1 to 100 characters
 * @param now epoch ms
 * @returns the value of the header `x-chronos-person`
 */
export const personProof = (name: string, signed: Signed, key: { secret: string; now: number }): string =>
  authorProof(PROOFS.person, name, signed, key);

/**
 * The same proof of a program that has an access token of the user.
 *
 * @param client.ownsConversation the prover answers for it that a named conversation is the program's own
 */
export const clientProof = (
  { client_id, name, ownsConversation }: ProvedClient,
  signed: Signed,
  key: { secret: string; now: number },
): string =>
  authorProof(PROOFS.client, JSON.stringify([client_id, name, ...(ownsConversation ? [true] : [])]), signed, key);

export type ProvedClient = Omit<Extract<SetBy, { kind: 'client' }>, 'kind'> & { readonly ownsConversation?: boolean };

/** Whether a valid proof says that a named conversation is the program's own. */
export function provesConversation(proof: string): boolean {
  const [version = '', encoded = ''] = proof.split('.');
  if (version !== PROOFS.client) return false;
  return (JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8')) as unknown[])[2] === true;
}

/**
 * The person or program that made the request; `undefined` if the proof is invalid, of another request, or too old. Its
 * members are not checked otherwise.
 */
export function readAuthorProof(
  proof: string,
  signed: Signed,
  { secret, now }: { secret: string; now: number },
): { kind: SetBy['kind']; name?: unknown; client_id?: unknown } | undefined {
  const [version = '', encoded = '', at = '', mac = '', ...rest] = proof.split('.');
  const isKnown = version === PROOFS.person || version === PROOFS.client;
  if (!isKnown || rest.length > 0 || !/^\d{1,15}$/.test(at)) return undefined;
  if (!sameSecret(mac, proofSeal(secret, version, encoded, at, signed))) return undefined;
  if (Math.abs(now - Number(at)) > PROOF_MAX_AGE_MS) return undefined;
  if (version === PROOFS.person) return { kind: 'person', name: decodedName(encoded) };
  // The MAC is valid, so this version wrote it.
  const [client_id, name] = JSON.parse(Buffer.from(encoded, 'base64url').toString('utf8')) as unknown[];
  return { kind: 'client', client_id, ...(typeof name === 'string' && { name }) };
}
