/**
 * Caps tool output to a size that a model can read. The whole output is stored in a file, and the model gets its path.
 */
import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import { v7 as uuidv7 } from 'uuid';
import { thrownText } from '../wire/errors.ts';
import { parseUntrustedJson } from '../wire/json.ts';
import type { RawAnswer } from './raw-answers.ts';
import type { InBandAnswer, WithoutResult } from './tool-call-failure.ts';

/** Beyond this the oldest files are deleted. */
const MOST_BYTES = 256 * 1024 * 1024;

/** Its path below a data folder; absolute, because programs with another working directory get it. */
export function spillFolderPath(dataDir: string): string {
  return resolve(dataDir, 'tool-output');
}

/** The folder for output that is too long for a model, which gets the path of the file. */
export class SpillFolder {
  readonly #path: string;
  readonly #mostBytes: number;

  /** Created when needed. */
  constructor(path: string, mostBytes = MOST_BYTES) {
    this.#path = path;
    this.#mostBytes = mostBytes;
  }

  /**
   * Stores content, readable by this user only.
   *
   * @returns the path
   * @throws Error when the disk does not accept it
   */
  store(content: string | Uint8Array, extension: string): string {
    mkdirSync(this.#path, { recursive: true, mode: 0o700 });
    // UUIDv7 names sort by time.
    const path = join(this.#path, `${uuidv7()}.${extension}`);
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' });
    this.#prune(path);
    return path;
  }

  #prune(newest: string): void {
    let bytes = 0;
    for (const name of readdirSync(this.#path).sort().reverse()) {
      const path = join(this.#path, name);
      bytes += statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      if (bytes > this.#mostBytes && path !== newest) rmSync(path, { force: true });
    }
  }
}

/** The result of a tool, for a model and for programs. */
export type ToolResult = {
  /** Everything that a model reads, structured content included. */
  content: readonly ContentBlock[];
  /**
   * For programs: the complete value that the server sent. Numbers are JavaScript numbers; values that need all digits
   * are in the text.
   */
  structuredContent?: unknown;
  /** The tool ran and reports a failure, or there is no such tool. The model should see it and adapt. */
  isError: boolean;
  /** Files with the output that was cut from `content`. */
  spilled?: readonly string[];
  /** Set where the text is the host's and not the tool's. */
  withoutResult?: WithoutResult;
  /** The message that carried the answer; only for a call with `once`, and only if an answer came. */
  raw?: RawAnswer;
};

/** Bytes of UTF-8 per token; a rough estimate that needs no tokenizer. */
const BYTES_PER_TOKEN = 4;
/** The share of the remaining text that is kept from the beginning. */
const HEAD_SHARE = 0.75;

function textOf(block: ContentBlock): string | undefined {
  if (block.type === 'text') return block.text;
  if (block.type === 'resource' && 'text' in block.resource) return block.resource.text;
  return undefined;
}

/** The last UTF-8 boundary at or before a position. */
function boundaryBefore(bytes: Buffer, at: number): number {
  let boundary = Math.min(at, bytes.length);
  while (boundary > 0 && boundary < bytes.length && (bytes[boundary]! & 0xc0) === 0x80) boundary--;
  return boundary;
}

/** Beginning and end of a text, with a notice in place of the omitted middle. */
function abridge(text: string, maxBytes: number, notice: (leftOutBytes: number) => string): string {
  const bytes = Buffer.from(text);
  const headEnd = boundaryBefore(bytes, Math.floor(maxBytes * HEAD_SHARE));
  const tailFrom = boundaryBefore(bytes, bytes.length - Math.floor(maxBytes * (1 - HEAD_SHARE)));
  const [head, tail] = [bytes.toString('utf8', 0, headEnd), bytes.toString('utf8', tailFrom)];
  return `${head}\n\n${notice(tailFrom - headEnd)}\n\n${tail}`;
}

/** Stores content if the disk accepts it. @returns a note on its location, and its path */
function storeWhole(
  folder: SpillFolder,
  content: string | Uint8Array,
  extension: string,
): { note: string; path?: string } {
  try {
    const path = folder.store(content, extension);
    return { note: `the whole output is in ${path}`, path };
  } catch (thrown) {
    // A full disk must not turn a successful call into a failed one.
    return { note: `the whole output could not be stored: ${thrownText(thrown)}` };
  }
}

/** A model cannot read binary resources; a long one is stored in a file. */
function withoutLongBlobs(content: readonly ContentBlock[], maxBytes: number, folder: SpillFolder, spilled: string[]) {
  return content.map((block): ContentBlock => {
    if (block.type !== 'resource' || !('blob' in block.resource) || block.resource.blob.length <= maxBytes)
      return block;
    const bytes = Buffer.from(block.resource.blob, 'base64');
    const { note, path } = storeWhole(folder, bytes, 'bin');
    if (path !== undefined) spilled.push(path);
    const { uri, mimeType = 'application/octet-stream' } = block.resource;
    return { type: 'text', text: `[${uri}: ${bytes.length} bytes of ${mimeType}; ${note}]` };
  });
}

/**
 * Caps the text of a result, including structured content shown as text. Images and audio stay unchanged.
 *
 * @param maxTokens for all text together
 */
export function capOutput(result: CallToolResult, maxTokens: number, folder: SpillFolder): ToolResult {
  const maxBytes = maxTokens * BYTES_PER_TOKEN;
  const spilled: string[] = [];
  let content = withoutLongBlobs(blocksOf(result), maxBytes, folder, spilled);
  const texts = content.map(textOf).filter((text) => text !== undefined);
  // The blank lines between the texts count the overhead of a block.
  const whole = texts.join('\n\n');
  if (Buffer.byteLength(whole) > maxBytes) {
    const { note, path } = storeWhole(folder, whole, 'txt');
    if (path !== undefined) spilled.push(path);
    const text = abridge(whole, maxBytes, (leftOut) => `[${leftOut} bytes are left out here; ${note}]`);
    const at = content.findIndex((block) => textOf(block) !== undefined);
    content = content.flatMap((block, index): ContentBlock[] => {
      if (index === at) return [{ type: 'text', text }];
      return textOf(block) === undefined ? [block] : [];
    });
  }
  return {
    content,
    ...(result.structuredContent !== undefined && { structuredContent: result.structuredContent }),
    isError: result.isError === true,
    ...(spilled.length > 0 && { spilled }),
  };
}

/** An answer of the host in place of the tool's. */
export function inBandError({ inBand, withoutResult }: InBandAnswer): ToolResult {
  return { content: [{ type: 'text', text: inBand }], isError: true, withoutResult };
}

/** Collects every text of a JSON value; `false` when it contains anything but texts, lists and objects. */
function collectTexts(value: unknown, texts: Set<string>): boolean {
  if (typeof value === 'string') {
    texts.add(value);
    return true;
  }
  if (typeof value !== 'object' || value === null) return false;
  let only = true;
  for (const member of Object.values(value)) only = collectTexts(member, texts) && only;
  return only;
}

/** Whether a text is this value, written as JSON. */
function isJsonOf(text: string, json: string): boolean {
  if (text === json) return true;
  // With spaces and line breaks the text is longer; a shorter text cannot be equal.
  if (text.length < json.length) return false;
  try {
    return JSON.stringify(parseUntrustedJson(text)) === json;
  } catch {
    return false;
  }
}

/** Whether the blocks already contain the structured content. */
function containsStructured(structured: unknown, json: string, content: readonly ContentBlock[]): boolean {
  if (content.some((block) => block.type === 'text' && isJsonOf(block.text, json))) return true;
  const [expected, present] = [new Set<string>(), new Set<string>()];
  if (!collectTexts(structured, expected)) return false;
  collectTexts(content, present);
  return expected.size > 0 && expected.isSubsetOf(present);
}

/** The blocks of a result, plus one for structured content that no block contains. */
export function blocksOf({ content, structuredContent }: CallToolResult): ContentBlock[] {
  if (structuredContent === undefined) return content;
  const json = JSON.stringify(structuredContent);
  return containsStructured(structuredContent, json, content) ? content : [...content, { type: 'text', text: json }];
}
