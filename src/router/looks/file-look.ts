/**
 * A look at a file or folder: what was created, changed and deleted since the last one. It reads nothing outside what
 * the agent may read, follows no link inside a folder, and reports no content.
 */
import { createHash } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { LOOK_EVENTS_MAX, type LookAnswer, SEEN_MAX_BYTES } from '../../wire/look.ts';
import { formatInstant } from '../../wire/rfc3339.ts';
import { utf8Bytes } from '../../wire/text.ts';
import { digestOf, NotAllowed, Undecided } from '../checks/finding.ts';
import { ENTRIES_MAX, type Opened, openReadable, readablePath, unreadable } from '../checks/path-check.ts';

/** Entries of a folder that are shown one by one. With more, one event says that the folder has changed. */
export const ENTRIES_SHOWN = 1000;
/** Entries that are read at the same time. */
const AT_ONCE = 64;
/** How much of one file, and of all files of a look, is read for digests. Longer files have none. */
const FILE_BYTES = 16 * 1024 * 1024;
const LOOK_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
/** Clocks of file systems are coarse: a file as young as this may change again and look the same. */
const YOUNG_MS = 2000;

/** Names of what is no entry of the folder: the path itself, and the entries of a folder that has too many. */
const ITSELF = '';
const CROWD = '/';

type Kind = 'file' | 'folder' | 'link' | 'other';

/** What is known of an entry: `key` changes with the entry, and `content` is kept while it is young. */
type Known = { key: string; content?: string };
type Found = Known & { kind: Kind; size: number; modifiedAt: number; isYoung: boolean; stat: BigIntStats };

type Seen = {
  /** Of the path that was looked at: another path begins anew. */
  of: string;
  /** Counts the events, so that ids differ where the same change happens again. */
  next: number;
  entries: Map<string, Known>;
};

type Change = { name: string; change: 'created' | 'changed' | 'deleted'; known: Known | undefined; found?: Found };

/**
 * @param seen what the last look had shown; without it, there are no events
 * @throws Undecided when it cannot be read, NotAllowed when the agent may not read it
 */
export async function lookAtFile(
  path: string,
  { folder, isReadable, now }: { folder: string | undefined; isReadable: (real: string) => boolean; now: number },
  seen: string | undefined,
): Promise<LookAnswer> {
  const { asked, real } = await readablePath(path, folder, isReadable);
  if (real === undefined) {
    // A file may be created later; a missing folder is most likely misspelled.
    if (seen === undefined && path.endsWith('/'))
      throw new NotAllowed(`the folder ${asked} does not exist; create it, or name another path`);
    return compared(asked, undefined, now, seen);
  }
  const opened = await openReadable(real, isReadable);
  try {
    const answer = await compared(asked, new Reader(opened, isReadable), now, seen);
    await requireSame(asked, real, opened);
    return answer;
  } finally {
    await opened.file.close();
  }
}

/** @param reader of what is there; `undefined` where there is nothing */
async function compared(
  asked: string,
  reader: Reader | undefined,
  now: number,
  seen: string | undefined,
): Promise<LookAnswer> {
  const of = shortDigest(asked);
  const read = seen === undefined ? undefined : decodeSeen(seen);
  const before = read?.of === of ? read : undefined;
  const found = reader ? await reader.entries(now) : new Map<string, Found>();
  const changes = before ? await changesSince(before.entries, found, reader) : [];
  const shown = changes.slice(0, LOOK_EVENTS_MAX);
  // A name that is not reported yet keeps what was known of it.
  const later = new Set(changes.slice(LOOK_EVENTS_MAX).map(({ name }) => name));
  const entries = new Map<string, Known>();
  for (const [name, one] of before?.entries ?? []) if (later.has(name)) entries.set(name, one);
  for (const [name, one] of found) if (!later.has(name)) entries.set(name, await remembered(name, one, reader!));
  const first = before?.next ?? now;
  const events = await Promise.all(
    shown.map(async (one, index) => ({
      id: `${first + index}-${shortDigest(JSON.stringify([one.name, one.change, one.known?.key]))}`,
      data: JSON.stringify(await dataOf(one, asked, reader)),
    })),
  );
  const after = { of, next: first + events.length, entries };
  return { events, seen: encodeSeen(after), ...(later.size > 0 && { more: true }) };
}

/** What is at a path; `undefined` when there is nothing any more. */
async function foundAt(path: string, now: number): Promise<Found | undefined> {
  const stat = await lstat(path, { bigint: true }).catch((thrown: NodeJS.ErrnoException) =>
    thrown.code === 'ENOENT' ? undefined : unreadable(thrown),
  );
  return stat && foundBy(stat, now);
}

function foundBy(stat: BigIntStats, now: number): Found {
  const kind = kindOf(stat);
  const modifiedAt = Number(stat.mtimeNs / 1_000_000n);
  // The time of a folder changes with its entries, which are looked at by themselves or not at all.
  const key = kind === 'folder' ? `${kind} ${stat.ino}` : `${kind} ${stat.ino} ${stat.size} ${stat.mtimeNs}`;
  const isYoung = kind === 'file' && modifiedAt > now - YOUNG_MS;
  return { key: shortDigest(key), kind, size: Number(stat.size), modifiedAt, isYoung, stat };
}

function kindOf(stat: BigIntStats): Kind {
  if (stat.isFile()) return 'file';
  if (stat.isDirectory()) return 'folder';
  return stat.isSymbolicLink() ? 'link' : 'other';
}

/** The path must be what it was at the beginning, or something else was read. */
async function requireSame(asked: string, real: string, { file }: Opened): Promise<void> {
  const before = await file.stat({ bigint: true });
  const now = await lstat(real, { bigint: true }).catch(() => undefined);
  const again = await realpath(asked).catch(() => undefined);
  if (again !== real || now?.ino !== before.ino || now.dev !== before.dev)
    throw new Undecided('the path was replaced while it was read');
}

async function changesSince(
  before: ReadonlyMap<string, Known>,
  found: ReadonlyMap<string, Found>,
  reader: Reader | undefined,
): Promise<Change[]> {
  const isCrowd = before.has(CROWD) || found.has(CROWD);
  const changes: Change[] = [];
  for (const name of new Set([...before.keys(), ...found.keys()])) {
    // The entries of a crowd are one.
    if (isCrowd && name !== ITSELF && name !== CROWD) continue;
    const known = before.get(name);
    const one = found.get(name);
    if (name === CROWD) {
      if (known?.key !== one?.key) changes.push({ name, change: 'changed', known: one, ...(one && { found: one }) });
    } else if (one === undefined) changes.push({ name, change: 'deleted', known });
    else if (known === undefined) changes.push({ name, change: 'created', known: one, found: one });
    else if (known.key !== one.key || (await hasOtherContent(known, one, name, reader!)))
      changes.push({ name, change: 'changed', known: one, found: one });
  }
  // Deletions first: what is remembered of the others never grows meanwhile.
  return changes.sort((one, other) => Number(one.change !== 'deleted') - Number(other.change !== 'deleted'));
}

/** A file that was young at the last look may have changed since without looking different. */
async function hasOtherContent(known: Known, found: Found, name: string, reader: Reader): Promise<boolean> {
  if (known.content === undefined) return false;
  const digest = await reader.digestOf(name, found);
  return digest !== undefined && digest.slice(0, known.content.length) !== known.content;
}

async function remembered(name: string, found: Found, reader: Reader): Promise<Known> {
  const digest = found.isYoung ? await reader.digestOf(name, found) : undefined;
  return { key: found.key, ...(digest !== undefined && { content: digest.slice(0, 16) }) };
}

async function dataOf({ name, change, found }: Change, asked: string, reader: Reader | undefined) {
  if (name === CROWD)
    return {
      ...{ change, path: asked, entries: found?.size ?? null },
      note: `the folder has or had more than ${ENTRIES_SHOWN} entries, so what has changed in it is not shown one by one`,
    };
  const data = { change, path: asked, ...(name !== ITSELF && { name: name.toWellFormed() }) };
  if (found === undefined) return data;
  const { kind, size, modifiedAt } = found;
  const digest = kind === 'file' ? await reader!.digestOf(name, found) : undefined;
  return {
    ...{ ...data, kind },
    ...(kind === 'file' && { size }),
    modified_at: formatInstant(modifiedAt),
    ...(digest !== undefined && { sha256: digest }),
  };
}

/** Reads what was opened and, for a folder, its entries. A file is read once in a look. */
class Reader {
  readonly #opened: Opened;
  readonly #isReadable: (real: string) => boolean;
  #left = LOOK_BYTES;
  readonly #digests = new Map<string, Promise<string | undefined>>();

  /** @param isReadable as in {@link readablePath}: a folder may contain what is hidden from the agent */
  constructor(opened: Opened, isReadable: (real: string) => boolean) {
    this.#opened = opened;
    this.#isReadable = isReadable;
  }

  /** The path itself and, for a folder, its entries. */
  async entries(now: number): Promise<Map<string, Found>> {
    const { file, handle } = this.#opened;
    const itself = foundBy(await file.stat({ bigint: true }), now);
    const found = new Map<string, Found>([[ITSELF, itself]]);
    if (itself.kind !== 'folder') return found;
    const names = (await readdir(handle).catch(unreadable)).sort();
    if (names.length > ENTRIES_MAX) throw new Undecided(`the folder has more than ${ENTRIES_MAX} entries`);
    for (let from = 0; from < names.length; from += AT_ONCE) {
      const some = names.slice(from, from + AT_ONCE);
      const stats = await Promise.all(some.map((name) => foundAt(join(handle, name), now)));
      for (const [index, name] of some.entries()) if (stats[index]) found.set(name, stats[index]);
    }
    if (found.size - 1 <= ENTRIES_SHOWN && fits(found)) return found;
    const lines = [...found].map(([name, { key }]) => `${JSON.stringify(name)} ${key}`);
    const crowd = { ...itself, key: shortDigest(lines.join('\n')), size: found.size - 1, isYoung: false };
    return new Map([
      [ITSELF, itself],
      [CROWD, crowd],
    ]);
  }

  /** `undefined` for a file that is too long, cannot be read, or is not the one that was found. */
  digestOf(name: string, found: Found): Promise<string | undefined> {
    let digest = this.#digests.get(name);
    if (!digest) {
      digest = this.#read(name, found).catch(() => undefined);
      this.#digests.set(name, digest);
    }
    return digest;
  }

  async #read(name: string, { kind, size, stat }: Found): Promise<string | undefined> {
    const { path, handle } = this.#opened;
    const isLegible = this.#isReadable(name === ITSELF ? path : join(path, name));
    if (kind !== 'file' || size > FILE_BYTES || size > this.#left || !isLegible) return undefined;
    this.#left -= size;
    const file = await open(
      name === ITSELF ? path : join(handle, name),
      constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK,
    );
    try {
      if (!isSame(await file.stat({ bigint: true }), stat)) return undefined;
      const digest = await digestOfFile(file, size);
      return isSame(await file.stat({ bigint: true }), stat) ? digest : undefined;
    } finally {
      await file.close();
    }
  }
}

const isSame = (one: BigIntStats, other: BigIntStats) =>
  one.ino === other.ino && one.dev === other.dev && one.size === other.size && one.mtimeNs === other.mtimeNs;

async function digestOfFile(file: FileHandle, size: number): Promise<string> {
  const hash = createHash('sha256');
  const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, Math.max(size, 1)));
  for (let position = 0; position < size; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) break;
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
  return hash.digest('hex');
}

const shortDigest = (text: string) => Buffer.from(digestOf(text).slice(7, 23), 'hex').toString('base64url');

/** Whether what is remembered of the entries is short enough. A name is at most as long as its JSON text. */
function fits(found: ReadonlyMap<string, Found>): boolean {
  const longest = [...found].map(([name, { key }]) => [name, key, key + key] as const);
  return utf8Bytes(pack(longest)) < SEEN_MAX_BYTES - 100;
}

const pack = (lines: unknown) => deflateRawSync(JSON.stringify(lines)).toString('base64');

function encodeSeen({ of, next, entries }: Seen): string {
  const lines = [...entries].map(([name, { key, content }]) =>
    content === undefined ? [name, key] : [name, key, content],
  );
  return JSON.stringify([1, of, next, lines.length > 8 ? pack(lines) : lines]);
}

/** `undefined` for a text that this version has not written. */
function decodeSeen(text: string): Seen | undefined {
  try {
    const [version, of, next, packed] = JSON.parse(text) as [
      number,
      string,
      number,
      string | [string, string, string?][],
    ];
    if (version !== 1) return undefined;
    const unpacked = () => inflateRawSync(Buffer.from(packed as string, 'base64'), { maxOutputLength: 4_000_000 });
    const lines =
      typeof packed === 'string' ? (JSON.parse(unpacked().toString('utf8')) as [string, string, string?][]) : packed;
    const entries = lines.map(([name, key, content]) => [name, { key, ...(content && { content }) }] as const);
    return { of, next, entries: new Map(entries) };
  } catch {
    return undefined;
  }
}
