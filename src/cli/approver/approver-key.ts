/**
 * The key with which the user of this computer signs answers. It is stored outside of `REVEILLE_HOME`, which agents'
 * programs may read: in the system's keyring, or in a file that a passphrase may seal. `approver.json` names the place
 * and contains the public key.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { homedir, hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { AgentKey, generateKey } from '../../kit/identity/keys.ts';
import { readPrivateFile, replacePrivateFile, writePrivateFile } from '../../kit/identity/private-file.ts';
import { APPROVER_NAME_MAX, approverKeySchema } from '../../wire/approver.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import type { Settings } from '../../wire/settings.ts';
import { choiceFlag } from '../flags/flags.ts';
import { accountName } from '../home/home.ts';
import { type KeyStore, systemKeyStore } from './key-store.ts';
import { guardGuess } from './passphrase-guard.ts';
import { openSeed, sealedSchema, sealSeed } from './sealing.ts';

/** The variables of this folder and of backups. They come from the environment alone, and no started program gets them. */
export const APPROVER_VARIABLES = /^REVEILLE_(?:APPROVER|BACKUP)_/;

const FORMAT = 'reveille-approver/1';
const STORES = ['keyring', 'file'] as const;
/** Time limits of the system's keyring: without a user, and with one. */
const UNATTENDED_MS = 3000;
const ATTENDED_MS = 60_000;

const recordSchema = z
  .strictObject({
    format: z.literal(FORMAT),
    public_key: approverKeySchema,
    name: z.string().min(1).max(APPROVER_NAME_MAX),
    made_at: z.string(),
    seed: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
    sealed: sealedSchema.optional(),
    keyring: z.enum(['secret-service', 'keychain']).optional(),
  })
  .refine(({ seed, sealed, keyring }) => [seed, sealed, keyring].filter((one) => one !== undefined).length === 1);
type ApproverRecord = z.output<typeof recordSchema>;

export type ApproverLocation = { readonly folder: string; readonly file: string };

/** The facts about the key that need no passphrase. */
export type KnownApprover = {
  readonly publicKey: string;
  readonly name: string;
  readonly madeAt: string;
  readonly file: string;
  readonly kept: 'file' | 'sealed file' | 'secret-service' | 'keychain';
};

export type AskPassphrase = () => Promise<string>;

/** The location of the key of the user of this environment. */
export function approverLocation(
  environment: Settings,
  platform: NodeJS.Platform = process.platform,
): ApproverLocation {
  const home = environment.HOME || homedir();
  const usual =
    platform === 'darwin'
      ? join(home, 'Library', 'Application Support', 'reveille-approver')
      : join(environment.XDG_CONFIG_HOME || join(home, '.config'), 'reveille-approver');
  const folder = resolve(environment.REVEILLE_APPROVER_DIR || usual);
  return { folder, file: join(folder, 'approver.json') };
}

function storeAsked({ REVEILLE_APPROVER_STORE: given }: Settings): (typeof STORES)[number] | undefined {
  return choiceFlag('REVEILLE_APPROVER_STORE', given || undefined, STORES);
}

function read({ file }: ApproverLocation): ApproverRecord | undefined {
  const text = readPrivateFile(file);
  if (text === undefined) return undefined;
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch (cause) {
    const message = `${file} is damaged and was not changed; restore it from a backup, or move it away and enroll a new key`;
    throw new ReveilleError('invalid_request', message, { cause });
  }
}

const textOf = (record: ApproverRecord) => `${JSON.stringify(record, null, 2)}\n`;

function knownOf(
  { public_key, name, made_at, sealed, keyring }: ApproverRecord,
  { file }: ApproverLocation,
): KnownApprover {
  const kept = keyring ?? (sealed ? 'sealed file' : 'file');
  return { publicKey: public_key, name, madeAt: made_at, file, kept };
}

/** The user's key, if there is one. */
export function knownApprover(environment: Settings): KnownApprover | undefined {
  const place = approverLocation(environment);
  const record = read(place);
  return record && knownOf(record, place);
}

function ownName(): string {
  return `${accountName()}@${hostname()}`.slice(0, APPROVER_NAME_MAX);
}

/**
 * The user's key, created if missing. No question is asked. If the keyring does not answer in time, the file is used,
 * unless `REVEILLE_APPROVER_STORE` names the keyring.
 */
export async function loadOrMakeApprover(environment: Settings, now: number): Promise<KnownApprover> {
  const place = approverLocation(environment);
  const there = read(place);
  if (there) return knownOf(there, place);
  const asked = storeAsked(environment);
  const key = generateKey();
  const common = {
    format: FORMAT,
    public_key: key.publicKeyHex,
    name: ownName(),
    made_at: formatInstant(now),
  } as const;
  const store = asked === 'file' ? undefined : systemKeyStore(environment, asked === 'keyring');
  const isStored = store !== undefined && (await store.put(key.publicKeyHex, key.seedHex(), UNATTENDED_MS));
  if (asked === 'keyring' && !isStored)
    throw new ReveilleError(
      'unavailable',
      'REVEILLE_APPROVER_STORE is keyring, but this system has no keyring that answers; set it to file',
    );
  const record: ApproverRecord = isStored ? { ...common, keyring: store!.kind } : { ...common, seed: key.seedHex() };
  mkdirSync(place.folder, { recursive: true, mode: 0o700 });
  try {
    writePrivateFile(place.file, textOf(record));
  } catch (error) {
    // Another process was faster: its key is used.
    if (!(error instanceof ReveilleError && error.code === 'conflict')) throw error;
    if (isStored) await store!.remove(key.publicKeyHex, UNATTENDED_MS);
  }
  return knownOf(read(place)!, place);
}

function storeOf(environment: Settings, kind: KeyStore['kind'] | undefined): KeyStore | undefined {
  const store = kind === undefined ? undefined : systemKeyStore(environment, true);
  return store?.kind === kind ? store : undefined;
}

async function seedOf(environment: Settings, record: ApproverRecord, passphrase: AskPassphrase): Promise<string> {
  const { seed, sealed, keyring, public_key } = record;
  if (seed !== undefined) return seed;
  if (sealed !== undefined) return openSeed(sealed, public_key, await passphrase());
  const limitMs = process.stdin.isTTY ? ATTENDED_MS : UNATTENDED_MS;
  const kept = await storeOf(environment, keyring)?.get(public_key, limitMs);
  if (kept !== undefined) return kept;
  const message = `the ${keyring} of this system did not return the key ${public_key.slice(0, 16)}…; unlock it, and try again`;
  throw new ReveilleError('unavailable', message);
}

function keyOf(seedHex: string, { public_key }: ApproverRecord, { file }: ApproverLocation): AgentKey {
  const key = new AgentKey(seedHex);
  if (key.publicKeyHex === public_key) return key;
  throw new ReveilleError('invalid_request', `${file} names another public key than the stored key has`);
}

function mustRead(place: ApproverLocation): ApproverRecord {
  const record = read(place);
  if (record) return record;
  const message = `no approver's key is at ${place.file}; create and enroll one with: reveille approver enroll`;
  throw new ReveilleError('not_found', message);
}

/** The public facts of this computer's key. @throws ReveilleError `not_found` without a key */
export function requireApprover(environment: Settings): KnownApprover {
  const place = approverLocation(environment);
  return knownOf(mustRead(place), place);
}

/**
 * @throws ReveilleError `not_found` without a key, `forbidden` for a wrong passphrase, `unavailable` when the keyring
 *   does not return it
 */
export async function openApprover(environment: Settings, passphrase: AskPassphrase): Promise<AgentKey> {
  const place = approverLocation(environment);
  const record = mustRead(place);
  return keyOf(await seedOf(environment, record, passphrase), record, place);
}

/** Counts wrong passphrases of pages. */
const guessFile = ({ folder }: ApproverLocation) => join(folder, 'wrong-passphrases.json');

/**
 * As {@link openApprover}, with a passphrase from a page. Wrong ones lock the key for pages.
 *
 * @throws ReveilleError `forbidden` when a passphrase is needed and none was given; as `guardGuess`
 */
export async function openApproverWith(
  environment: Settings,
  passphrase: string | undefined,
  now: () => number,
): Promise<AgentKey> {
  const place = approverLocation(environment);
  const { sealed } = mustRead(place);
  if (sealed === undefined) return openApprover(environment, async () => '');
  if (passphrase === undefined || passphrase === '')
    throw new ReveilleError('forbidden', 'the key is sealed: its passphrase is needed');
  return guardGuess(guessFile(place), now, () => openApprover(environment, async () => passphrase));
}

/** Encrypts the key with a passphrase, in the file. The key may come from the keyring, or have another passphrase. */
export async function sealApprover(
  environment: Settings,
  { old, fresh }: { old: AskPassphrase; fresh: AskPassphrase },
): Promise<KnownApprover> {
  const place = approverLocation(environment);
  const record = mustRead(place);
  const key = keyOf(await seedOf(environment, record, old), record, place);
  const { seed: _, keyring, ...kept } = record;
  const sealed = { ...kept, sealed: await sealSeed(key.seedHex(), key.publicKeyHex, await fresh()) };
  replacePrivateFile(place.file, textOf(sealed));
  // A new passphrase starts without wrong guesses.
  rmSync(guessFile(place), { force: true });
  await storeOf(environment, keyring)?.remove(key.publicKeyHex, ATTENDED_MS);
  return knownOf(sealed, place);
}

/** Removes the passphrase: into the keyring when `REVEILLE_APPROVER_STORE` says so, else into the file alone. */
export async function unsealApprover(environment: Settings, passphrase: AskPassphrase): Promise<KnownApprover> {
  const place = approverLocation(environment);
  const record = mustRead(place);
  if (record.sealed === undefined) throw new ReveilleError('conflict', 'the key is not sealed');
  const key = keyOf(await seedOf(environment, record, passphrase), record, place);
  const { sealed: _, ...kept } = record;
  const store = storeAsked(environment) === 'keyring' ? systemKeyStore(environment, true) : undefined;
  const isStored = store !== undefined && (await store.put(key.publicKeyHex, key.seedHex(), ATTENDED_MS));
  const open: ApproverRecord = isStored ? { ...kept, keyring: store!.kind } : { ...kept, seed: key.seedHex() };
  replacePrivateFile(place.file, textOf(open));
  return knownOf(open, place);
}
