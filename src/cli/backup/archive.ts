/**
 * The content of a backup: one header record, then each part with its content, size and SHA-256, then an end record. It
 * is written and read as a stream.
 *
 * A frame is a letter (`J` a JSON record, `D` a piece of content), the length of the data in four bytes, and the data.
 */
import { createHash, type Hash } from 'node:crypto';
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { EntryRules, type PartHead } from './entry.ts';

type Bytes = AsyncIterable<Buffer>;

/** Limit of a record and of a piece of content, in bytes. */
const FRAME_MAX = 1024 * 1024;

export const aboutSchema = z.object({
  reveille: z.string(),
  made_at: z.string(),
  /**
   * `instant`: no database changed while the copies were fixed, so that they show one instant. `ordered`: they are some
   * milliseconds apart, senders before receivers.
   */
  cut: z.enum(['instant', 'ordered']),
  /** The schema version of each database, by its path in the home. */
  schemas: z.record(z.string(), z.int()),
  alarms: z.enum(['file', 'postgresql']),
});
/** The header record. */
export type About = z.output<typeof aboutSchema>;

/** An entry to write, with its content if it is a file. */
export type Part = { readonly head: PartHead; readonly content?: Bytes };

const sumSchema = z.strictObject({ size: z.int(), sha256: z.string() });
const endSchema = z.strictObject({ parts: z.int(), bytes: z.int(), sha256: z.string() });
/** The number of parts, the total size of their contents, and a SHA-256 over all checksums. */
export type End = z.output<typeof endSchema>;

function frame(kind: 'J' | 'D', bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind, 'latin1');
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

const record = (value: object) => frame('J', Buffer.from(JSON.stringify(value)));

/** Collects the checksums of the parts. */
class Totals {
  readonly #all = createHash('sha256');
  #parts = 0;
  #bytes = 0;

  add({ path }: PartHead, size: number, hash: Hash): { size: number; sha256: string } {
    const sha256 = hash.digest('hex');
    this.#parts++;
    this.#bytes += size;
    this.#all.update(`${path}\0${sha256}\n`);
    return { size, sha256 };
  }

  end(): End {
    return { parts: this.#parts, bytes: this.#bytes, sha256: this.#all.digest('hex') };
  }
}

/** @param onEnd receives the totals after the last part */
export async function* writeArchive(about: About, parts: AsyncIterable<Part>, onEnd: (end: End) => void): Bytes {
  yield record(about);
  const totals = new Totals();
  for await (const { head, content } of parts) {
    yield record(head);
    if (content === undefined) continue;
    const hash = createHash('sha256');
    let size = 0;
    for await (const bytes of content) {
      if (bytes.length === 0) continue;
      hash.update(bytes);
      size += bytes.length;
      yield frame('D', bytes);
    }
    yield record(totals.add(head, size, hash));
  }
  const end = totals.end();
  yield record(end);
  onEnd(end);
}

/** Reads the requested number of bytes. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: Bytes) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** @returns `undefined` when fewer bytes remain */
  async take(length: number): Promise<Buffer | undefined> {
    while (this.#held.length < length) {
      const { value, done } = await this.#source.next();
      if (done) return undefined;
      this.#held = this.#held.length === 0 ? value : Buffer.concat([this.#held, value]);
    }
    const taken = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(length);
    return taken;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}

/** Receives each part in turn; `write` is called for a file's content, and `close` at its end. */
export type Visitor = {
  about(about: About): void;
  part(head: PartHead): Promise<{ write(bytes: Buffer): Promise<void>; close(): Promise<void> } | undefined>;
  /** A link points outside the home. Without this method, the archive is rejected. */
  skipLink?(path: string, why: string): void;
  summed?(head: PartHead, sum: { size: number; sha256: string }): void;
};

const wrong = (name: string, what: string) =>
  new ReveilleError('invalid_request', `${name} is damaged (${what}); nothing was restored from it: use another copy`);

/**
 * Reads an archive to its end and compares every checksum.
 *
 * @param name names the file in messages
 * @throws ReveilleError `invalid_request` when a part is missing or differs
 */
export async function readArchive(source: Bytes, name: string, visitor: Visitor): Promise<End> {
  const reader = new ByteReader(source);
  const next = async (): Promise<{ kind: string; bytes: Buffer }> => {
    const head = await reader.take(5);
    const length = head?.readUInt32BE(1) ?? 0;
    const bytes = head && length <= FRAME_MAX ? await reader.take(length) : undefined;
    if (!head || !bytes) throw wrong(name, 'it ends too early');
    return { kind: head.toString('latin1', 0, 1), bytes };
  };
  const parsedRecord = (bytes: Buffer): unknown => {
    try {
      return JSON.parse(bytes.toString('utf8'));
    } catch {
      throw wrong(name, 'a record that is not JSON');
    }
  };
  const read = <T extends z.ZodType>({ kind, bytes }: { kind: string; bytes: Buffer }, schema: T): z.output<T> => {
    if (kind !== 'J') throw wrong(name, 'content without a name');
    const parsed = schema.safeParse(parsedRecord(bytes));
    if (!parsed.success) throw wrong(name, `an invalid record: ${parsed.error.issues[0]?.message}`);
    return parsed.data;
  };
  try {
    visitor.about(read(await next(), aboutSchema));
    const totals = new Totals();
    const rules = new EntryRules(name, visitor.skipLink?.bind(visitor));
    for (;;) {
      const fields = read(await next(), z.record(z.string(), z.unknown()));
      if (Object.hasOwn(fields, 'parts')) {
        const head = endSchema.safeParse(fields).data;
        if (head === undefined) throw wrong(name, 'its last record is malformed');
        const counted = totals.end();
        if (counted.sha256 !== head.sha256 || counted.parts !== head.parts) throw wrong(name, 'parts are missing');
        // Decompression and decryption must have ended as well.
        if ((await reader.take(1)) !== undefined) throw wrong(name, 'it has data after its end');
        return head;
      }
      const head = rules.take(fields);
      if (head === undefined) continue;
      const sink = await visitor.part(head);
      if (head.kind !== 'file') continue;
      const hash = createHash('sha256');
      let size = 0;
      let piece = await next();
      for (; piece.kind === 'D'; piece = await next()) {
        hash.update(piece.bytes);
        size += piece.bytes.length;
        await sink?.write(piece.bytes);
      }
      await sink?.close();
      const sum = read(piece, sumSchema);
      const found = totals.add(head, size, hash);
      if (found.sha256 !== sum.sha256 || found.size !== sum.size)
        throw wrong(name, `the checksum of ${head.path} differs`);
      visitor.summed?.(head, sum);
    }
  } finally {
    await reader.close();
  }
}
