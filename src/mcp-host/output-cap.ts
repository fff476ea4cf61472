/** Keeping tool output to what a model can take in; the rest is kept in a file that the model is told of. */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import { parseForeignJson } from '../wire/json.ts';
import type { RawAnswer } from './raw-answers.ts';
import type { SpillFolder } from './spill-folder.ts';
import type { InBand, WithoutResult } from './tool-call-failure.ts';

/** What a tool gave back, as far as a model and a program need it. */
export type ToolResult = {
  /** All that a model is to be shown, structured content included. */
  content: readonly ContentBlock[];
  /**
   * For programs: as the server sent it, whole. Numbers are those of JavaScript: what must keep its digits stands in
   * the text.
   */
  structuredContent?: unknown;
  /** The tool ran and says that it failed, or there is no such tool: the model should see it and adapt. */
  isError: boolean;
  /** Files that hold what was cut out of `content`. */
  spilled?: readonly string[];
  /** Where the words are ours and not the tool's. */
  withoutResult?: WithoutResult;
  /** The message that carried the answer; only for a call that is made `once`, and where an answer came. */
  raw?: RawAnswer;
};

/** A token is taken for so many bytes of UTF-8; a rough measure that needs no tokenizer. */
const BYTES_PER_TOKEN = 4;
/** Of the text that stays, the part that stands at its beginning. */
const HEAD = 0.75;

/** A block's text, where it has any. */
function textOf(block: ContentBlock): string | undefined {
  if (block.type === 'text') return block.text;
  if (block.type === 'resource' && 'text' in block.resource) return block.resource.text;
  return undefined;
}

/** Where UTF-8 can be cut at or before a place. */
function boundaryBefore(bytes: Buffer, at: number): number {
  let boundary = Math.min(at, bytes.length);
  while (boundary > 0 && boundary < bytes.length && (bytes[boundary]! & 0xc0) === 0x80) boundary--;
  return boundary;
}

/** Beginning and end of a text, with a notice in the place of what is missing. */
function abridge(text: string, maxBytes: number, notice: (leftOutBytes: number) => string): string {
  const bytes = Buffer.from(text);
  const headEnd = boundaryBefore(bytes, Math.floor(maxBytes * HEAD));
  const tailFrom = boundaryBefore(bytes, bytes.length - Math.floor(maxBytes * (1 - HEAD)));
  const [head, tail] = [bytes.toString('utf8', 0, headEnd), bytes.toString('utf8', tailFrom)];
  return `${head}\n\n${notice(tailFrom - headEnd)}\n\n${tail}`;
}

/** Keeps something if the disk takes it. @returns words on where it is, and its path */
function keep(folder: SpillFolder, content: string | Uint8Array, extension: string): { words: string; path?: string } {
  try {
    const path = folder.keep(content, extension);
    return { words: `the whole is in ${path}`, path };
  } catch (thrown) {
    // A full disk must not turn a call that went well into one that failed.
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return { words: `the whole could not be kept: ${why}` };
  }
}

/** Binary resources are nothing for a model to read; a long one becomes a file. */
function withoutLongBlobs(content: readonly ContentBlock[], maxBytes: number, folder: SpillFolder, spilled: string[]) {
  return content.map((block): ContentBlock => {
    if (block.type !== 'resource' || !('blob' in block.resource) || block.resource.blob.length <= maxBytes)
      return block;
    const bytes = Buffer.from(block.resource.blob, 'base64');
    const { words, path } = keep(folder, bytes, 'bin');
    if (path !== undefined) spilled.push(path);
    const { uri, mimeType = 'application/octet-stream' } = block.resource;
    return { type: 'text', text: `[${uri}: ${bytes.length} bytes of ${mimeType}; ${words}]` };
  });
}

/**
 * Caps the text of a result, structured content that is told as text included. Images and audio stay as they are.
 *
 * @param maxTokens of all text together
 */
export function capOutput(result: CallToolResult, maxTokens: number, folder: SpillFolder): ToolResult {
  const maxBytes = maxTokens * BYTES_PER_TOKEN;
  const spilled: string[] = [];
  let content = withoutLongBlobs(blocksOf(result), maxBytes, folder, spilled);
  const texts = content.map(textOf).filter((text) => text !== undefined);
  // The blank lines between them stand for what a block costs beside its text.
  const whole = texts.join('\n\n');
  if (Buffer.byteLength(whole) > maxBytes) {
    const { words, path } = keep(folder, whole, 'txt');
    if (path !== undefined) spilled.push(path);
    const text = abridge(whole, maxBytes, (leftOut) => `[${leftOut} bytes are left out here; ${words}]`);
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

/** An answer of our own in the place of a tool's. */
export function inBandError({ inBand, withoutResult }: InBand): ToolResult {
  return { content: [{ type: 'text', text: inBand }], isError: true, withoutResult };
}

/** Every text within a value that came as JSON; `false` when something else than texts, lists and objects is in it. */
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

/** Whether a text is this very value, written as JSON. */
function isJsonOf(text: string, json: string): boolean {
  if (text === json) return true;
  // Spelt with spaces and line breaks it is longer; nothing shorter can be the same.
  if (text.length < json.length) return false;
  try {
    return JSON.stringify(parseForeignJson(text)) === json;
  } catch {
    return false;
  }
}

/** Whether the blocks tell already what the structured content holds. */
function isTold(structured: unknown, json: string, content: readonly ContentBlock[]): boolean {
  if (content.some((block) => block.type === 'text' && isJsonOf(block.text, json))) return true;
  const [wanted, there] = [new Set<string>(), new Set<string>()];
  if (!collectTexts(structured, wanted)) return false;
  collectTexts(content, there);
  return wanted.size > 0 && wanted.isSubsetOf(there);
}

/** The blocks of a result, with one more for structured content that none of them tells. */
export function blocksOf({ content, structuredContent }: CallToolResult): ContentBlock[] {
  if (structuredContent === undefined) return content;
  const json = JSON.stringify(structuredContent);
  return isTold(structuredContent, json, content) ? content : [...content, { type: 'text', text: json }];
}
