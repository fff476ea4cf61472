/** The eight tools of Reveille, and the table of their conversions by libraries. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { toolDefinitions } from '../../../src/chronometric/tools/definitions.ts';
import { readChronosTools, TOOLS_FILE } from '../../../src/chronos-mcp/tools.ts';
import { changesOf, type FunctionSchema, type Provider, refusalOf } from '../../support/function-schemas.ts';

export type McpTool = {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Record<string, unknown>;
};

export const TOOLS: readonly McpTool[] = [...readChronosTools(TOOLS_FILE).values(), ...toolDefinitions()].map(
  ({ name, description, inputSchema }) => ({ name, description, inputSchema: inputSchema as Record<string, unknown> }),
);

/** What a library does with a tool. */
export type Conversion = {
  readonly library: string;
  readonly version: string;
  readonly provider: Provider;
  readonly mode: 'normal' | 'strict';
  readonly tool: string;
} & ({ readonly sent: FunctionSchema } | { readonly refused: string });

/** A schema that is not written for strict mode: its arguments are optional. */
const NOT_FOR_STRICT = /: it (?:does not require \d+ members|allows more members)$/;

/** The server checks bounds anyway. */
const IS_BOUND = /: (?:minimum|maximum|minItems|maxItems) \S+ became undefined$/;

type Outcome =
  | 'converted'
  | 'without bounds'
  | 'not written for strict mode'
  | 'changed'
  | 'refused by the library'
  | 'refused by the provider';

function outcomeOf(
  conversion: Conversion,
  tools: readonly McpTool[],
): { outcome: Outcome; problems: readonly string[] } {
  if ('refused' in conversion) return { outcome: 'refused by the library', problems: [conversion.refused] };
  const { provider, mode, sent, tool: name } = conversion;
  const refusals = refusalOf(provider, sent, mode === 'strict');
  const isOther = refusals.some((refusal) => !NOT_FOR_STRICT.test(refusal));
  if (isOther) return { outcome: 'refused by the provider', problems: refusals };
  const { description, inputSchema: parameters } = tools.find((tool) => tool.name === name)!;
  const isStrict = mode === 'strict' && refusals.length === 0;
  const changes = changesOf({ name, description, parameters }, sent, isStrict);
  if (changes.length > 0)
    return {
      outcome: changes.every((change) => IS_BOUND.test(change)) ? 'without bounds' : 'changed',
      problems: changes,
    };
  return { outcome: refusals.length > 0 ? 'not written for strict mode' : 'converted', problems: refusals };
}

const SHOWN = 3;

/**
 * Prints the table, and expects that each tool reaches each model unchanged.
 *
 * @param accepted outcomes that are no failure
 */
export function checkConversions(
  t: TestContext,
  conversions: readonly Conversion[],
  { tools = TOOLS, accepted = ['converted'] }: { tools?: readonly McpTool[]; accepted?: readonly Outcome[] } = {},
): void {
  const rows = conversions.map((conversion) => ({ ...conversion, ...outcomeOf(conversion, tools) }));
  for (const { library, version, provider, mode, tool, outcome, problems } of rows) {
    const more = problems.length > SHOWN ? `; and ${problems.length - SHOWN} more` : '';
    const why = problems.length === 0 ? '' : `: ${problems.slice(0, SHOWN).join('; ')}${more}`;
    t.diagnostic(`${library} ${version} | ${provider} | ${mode} | ${tool} | ${outcome}${why.replaceAll('\n', ' ')}`);
  }
  const failed = rows.filter(({ outcome }) => !accepted.includes(outcome));
  assert.deepEqual(
    failed.map(({ library, provider, mode, tool, outcome }) => `${library} ${provider} ${mode} ${tool}: ${outcome}`),
    [],
  );
}
