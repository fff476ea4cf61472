/**
 * The tokens of the tools. A model pays for name, description and arguments of each tool in every prompt; some clients add
 * the schema of the answer. Counted with the vocabulary of GPT-4o and later, offline; others differ by some percent.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { alarmTools, type Schema, type Tool, timeTools } from './tool-sets.ts';

const tokensOf = (value: unknown) => countTokens(JSON.stringify(value));

/** Prints a table with a line for each tool and each of its fields. @returns the tokens without and with the answers */
function weigh(t: TestContext, tools: readonly Tool[]): { asked: number; all: number } {
  const line = (tokens: number, text: string) => t.diagnostic(`${String(tokens).padStart(6)}  ${text}`);
  const fields = (side: string, { properties = {} }: Schema) => {
    for (const [name, schema] of Object.entries(properties)) line(tokensOf({ [name]: schema }), `    ${side} ${name}`);
  };
  let [asked, all] = [0, 0];
  for (const { name, description, inputSchema, outputSchema } of tools) {
    const without = tokensOf({ name, description, inputSchema });
    const whole = tokensOf({ name, description, inputSchema, outputSchema });
    line(without, `${name}; ${whole} with the schema of the answer`);
    line(tokensOf(description), '  description');
    line(tokensOf(inputSchema), '  arguments');
    fields('argument', inputSchema);
    line(tokensOf(outputSchema), '  answer');
    fields('member', outputSchema);
    asked += without;
    all += whole;
  }
  line(asked, `together; ${all} with the schemas of the answers`);
  return { asked, all };
}

test('the five tools of time have at most 650 tokens, and 1,600 with the schemas of their answers', (t) => {
  const { asked, all } = weigh(t, timeTools());
  assert.ok(asked <= 650, `${asked} tokens`);
  assert.ok(all <= 1600, `${all} tokens`);
});

test('the three tools of alarms have at most 1,000 tokens, and 1,600 with the schemas of their answers', (t) => {
  const { asked, all } = weigh(t, alarmTools());
  assert.ok(asked <= 1000, `${asked} tokens`);
  assert.ok(all <= 1600, `${all} tokens`);
});
