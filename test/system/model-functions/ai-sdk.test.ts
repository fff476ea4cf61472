/** The tools of Reveille as the AI SDK sends them to each provider. */
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, type LanguageModel, type ToolSet, tool } from 'ai';
import { alarmTools } from '../../../src/exports/tools.ts';
import type { FunctionSchema, Provider } from '../../support/function-schemas.ts';
import { type Conversion, checkConversions, type McpTool, TOOLS } from './table.ts';

type Body = { tools: readonly unknown[] };
type OpenAIFunction = FunctionSchema & { function?: FunctionSchema };

const PROVIDERS: readonly {
  library: string;
  provider: Provider;
  model: (options: { apiKey: string; fetch: typeof fetch }) => LanguageModel;
  sent: (body: Body) => FunctionSchema;
}[] = [
  {
    library: '@ai-sdk/openai',
    provider: 'openai',
    model: (options) => createOpenAI(options).responses('gpt-4.1'),
    sent: ({ tools }) => tools[0] as FunctionSchema,
  },
  {
    library: '@ai-sdk/openai',
    provider: 'openai',
    model: (options) => createOpenAI(options).chat('gpt-4.1'),
    sent: ({ tools }) => (tools[0] as OpenAIFunction).function!,
  },
  {
    library: '@ai-sdk/anthropic',
    provider: 'anthropic',
    model: (options) => createAnthropic(options)('claude-sonnet-4-5'),
    sent: ({ tools }) => tools[0] as FunctionSchema,
  },
  {
    library: '@ai-sdk/google',
    provider: 'google',
    model: (options) => createGoogle(options)('gemini-2.5-flash'),
    sent: ({ tools }) => (tools[0] as { functionDeclarations: FunctionSchema[] }).functionDeclarations[0]!,
  },
];

const versionOf = (library: string) =>
  (JSON.parse(readFileSync(`node_modules/${library}/package.json`, 'utf8')) as { version: string }).version;

async function conversionOf(
  { library, provider, model, sent }: (typeof PROVIDERS)[number],
  { name, description, inputSchema }: McpTool,
  mode: 'normal' | 'strict',
): Promise<Conversion> {
  const about = { library, version: versionOf(library), provider, mode, tool: name };
  let body: Body | undefined;
  const capture: typeof fetch = async (_url, init) => {
    body = JSON.parse(String(init?.body)) as Body;
    throw new Error('captured');
  };
  const strict = alarmTools({ strict: true }) as ToolSet;
  const options = { description, inputSchema: jsonSchema(inputSchema), ...(mode === 'strict' && { strict: true }) };
  const own = mode === 'strict' ? strict[name] : undefined;
  const tools: ToolSet = { [name]: own ?? (tool(options) as ToolSet[string]) };
  const answer = model({ apiKey: 'none', fetch: capture });
  const failed = await generateText({ model: answer, prompt: 'hello', tools, maxRetries: 0 }).catch(
    (thrown: unknown) => thrown,
  );
  return body === undefined ? { ...about, refused: String(failed) } : { ...about, sent: sent(body) };
}

for (const provider of PROVIDERS)
  test(`${provider.library} sends all tools unchanged`, async (t) => {
    const conversions: Conversion[] = [];
    for (const mode of provider.provider === 'openai' ? (['normal', 'strict'] as const) : (['normal'] as const))
      for (const one of TOOLS) conversions.push(await conversionOf(provider, one, mode));
    // It sends the schema as it is in strict mode too; alarmTools writes its own for it.
    checkConversions(t, conversions, { accepted: ['converted', 'not written for strict mode'] });
  });
