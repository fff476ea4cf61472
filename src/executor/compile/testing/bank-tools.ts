/** A toolbox with a few tools of a bank. They give the test's answers and record their calls. */
import { digestOf, type ToolDefinition } from '../../../mcp-host/tool-definition.ts';
import type { CallReport, RailTool, Toolbox } from '../../tools/toolbox.ts';

type Made = { readonly name: string; readonly args: Readonly<Record<string, unknown>> };

function tool(
  name: string,
  properties: Record<string, object>,
  others: Partial<RailTool> & { required?: string[] } & Pick<ToolDefinition, 'annotations' | 'outputSchema'> = {},
): RailTool {
  const { required = [], annotations, outputSchema, ...rest } = others;
  const definition: ToolDefinition = {
    name: name.split('/')[1]!,
    description: `${name} of a bank`,
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
    ...(annotations === undefined ? {} : { annotations }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
  };
  return {
    name,
    uri: `matrix://tool/mcp/${name}@1`,
    definition,
    definitionSha256: digestOf(definition),
    surface: 'natural',
    sideEffectClass: undefined,
    rail: undefined,
    ...rest,
  };
}

const text = { type: 'string' };
const BANK_TOOLS: readonly RailTool[] = [
  tool(
    'bank/transfer',
    {
      from: text,
      to: text,
      amount: { type: ['number', 'string'] },
      currency: { type: 'string', enum: ['USD', 'EUR'] },
      memo: text,
      urgent: { type: 'boolean' },
      network: { type: 'string', default: 'internal' },
      idempotency_key: text,
    },
    {
      surface: 'escalate',
      required: ['to', 'amount'],
      rail: { idempotency_key: 'idempotency_key', amount: '/amount' },
    },
  ),
  tool(
    'bank/pay_many',
    { payments: { type: 'array', items: { $ref: '#/$defs/payment' } }, labels: { type: 'object' } },
    { surface: 'escalate' },
  ),
  tool(
    'bank/exchange',
    { amount: text, from_currency: text },
    {
      surface: 'escalate',
      required: ['amount', 'from_currency'],
      outputSchema: { type: 'object', properties: { received: { type: 'object', properties: { amount: text } } } },
    },
  ),
  tool(
    'chronos/alarm_set',
    {
      kind: { type: 'string', enum: ['once', 'cron'] },
      delay_seconds: { type: 'number' },
      ...{ wake_message: text, label: text, conversation_id: text },
    },
    { sideEffectClass: 'write', required: ['kind', 'wake_message'], rail: { chosen: ['/kind'], repeatable: true } },
  ),
  tool('bank/balance', { account: text }, { sideEffectClass: 'read' }),
  tool('bank/find', { query: text }, { annotations: { readOnlyHint: true } }),
  tool('bank/note', { text }, { sideEffectClass: 'write', annotations: { readOnlyHint: true } }),
  tool('bank/peek', { account: text }, { surface: 'escalate', sideEffectClass: 'read' }),
];

const DEFS = { payment: { type: 'object', properties: { to: text, amount: { type: 'number' } } } };

/** @param answer the answer of a call; a text means an answer with this text */
export function bankToolbox(
  answer: (made: Made, signal: AbortSignal) => string | CallReport | Promise<CallReport> = () => '{}',
) {
  const made: Made[] = [];
  const tools = BANK_TOOLS.map((one) =>
    one.name === 'bank/pay_many'
      ? { ...one, definition: { ...one.definition, inputSchema: { ...one.definition.inputSchema, $defs: DEFS } } }
      : one,
  );
  const toolbox: Toolbox = {
    manifestSha256: '0'.repeat(64),
    tools: () => tools,
    find: (name) => tools.find((one) => one.name === name),
    absence: (name) =>
      `the tool ${JSON.stringify(name)} does not exist; the tools are: ${tools.map((one) => one.name).join(', ')}`,
    async call(name, args, { signal }) {
      made.push({ name, args });
      const given = await answer({ name, args }, signal);
      if (typeof given !== 'string') return given;
      return {
        status: 'answered',
        isError: false,
        text: given,
        structured: undefined,
        rawSha256: '1'.repeat(64),
        rawBytes: given.length,
      };
    },
    warnings: () => [],
    close: async () => {},
  };
  return { toolbox, made };
}
