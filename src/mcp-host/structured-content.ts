/**
 * Structured content for a model, which reads text. Servers that have it usually write it into a text as well, as JSON or as what it
 * holds: then a model must not pay for it twice. Pure.
 */
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';
import { parseForeignJson } from '../wire/json.ts';

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
