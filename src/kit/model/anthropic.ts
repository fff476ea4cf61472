/** Anthropic's own interface. Loaded with the first request, like the other provider. */
import { createAnthropic } from '@ai-sdk/anthropic';
import type { Model } from './model.ts';
import { type EndpointOptions, fetchWithoutRedirects, streamedModel } from './streamed.ts';

/** Creates the model; `baseUrl` is the address without `/messages`. */
export function anthropicModel(options: EndpointOptions): Model {
  const { baseUrl, model, apiKey } = options;
  const provider = createAnthropic({
    baseURL: baseUrl,
    fetch: fetchWithoutRedirects,
    // Without a key, the package would search the environment for one.
    apiKey: apiKey ?? '',
  });
  // The interface cannot forbid calls while tools are sent, and refuses earlier calls when none are.
  const traits = { imagesInResults: true, verbatimInput: false, canForbidCalls: false };
  return streamedModel(provider(model), traits, options);
}
