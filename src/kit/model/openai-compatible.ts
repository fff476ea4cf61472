/**
 * Any endpoint that speaks OpenAI's chat completions. This file is loaded with the first request: the provider packages
 * would slow every start down.
 */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { Model } from './model.ts';
import { type EndpointOptions, fetchWithoutRedirects, streamedModel } from './streamed.ts';

/** Makes the model; `baseUrl` is the address up to and without `/chat/completions`. */
export function openAICompatibleModel(options: EndpointOptions): Model {
  const { baseUrl, model, apiKey } = options;
  const provider = createOpenAICompatible({
    name: 'endpoint',
    baseURL: baseUrl,
    fetch: fetchWithoutRedirects,
    includeUsage: true,
    ...(apiKey === undefined ? {} : { apiKey }),
  });
  const manners = { imagesInResults: false, verbatimInput: true, canForbidCalls: true };
  return streamedModel(provider.chatModel(model), manners, options);
}
