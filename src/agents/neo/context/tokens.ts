/**
 * Estimates the tokens of a text with an upper bound, so that a budget kept by the estimate holds for the real count.
 * Pure.
 */
import type { ModelMessage, ModelRequest, ToolSchema } from '../../../kit/model/model.ts';

/** Long runs without a space are hashes, keys or base64, which tokenizers cut into small pieces. */
const DENSE_RUN = /[A-Za-z0-9+/=_-]{24,}/g;

/** Tokens per character: English prose has about 0.25, code 0.3, JSON 0.4, base64 0.65. */
const PER_ASCII_CHARACTER = 0.4;
const PER_DENSE_CHARACTER = 0.75;
/** Tokens per UTF-8 byte of other text; no byte-level tokenizer needs more than one. */
const PER_OTHER_BYTE = 0.75;

/** The overhead of a message besides its text. */
const PER_MESSAGE = 8;

/** The most tokens of an image with the providers that document it; they scale larger ones down. */
const PER_IMAGE = 2000;

export function tokensOf(text: string): number {
  let dense = 0;
  for (const [run] of text.matchAll(DENSE_RUN)) dense += run.length;
  let ascii = 0;
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 0x80) ascii++;
  const other = ascii === text.length ? 0 : Buffer.byteLength(text) - ascii;
  return Math.ceil(dense * PER_DENSE_CHARACTER + (ascii - dense) * PER_ASCII_CHARACTER + other * PER_OTHER_BYTE);
}

function tokensOfMessage(message: ModelMessage): number {
  let tokens = PER_MESSAGE + tokensOf(message.content);
  if (message.role === 'assistant') {
    for (const { name, input } of message.toolCalls ?? []) tokens += PER_MESSAGE + tokensOf(name) + tokensOf(input);
  }
  if (message.role === 'tool') tokens += (message.images?.length ?? 0) * PER_IMAGE;
  return tokens;
}

export function tokensOfMessages(messages: readonly ModelMessage[]): number {
  return messages.reduce((sum, message) => sum + tokensOfMessage(message), 0);
}

export function tokensOfTools(tools: readonly ToolSchema[]): number {
  return tools.reduce((sum, tool) => sum + PER_MESSAGE + tokensOf(JSON.stringify(tool)), 0);
}

export function tokensOfRequest({ system, messages, tools = [] }: Pick<ModelRequest, 'system' | 'messages' | 'tools'>) {
  return PER_MESSAGE + tokensOf(system) + tokensOfMessages(messages) + tokensOfTools(tools);
}
