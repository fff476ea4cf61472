/** Reviews the tools of an MCP server with the user: descriptions, proposed classes, and the user's decision. */
import { createInterface } from 'node:readline/promises';
import { printable } from '../../kit/text/hidden-characters.ts';
import { visible } from '../../kit/text/visible.ts';
import { classify, type Proposal, propose } from '../../mcp-host/classify.ts';
import type { DeclaredTool } from '../../mcp-host/manifest.ts';
import { changedParts, type SeenTool } from '../../mcp-host/seen-tools.ts';
import { digestOf, type ToolDefinition } from '../../mcp-host/tool-definition.ts';
import type { ToolPins } from '../../mcp-host/tool-lock.ts';
import type { ManifestTool } from '../../wire/manifest.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { wrap } from '../screens/columns.ts';

/**
 * `read`: the agent may call it, and it only reads. `natural`: the agent may call it. `escalate`: only the executor
 * calls it, after the policy allows it.
 */
export type ClassWord = 'read' | 'natural' | 'escalate';

export type ReviewFlags = {
  read?: readonly string[];
  natural?: readonly string[];
  escalate?: readonly string[];
  yesReads?: boolean;
  accept?: boolean;
};

export type ReviewedTool = {
  readonly name: string;
  /**
   * - `new`: the manifest does not name it, or gives it no class
   * - `changed`: it differs from the accepted or first seen definition
   * - `unpinned`: the manifest has its class; a change would only cause a warning
   * - `same`, `gone`
   */
  readonly state: 'new' | 'changed' | 'unpinned' | 'same' | 'gone';
  /** The entry of the manifest. */
  readonly word: ClassWord | undefined;
  readonly proposal: Proposal | undefined;
  readonly definition: ToolDefinition | undefined;
  readonly before: SeenTool | undefined;
};

/** The tools of one server, now and before. */
export function reviewOf(
  live: readonly ToolDefinition[],
  declared: ReadonlyMap<string, DeclaredTool> | undefined,
  pins: ToolPins | undefined,
  seen: Readonly<Record<string, SeenTool>> | undefined,
): ReviewedTool[] {
  const present = live.map((definition): ReviewedTool => {
    const { name, annotations } = definition;
    const said = declared?.get(name);
    const word = said && wordOf(said);
    const sha256 = digestOf(definition);
    const own = seen && Object.hasOwn(seen, name) ? seen[name] : undefined;
    const pin = pins && Object.hasOwn(pins, name) ? pins[name] : undefined;
    const agreed = pins === undefined ? own?.sha256 : pin;
    const isChanged = agreed !== undefined && agreed !== sha256;
    const state = word === undefined ? 'new' : isChanged ? 'changed' : pin === undefined ? 'unpinned' : 'same';
    const before = isChanged && own?.sha256 === agreed ? own : undefined;
    return { name, state, word, proposal: propose(name, annotations), definition, before };
  });
  const names = new Set(live.map(({ name }) => name));
  const gone = [...new Set([...(declared?.keys() ?? []), ...Object.keys(pins ?? {})])].filter(
    (name) => !names.has(name),
  );
  return [
    ...present,
    ...gone.map(
      (name): ReviewedTool => ({
        ...{ name, state: 'gone', word: undefined, proposal: undefined, definition: undefined, before: undefined },
      }),
    ),
  ];
}

/** The existing entry of the manifest. */
function wordOf(said: DeclaredTool): ClassWord | undefined {
  if (said.surface === 'escalate') return 'escalate';
  if (classify(said).surface === 'escalate') return undefined;
  return said.sideEffectClass === 'read' ? 'read' : 'natural';
}

export const needsWord = ({ state }: ReviewedTool) => state === 'new' || state === 'changed';

/** The new entry of the manifest. */
export function asManifestTool(name: string, word: ClassWord): ManifestTool {
  if (word === 'escalate') return { name, surface: 'escalate' };
  return { name, ...(word === 'read' && { side_effect_class: 'read' }), surface: 'natural' };
}

const LONGEST_DESCRIPTION = 2000;
const MOST_SCHEMA_LINES = 400;

/** Text of a server between our lines: it cannot imitate one of them. */
function quoted(text: string, width: number): string[] {
  const shown = text.length > LONGEST_DESCRIPTION ? `${text.slice(0, LONGEST_DESCRIPTION)}…` : text;
  const lines = visible(shown.toWellFormed())
    .split(/\r?\n/)
    .flatMap((line) => wrap(line, width - 6))
    .flatMap((line) => line.match(new RegExp(`.{1,${width - 6}}`, 'gu')) ?? ['']);
  const left = text.length - LONGEST_DESCRIPTION;
  return [
    ...lines.map((line) => `    | ${line}`),
    ...(left > 0 ? [`    (${left} more characters; see the schema)`] : []),
  ];
}

function schemaLines({ description, inputSchema, outputSchema, annotations }: ToolDefinition): string[] {
  const whole = JSON.stringify({ description, inputSchema, outputSchema, annotations }, null, 2).split('\n');
  const shown = whole.slice(0, MOST_SCHEMA_LINES).map((line) => `    | ${visible(line)}`);
  return whole.length > MOST_SCHEMA_LINES ? [...shown, `    (${whole.length - MOST_SCHEMA_LINES} more lines)`] : shown;
}

const STATES = {
  new: 'no class yet',
  changed: 'CHANGED since it was accepted or first seen',
  unpinned: 'has a class, is not pinned',
  same: 'as agreed',
  gone: 'removed: the server no longer has it',
} as const;

export function renderTool(alias: string, tool: ReviewedTool, { out }: CliContext): string[] {
  const { name, state, word, proposal, definition, before } = tool;
  const lines = [
    `${out.paint('bold', visible(`${alias}/${name}`.replaceAll('\n', ' ')))}  ${STATES[state]}${word ? ` (${word})` : ''}`,
  ];
  if (definition === undefined || !needsWord(tool)) return lines;
  const { description = '', annotations = {} } = definition;
  lines.push('  description by its server:', ...quoted(description === '' ? '(none)' : description, out.columns));
  const hints = Object.entries(annotations).map(([hint, value]) => `${hint} ${JSON.stringify(value)}`);
  if (hints.length > 0) lines.push('  unverified hints:', ...quoted(hints.join(', '), out.columns));
  if (state === 'changed') {
    lines.push(
      before
        ? `  different ${changedParts(before, definition)}; before:`
        : '  only the digest of the earlier one is known',
    );
    if (before?.definition) lines.push(...quoted(before.definition.description || '(nothing)', out.columns));
  }
  if (proposal) lines.push(`  proposed: ${out.paint('bold', proposal.word)}, because ${printable(proposal.reason)}`);
  return lines;
}

const LETTERS: Readonly<Record<string, ClassWord>> = { r: 'read', n: 'natural', e: 'escalate' };

export type Ask = (question: string) => Promise<string>;

/** @returns `undefined` without a terminal */
export function personAt(context: CliContext): { ask: Ask; close(): void } | undefined {
  if (!context.out.live || context.process.stdin.isTTY !== true) return undefined;
  const reader = createInterface({ input: context.process.stdin, output: context.process.stdout });
  const gone = new AbortController();
  reader.once('close', () => gone.abort());
  return {
    // At the end of the input there is no answer.
    ask: (question) => reader.question(question, { signal: gone.signal }).catch(() => 'q'),
    close: () => reader.close(),
  };
}

/**
 * The user's decision for each tool that needs one; `undefined` when the user leaves. Enter alone never accepts a changed
 * tool.
 */
export async function askForWords(
  context: CliContext,
  alias: string,
  tools: readonly ReviewedTool[],
  ask: Ask,
): Promise<Map<string, ClassWord> | undefined> {
  const words = new Map<string, ClassWord>();
  for (const tool of tools.filter(needsWord)) {
    for (const line of ['', ...renderTool(alias, tool, context)]) context.out.line(line);
    const preset = tool.state === 'new' ? tool.proposal?.word : undefined;
    for (;;) {
      const enter = preset === undefined ? '' : `; Enter: ${preset}`;
      const answer = await ask(`  (r)ead, (n)atural, (e)scalate, (s)chema, (q)uit${enter}: `);
      const letter = answer.trim().toLowerCase();
      if (letter === 'q' || letter === 'quit') return undefined;
      if (letter === 's' || letter === 'schema') {
        for (const line of schemaLines(tool.definition!)) context.out.line(line);
        continue;
      }
      const word = letter === '' ? preset : (Object.values(LETTERS).find((one) => one === letter) ?? LETTERS[letter]);
      if (word === undefined) continue;
      words.set(tool.name, word);
      break;
    }
  }
  return words;
}

const listed = (given: readonly string[] = []) =>
  given.flatMap((names) => names.split(',').map((name) => name.trim())).filter((name) => name !== '');

export const isScripted = ({ read, natural, escalate, yesReads, accept }: ReviewFlags) =>
  yesReads === true || accept === true || [read, natural, escalate].some((list) => list !== undefined);

/** The decisions in the flags. */
export function wordsOfFlags(flags: ReviewFlags, tools: readonly ReviewedTool[]): Map<string, ClassWord> {
  const words = new Map<string, ClassWord>();
  for (const word of ['read', 'natural', 'escalate'] as const) {
    for (const name of listed(flags[word])) {
      if (!tools.some((tool) => tool.name === name && tool.definition))
        throw new UsageError(`--${word} names ${JSON.stringify(name)}, which the server does not have`);
      if (words.has(name)) throw new UsageError(`${JSON.stringify(name)} has two classes; give one`);
      words.set(name, word);
    }
  }
  for (const { name, state, word, proposal } of tools) {
    if (words.has(name)) continue;
    if (state === 'new' && flags.yesReads === true && proposal) words.set(name, proposal.word);
    if (state === 'changed' && flags.accept === true && word) words.set(name, word);
  }
  return words;
}
