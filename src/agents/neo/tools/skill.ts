/** The agent's skill: a guide for the model, and the tools that it needs. */
import { readFileSync } from 'node:fs';
import { ReveilleError, thrownText } from '../../../wire/errors.ts';
import { readSkillTools, readToolUri } from '../../../wire/tool-uri.ts';

export type Skill = {
  /** The content of the file, for the model. */
  readonly text: string;
  readonly path: string;
  /** The tool URIs of its `§TOOLS` blocks. */
  readonly entries: readonly { readonly line: number; readonly uri: string }[];
  /** The only allowed tools, by URI; absent unless it limits. */
  readonly limit?: ReadonlySet<string>;
};

/** The model reads it at every step. In UTF-16 units. */
const LONGEST = 32 * 1024;

function skillError(path: string, problem: string, cause?: unknown): ReveilleError {
  return new ReveilleError('invalid_request', `NEO_SKILL: ${path} ${problem}`, { cause });
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    throw skillError(path, `cannot be read: ${thrownText(cause)}`, cause);
  }
}

/** @throws ReveilleError `invalid_request` naming the file, the line where there is one, and the remedy */
export function readSkill(path: string): Skill {
  const text = readText(path);
  if (text.length > LONGEST)
    throw skillError(path, `is longer than ${LONGEST} characters; a model reads all of it at every step`);
  let tools: ReturnType<typeof readSkillTools>;
  try {
    tools = readSkillTools(text);
  } catch (cause) {
    throw skillError(path, `cannot be parsed: ${thrownText(cause)}`, cause);
  }
  for (const { line, text: uri } of tools.entries) {
    if (readToolUri(uri)) continue;
    const form = 'matrix://tool/mcp/<alias>/<tool>@<version>';
    throw skillError(path, `line ${line}: ${JSON.stringify(uri.slice(0, 200))} is not a tool URI; expected ${form}`);
  }
  const entries = tools.entries.map(({ line, text: uri }) => ({ line, uri }));
  return { path, text, entries, ...(tools.limits && { limit: new Set(entries.map(({ uri }) => uri)) }) };
}
