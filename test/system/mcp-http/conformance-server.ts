/**
 * What the conformance suite expects to find at a server besides the protocol: tools, resources and prompts with fixed
 * names and contents. An extension puts them in place of the alarm tools, behind the same endpoint.
 */
import { setTimeout as pause } from 'node:timers/promises';
import {
  type CallToolResult,
  type GetPromptResult,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { ServerExtension } from '../../../src/mcp-http/servers.ts';

/** A red pixel as PNG, and silence as WAV. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=';

type Content = CallToolResult['content'][number];
const text = (written: string): Content => ({ type: 'text', text: written });
const image: Content = { type: 'image', data: PIXEL, mimeType: 'image/png' };
const embedded = (uri: string, mimeType: string, written: string): Content => ({
  type: 'resource',
  resource: { uri, mimeType, text: written },
});

/** Tools with a fixed answer. */
const ANSWERS: Readonly<Record<string, readonly Content[]>> = {
  test_simple_text: [text('This is a simple text response for testing.')],
  test_image_content: [image],
  test_audio_content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }],
  test_embedded_resource: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  test_multiple_content_types: [
    text('Multiple content types test:'),
    image,
    embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
  json_schema_2020_12_tool: [text('called')],
};

const PLAIN = { type: 'object' as const };
const SCHEMA_2020_12 = {
  ...PLAIN,
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};
const NAMES = [...Object.keys(ANSWERS), 'test_error_handling', 'test_tool_with_progress', 'test_tool_with_logging'];

/** Answers after other messages of the same call. */
async function inSteps(name: string, progressToken: string | number, { mcpReq }: ServerContext): Promise<Content> {
  for (const progress of [0, 50, 100]) {
    if (name === 'test_tool_with_progress')
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
    else await mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data: `at ${progress}` } });
    await pause(20);
  }
  return text(String(progressToken));
}

const RESOURCES = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PIXEL },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched resource content' },
} as const;
const TEMPLATE = /^test:\/\/template\/([^/]+)\/data$/;

function readResource(uri: string) {
  const [, id] = TEMPLATE.exec(uri) ?? [];
  if (id !== undefined) {
    const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
    return { contents: [{ uri, mimeType: 'application/json', text: data }] };
  }
  if (!Object.hasOwn(RESOURCES, uri)) throw new ResourceNotFoundError(uri);
  return { contents: [{ uri, ...RESOURCES[uri as keyof typeof RESOURCES] }] };
}

const by = (content: Content): GetPromptResult['messages'][number] => ({ role: 'user', content });
type Prompt = {
  of: readonly string[];
  messages: (given: Readonly<Record<string, string>>) => GetPromptResult['messages'];
};
const PROMPTS: Readonly<Record<string, Prompt>> = {
  test_simple_prompt: { of: [], messages: () => [by(text('This is a simple prompt for testing.'))] },
  test_prompt_with_arguments: {
    of: ['arg1', 'arg2'],
    messages: ({ arg1, arg2 }) => [by(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  },
  test_prompt_with_embedded_resource: {
    of: ['resourceUri'],
    messages: ({ resourceUri = '' }) => [
      by(embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.')),
      by(text('Please process the embedded resource above.')),
    ],
  },
  test_prompt_with_image: { of: [], messages: () => [by(image), by(text('Please analyze the image above.'))] },
};

export const CONFORMANCE: ServerExtension = {
  scopesOf: () => undefined,
  extend(server) {
    server.registerCapabilities({
      tools: {},
      resources: { subscribe: true },
      prompts: {},
      logging: {},
      completions: {},
    });
    server.setRequestHandler('tools/list', () => ({
      tools: NAMES.map((name) => {
        const inputSchema = name === 'json_schema_2020_12_tool' ? SCHEMA_2020_12 : PLAIN;
        return { name, description: name.replaceAll('_', ' '), inputSchema };
      }),
    }));
    server.setRequestHandler('tools/call', async ({ params: { name, _meta } }, context): Promise<CallToolResult> => {
      if (ANSWERS[name]) return { content: [...ANSWERS[name]] };
      if (name === 'test_error_handling')
        return { content: [text('This tool intentionally returns an error for testing')], isError: true };
      if (!NAMES.includes(name)) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `unknown tool ${name}`);
      return { content: [await inSteps(name, _meta?.progressToken ?? 0, context)] };
    });
    server.setRequestHandler('resources/list', () => ({
      resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({ uri, name: uri, mimeType })),
    }));
    server.setRequestHandler('resources/templates/list', () => ({
      resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }],
    }));
    server.setRequestHandler('resources/read', ({ params }) => readResource(params.uri));
    server.setRequestHandler('resources/subscribe', () => ({}));
    server.setRequestHandler('resources/unsubscribe', () => ({}));
    server.setRequestHandler('prompts/list', () => ({
      prompts: Object.entries(PROMPTS).map(([name, prompt]) => ({
        ...{ name, description: name.replaceAll('_', ' ') },
        arguments: prompt.of.map((argument) => ({ name: argument, description: argument, required: true })),
      })),
    }));
    server.setRequestHandler('prompts/get', ({ params }) => ({
      messages: PROMPTS[params.name]?.messages(params.arguments ?? {}) ?? [],
    }));
    server.setRequestHandler('completion/complete', () => ({ completion: { values: [], total: 0, hasMore: false } }));
    server.setRequestHandler('logging/setLevel', () => ({}));
  },
};
