/** The usage in outputs in the form of each program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OutputFormat } from '../preset.ts';
import { READERS } from './readers.ts';

function read(format: OutputFormat, output: object | readonly object[]) {
  const lines = Array.isArray(output) ? output.map((line) => JSON.stringify(line)).join('\n') : JSON.stringify(output);
  const silent = { text: '', whole: true };
  const { usage, sessionUsage } = READERS[format](
    { stdout: { text: lines, whole: true }, stderr: silent },
    { code: 0 },
  );
  return { usage, sessionUsage };
}

const CLAUDE = {
  ...{ type: 'result', subtype: 'success', is_error: false, num_turns: 3, result: 'ok', session_id: 's-1' },
  total_cost_usd: 0.1234567,
  usage: {
    ...{ input_tokens: 4, cache_creation_input_tokens: 1500, cache_read_input_tokens: 12_000, output_tokens: 300 },
    server_tool_use: { web_search_requests: 0 },
    service_tier: 'standard',
  },
};

test('claude reports tokens, cached ones apart, and its cost; the models of subagents count too', () => {
  const cost = { cost_usd: 0.1234567 };
  assert.deepEqual(read('claude-json', CLAUDE).usage, { input_tokens: 13_504, output_tokens: 300, ...cost });
  const one = { inputTokens: 4, outputTokens: 300, cacheReadInputTokens: 12_000, cacheCreationInputTokens: 1500 };
  const modelUsage = {
    'claude-opus': { ...one, webSearchRequests: 0, costUSD: 0.12, contextWindow: 200_000 },
    'claude-haiku': { inputTokens: 700, outputTokens: 20, costUSD: 0.003 },
  };
  assert.deepEqual(read('claude-json', { ...CLAUDE, modelUsage }).usage, {
    ...{ input_tokens: 14_204, output_tokens: 320 },
    ...cost,
  });
  const failed = { ...CLAUDE, subtype: 'error_max_turns', result: undefined };
  assert.deepEqual(read('claude-json', failed).usage, { input_tokens: 13_504, output_tokens: 300, ...cost });
});

test('codex reports the count of its whole thread', () => {
  const usage = { input_tokens: 24_763, cached_input_tokens: 24_448, output_tokens: 122, reasoning_output_tokens: 64 };
  const events = [
    { type: 'thread.started', thread_id: 't-1' },
    { type: 'turn.started' },
    { type: 'turn.completed', usage },
  ];
  assert.deepEqual(read('codex-jsonl', events), {
    usage: undefined,
    sessionUsage: { input_tokens: 24_763, output_tokens: 122 },
  });
});

test('gemini reports tokens by model; thoughts are output, and tools are input', () => {
  const model = { api: { totalRequests: 2 } };
  const stats = {
    models: {
      'gemini-pro': {
        ...model,
        tokens: { prompt: 900, candidates: 40, total: 1000, cached: 500, thoughts: 50, tool: 10 },
      },
      'gemini-flash': { ...model, tokens: { prompt: 100, candidates: 5, total: 105, cached: 0, thoughts: 0, tool: 0 } },
    },
    tools: { totalCalls: 1 },
  };
  const answer = { session_id: 's-1', response: 'ok', stats };
  assert.deepEqual(read('gemini-json', answer).usage, { input_tokens: 1010, output_tokens: 95 });
});

test('usage that is missing, or is none, is unknown, and the turn is read nevertheless', () => {
  const { usage: _, ...bare } = CLAUDE;
  assert.equal(read('claude-json', bare).usage, undefined);
  for (const usage of [
    'many',
    {},
    { input_tokens: 1 },
    { input_tokens: -5, output_tokens: 1 },
    { input_tokens: '1', output_tokens: 1 },
  ])
    assert.equal(read('claude-json', { ...CLAUDE, usage }).usage, undefined, JSON.stringify(usage));
  assert.equal(read('codex-jsonl', [{ type: 'turn.completed' }]).sessionUsage, undefined);
  assert.equal(read('codex-jsonl', [{ type: 'turn.completed', usage: { input_tokens: 1 } }]).sessionUsage, undefined);
  for (const stats of [
    undefined,
    {},
    { models: {} },
    { models: { a: {} } },
    { models: { a: { tokens: { prompt: 1 } } } },
  ])
    assert.equal(read('gemini-json', { response: 'ok', stats }).usage, undefined, JSON.stringify(stats));
  assert.equal(read('plain-text', {}).usage, undefined);
});
