/** A key encrypted with a passphrase: scrypt (RFC 7914) derives a key, AES-256-GCM encrypts the seed. Parameters are stored beside it. */
import { createCipheriv, createDecipheriv, randomBytes, scrypt } from 'node:crypto';
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';

/** Takes about 128 MiB and a third of a second: the cost of one guess for an attacker with the file. */
export const COST = { N: 2 ** 17, r: 8, p: 1 } as const;
/** Limit of the memory of parameters in a file, in bytes: a file must not exhaust the process. */
const MEMORY_MAX = 1024 * 1024 * 1024;
export const PASSPHRASE_MIN = 8;

const hex = (bytes: number) => z.string().regex(new RegExp(`^[0-9a-f]{${2 * bytes}}$`));
const isPowerOfTwo = (n: number) => Number.isInteger(Math.log2(n));

const KDF = {
  kdf: z.literal('scrypt'),
  N: z
    .int()
    .min(2 ** 14)
    .max(2 ** 20)
    .refine(isPowerOfTwo),
  r: z.int().min(1).max(32),
  p: z.int().min(1).max(16),
  salt: hex(16),
};
const isAffordable = ({ N, r }: { N: number; r: number }) => 128 * N * r <= MEMORY_MAX;

export const sealedSchema = z
  .strictObject({
    ...KDF,
    cipher: z.literal('aes-256-gcm'),
    nonce: hex(12),
    text: hex(32),
    tag: hex(16),
  })
  .refine(isAffordable);
export type Sealed = z.output<typeof sealedSchema>;

/** @throws ReveilleError `invalid_request` for a passphrase that is too short */
export function checkPassphrase(passphrase: string): void {
  if ([...passphrase].length < PASSPHRASE_MIN)
    throw new ReveilleError('invalid_request', `the passphrase must have at least ${PASSPHRASE_MIN} characters`);
}

/** Parameters beside an encrypted text, for {@link derive}. */
export const kdfSchema = z.strictObject(KDF).refine(isAffordable);

/** The key derived from a passphrase, 32 bytes. */
export function derive(passphrase: string, { N, r, p, salt }: Pick<Sealed, 'N' | 'r' | 'p' | 'salt'>): Promise<Buffer> {
  // Normalised, so that every keyboard gives the same passphrase.
  const secret = passphrase.normalize('NFKC');
  return new Promise((resolve, reject) => {
    scrypt(secret, Buffer.from(salt, 'hex'), 32, { N, r, p, maxmem: 2 * MEMORY_MAX }, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}

/** The associated data: an encrypted seed of one key's file does not open in another's. */
const aboutOf = (publicKey: string, { N, r, p }: Pick<Sealed, 'N' | 'r' | 'p'>) =>
  Buffer.from(`reveille-approver/1 ${publicKey} scrypt ${N} ${r} ${p}`);

/** @throws ReveilleError `invalid_request` for a passphrase that is too short */
export async function sealSeed(seedHex: string, publicKey: string, passphrase: string): Promise<Sealed> {
  checkPassphrase(passphrase);
  const salt = randomBytes(16).toString('hex');
  const nonce = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', await derive(passphrase, { ...COST, salt }), nonce);
  cipher.setAAD(aboutOf(publicKey, COST));
  const text = Buffer.concat([cipher.update(Buffer.from(seedHex, 'hex')), cipher.final()]).toString('hex');
  return {
    kdf: 'scrypt',
    ...COST,
    salt,
    cipher: 'aes-256-gcm',
    nonce: nonce.toString('hex'),
    text,
    tag: cipher.getAuthTag().toString('hex'),
  };
}

/** @returns the seed, 64 hex digits @throws ReveilleError `forbidden` for a wrong passphrase */
export async function openSeed(sealed: Sealed, publicKey: string, passphrase: string): Promise<string> {
  const key = await derive(passphrase, sealed);
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(sealed.nonce, 'hex'));
  decipher.setAAD(aboutOf(publicKey, sealed)).setAuthTag(Buffer.from(sealed.tag, 'hex'));
  try {
    return Buffer.concat([decipher.update(Buffer.from(sealed.text, 'hex')), decipher.final()]).toString('hex');
  } catch (cause) {
    throw new ReveilleError('forbidden', 'the passphrase is wrong', { cause });
  }
}
