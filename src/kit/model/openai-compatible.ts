/**
 * Endpoints with OpenAI's chat completions. Loaded with the first request, because the provider packages would slow
 * down every start.
 */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { Model } from './model.ts';
import { type EndpointOptions, fetchWithoutRedirects, streamedModel } from './streamed.ts';

/** Creates the model; `baseUrl` is the address without `/chat/completions`. */
export function openAICompatibleModel(options: EndpointOptions): Model {
  const { baseUrl, model, apiKey } = options;
  const provider = createOpenAICompatible({
    name: 'endpoint',
    baseURL: baseUrl,
    fetch: fetchWithoutRedirects,
    includeUsage: true,
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  const traits = { imagesInResults: false, verbatimInput: true, canForbidCalls: true };
  return streamedModel(provider.chatModel(model), traits, options);
}
