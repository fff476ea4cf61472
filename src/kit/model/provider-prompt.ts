/** Converts a request for the provider packages. Pure. */
import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from '@ai-sdk/provider';
import { isObject, parseUntrustedJson } from '../../wire/json.ts';
import type { ModelImage, ModelMessage, ModelRequest, ModelToolCall } from './model.ts';

/** Differences between providers. */
export type ProviderTraits = {
  /** Whether a tool's result may contain images; otherwise they follow in a message of their own. */
  readonly imagesInResults: boolean;
  /** Whether earlier arguments are sent as the model's JSON text, digit for digit. */
  readonly verbatimInput: boolean;
  /** Whether `tool_choice: none` exists. */
  readonly canForbidCalls: boolean;
};

type Message = LanguageModelV4Prompt[number];
type Parts<Role extends Message['role']> = Extract<Message, { role: Role }>['content'];
type ToolMessage = Extract<ModelMessage, { role: 'tool' }>;

/** Maximum length of invalid arguments that are shown to the model again. */
const SHOWN_CHARACTERS = 2000;

const IMAGES_FOLLOW = 'The images that the calls above returned, in the order they were returned:';

function isJsonObject(text: string): boolean {
  try {
    return isObject(parseUntrustedJson(text));
  } catch {
    return false;
  }
}

/** Arguments for the provider, which must be an object whatever the model wrote. */
function inputOf({ input }: ModelToolCall, { verbatimInput }: ProviderTraits): unknown {
  if (input.trim() === '') return {};
  if (!isJsonObject(input)) return { not_a_json_object: input.slice(0, SHOWN_CHARACTERS).toWellFormed() };
  return verbatimInput ? input : JSON.parse(input);
}

type ProviderOptions = NonNullable<Parts<'assistant'>[number]['providerOptions']>;

function assistantParts(
  { content, toolCalls = [] }: Extract<ModelMessage, { role: 'assistant' }>,
  traits: ProviderTraits,
): Parts<'assistant'> {
  const parts: Parts<'assistant'> = toolCalls.map((call) => ({
    type: 'tool-call',
    toolCallId: call.id,
    toolName: call.name,
    input: inputOf(call, traits),
    ...(call.opaque === undefined ? {} : { providerOptions: call.opaque as ProviderOptions }),
  }));
  // Providers refuse empty text, and a message without any part.
  if (content !== '' || parts.length === 0) parts.unshift({ type: 'text', text: content || '(no text)' });
  return parts;
}

const filePart = ({ mediaType, data }: ModelImage) =>
  ({ type: 'file', mediaType, data: { type: 'data', data } }) as const;

function resultPart(
  { callId, name, content, images = [], isError }: ToolMessage,
  { imagesInResults }: ProviderTraits,
): Parts<'tool'>[number] {
  const result = { type: 'tool-result', toolCallId: callId, toolName: name } as const;
  if (images.length === 0 || !imagesInResults) {
    return { ...result, output: { type: isError ? 'error-text' : 'text', value: content } };
  }
  return { ...result, output: { type: 'content', value: [{ type: 'text', text: content }, ...images.map(filePart)] } };
}

/** The messages of a request. Consecutive results become one message, as providers require the results of one step. */
export function promptOf(
  { system, messages }: Pick<ModelRequest, 'system' | 'messages'>,
  traits: ProviderTraits,
): LanguageModelV4Prompt {
  const prompt: LanguageModelV4Prompt = [{ role: 'system', content: system }];
  let results: ToolMessage[] = [];
  const flush = () => {
    if (results.length === 0) return;
    prompt.push({ role: 'tool', content: results.map((message) => resultPart(message, traits)) });
    const images = traits.imagesInResults ? [] : results.flatMap((message) => message.images ?? []);
    if (images.length > 0) {
      prompt.push({ role: 'user', content: [{ type: 'text', text: IMAGES_FOLLOW }, ...images.map(filePart)] });
    }
    results = [];
  };
  for (const message of messages) {
    if (message.role === 'tool') {
      results.push(message);
      continue;
    }
    flush();
    if (message.role === 'user') prompt.push({ role: 'user', content: [{ type: 'text', text: message.content }] });
    else prompt.push({ role: 'assistant', content: assistantParts(message, traits) });
  }
  flush();
  return prompt;
}

type ProviderTools = NonNullable<LanguageModelV4CallOptions['tools']>;
type FunctionTool = Extract<ProviderTools[number], { type: 'function' }>;

export function toolOptionsOf(
  { tools = [], textOnly: wordsOnly = false }: Pick<ModelRequest, 'tools' | 'textOnly'>,
  { canForbidCalls }: ProviderTraits,
): Pick<LanguageModelV4CallOptions, 'tools' | 'toolChoice'> {
  if (tools.length === 0) return {};
  return {
    tools: tools.map(({ name, description, parameters }) => ({
      type: 'function',
      name,
      description,
      inputSchema: parameters as FunctionTool['inputSchema'],
    })),
    ...(wordsOnly && canForbidCalls ? { toolChoice: { type: 'none' } } : {}),
  };
}
