/** Every output format with its reader. */
import type { OutputFormat } from '../preset.ts';
import { readClaudeJson } from './claude-json.ts';
import { readCodexJsonl } from './codex-jsonl.ts';
import { readGeminiJson } from './gemini-json.ts';
import { readPlainText } from './plain-text.ts';
import type { Reader } from './reading.ts';

export const READERS: Readonly<Record<OutputFormat, Reader>> = {
  'claude-json': readClaudeJson,
  'codex-jsonl': readCodexJsonl,
  'gemini-json': readGeminiJson,
  'plain-text': readPlainText,
};
