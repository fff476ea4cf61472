/**
 * Entries of an archive, and the rules that each one must meet before anything is written. A backup may come from
 * another computer, so its entries are untrusted. Pure.
 */
import { posix } from 'node:path';
import { ReveilleError } from '../../wire/errors.ts';

export type PartHead =
  | { readonly kind: 'folder' | 'file'; readonly path: string; readonly mode: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

/** Bytes of UTF-8 in one name, in a path and in a link target, and names in a path: the limits of common file systems. */
const NAME_BYTES_MAX = 255;
const PATH_BYTES_MAX = 4096;
const DEPTH_MAX = 128;
/** Files of a home are private to its owner. Set-user-ID, set-group-ID and sticky bits are never restored. */
const MODE_MASK = 0o700;

const KINDS: ReadonlySet<unknown> = new Set(['folder', 'file', 'link']);
const isWindows = process.platform === 'win32';

const bytesOf = (text: string) => Buffer.byteLength(text, 'utf8');

/** The problem of a path below the home; `undefined` when it is a relative path of ordinary names. */
function pathProblem(path: string): string | undefined {
  if (path === '') return 'has an empty path';
  if (path.includes('\0')) return 'has a NUL character in its path';
  if (!path.isWellFormed()) return 'has half of a surrogate pair in its path';
  if (path.startsWith('/')) return 'has an absolute path';
  if (isWindows && /[\\:]/.test(path)) return 'has a backslash or a colon in its path, which Windows does not allow';
  const names = path.split('/');
  if (names.some((name) => name === '..')) return 'has ".." in its path';
  if (names.some((name) => name === '' || name === '.')) return 'has an empty name or "." in its path';
  if (names.length > DEPTH_MAX) return `is more than ${DEPTH_MAX} folders deep`;
  if (names.some((name) => bytesOf(name) > NAME_BYTES_MAX)) return `has a name of more than ${NAME_BYTES_MAX} bytes`;
  if (bytesOf(path) > PATH_BYTES_MAX) return `has a path of more than ${PATH_BYTES_MAX} bytes`;
  return undefined;
}

/**
 * Why a link must not be in a backup; `undefined` when it stays in the home. `..` is allowed only at the beginning of a
 * target: there it leaves known folders. After the name of another link it could leave the home.
 *
 * @param path of the link, below the home
 */
export function linkProblem(path: string, target: string): string | undefined {
  if (target === '' || target.includes('\0') || !target.isWellFormed()) return 'has a malformed target';
  if (bytesOf(target) > PATH_BYTES_MAX) return `has a target of more than ${PATH_BYTES_MAX} bytes`;
  const leads = `points to ${JSON.stringify(target)}, which is outside the home`;
  if (posix.isAbsolute(target) || (isWindows && /[\\:]/.test(target))) return leads;
  const steps = target.split('/').filter((step) => step !== '' && step !== '.');
  const up = steps.findIndex((step) => step !== '..');
  const climbs = up === -1 ? steps.length : up;
  if (steps.slice(climbs).includes('..')) return `points to ${JSON.stringify(target)}, with ".." after another name`;
  return climbs > path.split('/').length - 1 ? leads : undefined;
}

const shown = (path: unknown) => JSON.stringify(String(path).slice(0, 200).toWellFormed());

/** Checks the entries of one archive, in their order. */
export class EntryRules {
  readonly #name: string;
  readonly #seen = new Map<string, PartHead['kind']>();

  readonly #skipLink: ((path: string, why: string) => void) | undefined;

  /**
   * @param name names the archive in messages
   * @param skipLink is called for a link that points outside the home; without it, such a link is rejected
   */
  constructor(name: string, skipLink?: (path: string, why: string) => void) {
    this.#name = name;
    this.#skipLink = skipLink;
  }

  #refuse(path: unknown, what: string, remedy = 'use a backup that "reveille backup" created'): never {
    const message = `${this.#name} contains the entry ${shown(path)}, which ${what}; nothing was restored from it: ${remedy}`;
    throw new ReveilleError('invalid_request', message);
  }

  /**
   * @param record as it was read
   * @returns the entry, with a mode that gives rights to its owner only; `undefined` for a link that is skipped
   * @throws ReveilleError `invalid_request` naming the entry and the rule that it breaks
   */
  take(record: Readonly<Record<string, unknown>>): PartHead | undefined {
    const { kind, path, mode, target, ...others } = record;
    if (typeof path !== 'string') this.#refuse(path, 'has no path');
    const wrong = pathProblem(path);
    if (wrong !== undefined) this.#refuse(path, wrong);
    if (!KINDS.has(kind))
      this.#refuse(path, `is a ${shown(kind)}; only folders, files and symbolic links are restored`);
    const [other] = Object.keys(others);
    if (other !== undefined) this.#refuse(path, `has the unknown field ${shown(other)}`);
    this.#place(path, kind as PartHead['kind']);
    if (kind === 'link') {
      if (typeof target !== 'string' || mode !== undefined) this.#refuse(path, 'is a link without a target');
      const problem = linkProblem(path, target);
      if (problem === undefined) return { kind, path, target };
      if (!this.#skipLink) this.#refuse(path, problem, 'restore without such links with --skip-outside-links');
      this.#skipLink(path, problem);
      return undefined;
    }
    if (!Number.isSafeInteger(mode) || target !== undefined) this.#refuse(path, 'has no mode');
    return { kind: kind as 'folder' | 'file', path, mode: (mode as number) & MODE_MASK };
  }

  /** An entry follows its parent folder, and its path is unique. */
  #place(path: string, kind: PartHead['kind']): void {
    const parent = posix.dirname(path);
    const above = parent === '.' ? 'folder' : this.#seen.get(parent);
    if (above === undefined) this.#refuse(path, 'is below a folder that does not precede it');
    if (above !== 'folder') this.#refuse(path, `is below ${shown(parent)}, which is a ${above}`);
    const before = this.#seen.get(path);
    // Backups name the folder of a database twice: for its copy, and as a folder of the home.
    if (before !== undefined && !(before === 'folder' && kind === 'folder'))
      this.#refuse(path, `is a duplicate: first a ${before}, then a ${kind}`);
    this.#seen.set(path, kind);
  }
}
