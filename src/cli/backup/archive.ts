/**
 * What is inside a backup: one record of what it is, then each part with its content and, behind it, its size and
 * SHA-256, then a record that says that this was all. Written and read as a stream.
 *
 * A frame is a letter (`J` a record in JSON, `D` a piece of content), the length of what follows in four bytes, and
 * that.
 */
import { createHash, type Hash } from 'node:crypto';
import { z } from 'zod';
import { ReveilleError } from '../../wire/errors.ts';
import { EntryRules, type PartHead } from './entry.ts';

type Bytes = AsyncIterable<Buffer>;

/** More than any record has; a piece of content is at most as long. In bytes. */
const FRAME_MAX = 1024 * 1024;

export const aboutSchema = z.object({
  reveille: z.string(),
  made_at: z.string(),
  /**
   * `instant`: no database changed while the copies were fixed, so that together they are what there was at one
   * moment. `ordered`: they are some milliseconds apart, whoever hands work over before whoever takes it.
   */
  cut: z.enum(['instant', 'ordered']),
  /** The schema version of each database, by its path in the home. */
  schemas: z.record(z.string(), z.int()),
  alarms: z.enum(['file', 'postgresql']),
});
/** What a backup says about itself before its first part. */
export type About = z.output<typeof aboutSchema>;

/** Something to be written, with its content if it is a file. */
export type Part = { readonly head: PartHead; readonly content?: Bytes };

const sumSchema = z.strictObject({ size: z.int(), sha256: z.string() });
const endSchema = z.strictObject({ parts: z.int(), bytes: z.int(), sha256: z.string() });
/** How many parts there were, the bytes of their contents together, and a SHA-256 over all of their sums. */
export type End = z.output<typeof endSchema>;

function frame(kind: 'J' | 'D', bytes: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind, 'latin1');
  head.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([head, bytes]);
}

const record = (value: object) => frame('J', Buffer.from(JSON.stringify(value)));

/** Takes the sums of the parts as they go by. */
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

/** @param onEnd hears what was written, once all of it was */
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

/** Reads exactly as many bytes as are asked for. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #held: Buffer = Buffer.alloc(0);

  constructor(source: Bytes) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** @returns `undefined` when there are not so many any more */
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

/** Hears of each part in turn; `write` is called for a file's content, and `close` when all of it has come. */
export type Visitor = {
  about(about: About): void;
  part(head: PartHead): Promise<{ write(bytes: Buffer): Promise<void>; close(): Promise<void> } | undefined>;
  /** A link leads out of the home. Without this method, the archive is refused. */
  skipLink?(path: string, why: string): void;
  summed?(head: PartHead, sum: { size: number; sha256: string }): void;
};

const wrong = (name: string, what: string) =>
  new ReveilleError('invalid_request', `${name} is damaged (${what}); nothing was restored from it: use another copy`);

/**
 * Reads an archive to its end and compares every sum.
 *
 * @param name names the file in messages
 * @throws ReveilleError `invalid_request` when something is missing or is not what it was
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
    if (!parsed.success) throw wrong(name, `a record that is none: ${parsed.error.issues[0]?.message}`);
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
        if (counted.sha256 !== head.sha256 || counted.parts !== head.parts) throw wrong(name, 'its parts are not all');
        // Also what unpacks and unseals has to have come to its end.
        if ((await reader.take(1)) !== undefined) throw wrong(name, 'it goes on behind its end');
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
      if (found.sha256 !== sum.sha256 || found.size !== sum.size) throw wrong(name, `${head.path} is not what it was`);
      visitor.summed?.(head, sum);
    }
  } finally {
    await reader.close();
  }
}
