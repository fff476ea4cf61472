/**
 * A stream of bytes encrypted with a passphrase. scrypt (RFC 7914) derives the key. The text is cut into chunks, each
 * encrypted with AES-256-GCM. The nonce of a chunk is its number and whether it is the last one (the STREAM construction
 * of Hoang, Reyhanitabar, Rogaway and Vizár, 2015). So truncation and reordering are detected, with constant memory.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { COST, checkPassphrase, derive, kdfSchema } from '../approver/sealing.ts';

const MAGIC = 'reveille-backup/';
const FORMAT = 1;
/** Bytes of text in a chunk; a tag of 16 bytes follows each. */
const CHUNK = 64 * 1024;
const TAG = 16;
const FIRST_LINE_MAX = 1024;

const headSchema = z.strictObject({ key: kdfSchema, check: z.string().regex(/^[0-9a-f]{64}$/) });

type Bytes = AsyncIterable<Buffer>;

/** Eleven bytes count the chunks, the twelfth marks the last one. */
function nonceOf(index: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.writeUIntBE(index, 5, 6);
  nonce[11] = isLast ? 1 : 0;
  return nonce;
}

/** One key distinguishes a wrong passphrase from a damaged file, the other one encrypts. */
const purposeOf = (key: Buffer, purpose: 'check' | 'chunks') =>
  createHmac('sha256', key).update(`${MAGIC}${FORMAT} ${purpose}`).digest();

/** Cuts the input into pieces of `size` bytes; the last one is shorter and may be empty. */
async function* pieces(source: Bytes, size: number): AsyncGenerator<{ piece: Buffer; isLast: boolean }> {
  let held: Buffer[] = [];
  let length = 0;
  for await (const bytes of source) {
    held.push(bytes);
    length += bytes.length;
    // A full piece may still be the last one.
    if (length <= size) continue;
    let rest = Buffer.concat(held);
    while (rest.length > size) {
      yield { piece: rest.subarray(0, size), isLast: false };
      rest = rest.subarray(size);
    }
    held = [rest];
    length = rest.length;
  }
  yield { piece: Buffer.concat(held), isLast: true };
}

/**
 * @returns the key, to read the stream again, and the encrypting stream
 * @throws ReveilleError `invalid_request` for a passphrase that is too short
 */
export async function sealing(passphrase: string): Promise<{ key: Buffer; seal: (text: Bytes) => Bytes }> {
  checkPassphrase(passphrase);
  const kdf = { kdf: 'scrypt', ...COST, salt: randomBytes(16).toString('hex') } as const;
  const key = await derive(passphrase, kdf);
  const head = Buffer.from(
    `${MAGIC}${FORMAT} ${JSON.stringify({ key: kdf, check: purposeOf(key, 'check').toString('hex') })}\n`,
  );
  const chunkKey = purposeOf(key, 'chunks');
  async function* seal(text: Bytes): Bytes {
    yield head;
    let index = 0;
    for await (const { piece, isLast } of pieces(text, CHUNK)) {
      const cipher = createCipheriv('aes-256-gcm', chunkKey, nonceOf(index++, isLast)).setAAD(head);
      yield Buffer.concat([cipher.update(piece), cipher.final(), cipher.getAuthTag()]);
    }
  }
  return { key, seal };
}

const notOurs = (name: string) =>
  new ReveilleError('invalid_request', `${name} is not a backup of Reveille; name a file of "reveille backup"`);

const damaged = (name: string, where: string) =>
  new ReveilleError(
    'invalid_request',
    `${name} is damaged or truncated (${where}); nothing was restored from it: use another copy`,
  );

function readHead(line: string, name: string): z.output<typeof headSchema> {
  const version = new RegExp(`^${MAGIC}(\\d+) `).exec(line);
  if (!version) throw notOurs(name);
  if (Number(version[1]) > FORMAT)
    throw new ReveilleError(
      'conflict',
      `${name} was written by a newer Reveille (format ${version[1]}, this one reads ${FORMAT}); use that version`,
    );
  try {
    return headSchema.parse(JSON.parse(line.slice(version[0].length)));
  } catch {
    throw damaged(name, 'its first line');
  }
}

/** The first line of a stream with its line end, and the rest. */
async function firstLine(source: Bytes, name: string): Promise<{ head: Buffer; rest: Bytes }> {
  const all = source[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  while (!held.includes(10) && held.length < FIRST_LINE_MAX) {
    const { value, done } = await all.next();
    if (done) break;
    held = Buffer.concat([held, value]);
  }
  const end = held.subarray(0, FIRST_LINE_MAX).indexOf(10) + 1;
  if (end === 0) {
    await all.return?.();
    throw held.subarray(0, MAGIC.length).toString('latin1') === MAGIC ? damaged(name, 'its first line') : notOurs(name);
  }
  async function* rest(): Bytes {
    yield held.subarray(end);
    yield* { [Symbol.asyncIterator]: () => all };
  }
  return { head: held.subarray(0, end), rest: rest() };
}

/**
 * Decrypts a stream. Each chunk is verified before it is returned.
 *
 * @param name names the file in messages
 * @param secret returns the passphrase, or the key if known
 * @throws ReveilleError `forbidden` for a wrong passphrase, `conflict` for a newer format, `invalid_request` for a
 *   damaged, truncated or foreign file
 */
export async function* unseal(source: Bytes, name: string, secret: Buffer | (() => Promise<string>)): Bytes {
  const { head, rest } = await firstLine(source, name);
  const { key: kdf, check } = readHead(head.toString('utf8'), name);
  const key = Buffer.isBuffer(secret) ? secret : await derive(await secret(), kdf);
  if (!timingSafeEqual(purposeOf(key, 'check'), Buffer.from(check, 'hex')))
    throw new ReveilleError('forbidden', `the passphrase is not the one that ${name} was sealed with; try another`);
  const chunkKey = purposeOf(key, 'chunks');
  let index = 0;
  for await (const { piece, isLast } of pieces(rest, CHUNK + TAG)) {
    const where = `chunk ${index + 1}`;
    if (piece.length < TAG) throw damaged(name, where);
    const decipher = createDecipheriv('aes-256-gcm', chunkKey, nonceOf(index++, isLast)).setAAD(head);
    decipher.setAuthTag(piece.subarray(-TAG));
    let text: Buffer;
    try {
      text = Buffer.concat([decipher.update(piece.subarray(0, -TAG)), decipher.final()]);
    } catch {
      throw damaged(name, where);
    }
    yield text;
  }
}
