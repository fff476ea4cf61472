/** A toolbox for tests: a bank in memory that outlives its executors and can be made to misbehave. */
import { createHash } from 'node:crypto';
import { digestOf, type ToolDefinition } from '../../../mcp-host/tool-definition.ts';
import type { Rail } from '../../../wire/manifest.ts';
import type { CallReport, RailTool, Toolbox } from '../../tools/toolbox.ts';

type Args = Readonly<Record<string, unknown>>;
export type Made = { readonly tool: string; readonly args: Args };

const text = { type: 'string' };

/** @param source the JSON text of the result; default: the one of `structured` */
export function answered(
  structured: unknown,
  said = JSON.stringify(structured),
  source: string | undefined = structured === undefined ? undefined : JSON.stringify(structured),
): CallReport {
  const rawSha256 = createHash('sha256').update(said).digest('hex');
  return {
    status: 'answered',
    isError: false,
    text: said,
    structured,
    source,
    rawSha256,
    rawBytes: Buffer.byteLength(said),
  };
}

export function refused(said: string): CallReport {
  return { ...(answered(undefined, said) as CallReport & { status: 'answered' }), isError: true };
}

function definition(
  name: string,
  properties: Record<string, unknown>,
  more: Partial<ToolDefinition> = {},
): ToolDefinition {
  const inputSchema = { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
  return { name, description: `The bank's ${name}.`, inputSchema, ...more };
}

const transferArgs = { to: text, amount: text, currency: text, key: text };
const TRANSFER_RAIL: Rail = {
  idempotency_key: 'key',
  dry_run: { tool: 'simulate', args: { amount: '$args/amount' } },
  status: { tool: 'status', args: { key: '$key' }, field: '/status', done: ['done'], not_done: ['not_done'] },
  read_back: { tool: 'balance', args: { of: '$args/to' } },
  amount: '/amount',
  recipient: '/to',
  currency: '/currency',
  references: ['/id'],
};

export type Bank = {
  readonly toolbox: Toolbox;
  /** Every call that reached it. */
  readonly calls: Made[];
  /** Transfers that took effect, by their key. */
  readonly transfers: Map<string, Args>;
  /** Answers instead of the bank; `undefined` lets it answer itself. */
  misbehave: ((tool: string, args: Args, carryOut: () => CallReport) => Promise<CallReport> | undefined) | undefined;
  /** Sets the server's description of transfer. */
  describe(description: string): void;
  /** The names of missing tools. */
  absent: Set<string>;
};

export function createBank(): Bank {
  const calls: Made[] = [];
  const transfers = new Map<string, Args>();
  const closedKeys = new Set<string>();
  const absent = new Set<string>();
  let described = 'Moves money.';

  const tools = (): RailTool[] => {
    const of = (
      { name, ...rest }: ToolDefinition,
      surface: RailTool['surface'],
      sideEffectClass: RailTool['sideEffectClass'],
      rail?: Rail,
    ): RailTool => {
      const whole = { name, ...rest };
      return {
        name: `bank/${name}`,
        uri: `matrix://tool/mcp/bank/${name}@1.0.0`,
        definition: whole,
        definitionSha256: digestOf(whole),
        surface,
        sideEffectClass,
        rail,
      };
    };
    return [
      of(definition('transfer', transferArgs, { description: described }), 'escalate', 'write', TRANSFER_RAIL),
      of(definition('wire', { to: text, amount: text }), 'escalate', 'write', { amount: '/amount' }),
      of(definition('exchange', { amount: text, into: text }), 'escalate', 'write'),
      of(definition('simulate', { amount: text }), 'natural', 'read'),
      of(definition('status', { key: text }), 'natural', 'write'),
      of(definition('balance', { of: text }), 'natural', 'read'),
      of(definition('note', { text }), 'natural', 'write'),
    ].filter(({ name }) => !absent.has(name));
  };

  const carryOut = (tool: string, args: Args): CallReport => {
    const key = args.key as string;
    switch (tool) {
      case 'bank/transfer':
        if (closedKeys.has(key)) return refused('this key is closed');
        transfers.set(key, args);
        return answered({ id: `t-${transfers.size}`, to: args.to });
      case 'bank/wire':
        transfers.set(`wire ${calls.length}`, args);
        return answered(undefined, 'wired');
      case 'bank/exchange':
        return answered({ received: { amount: '4975.00', currency: args.into } });
      case 'bank/simulate':
        return answered({ ok: true }, 'this would move the money');
      case 'bank/status':
        if (!transfers.has(key)) closedKeys.add(key);
        return answered({ status: transfers.has(key) ? 'done' : 'not_done' });
      default:
        return answered({ of: args.of ?? null, balance: '100.00' });
    }
  };

  const bank: Bank = {
    calls,
    transfers,
    misbehave: undefined,
    absent,
    describe(description) {
      described = description;
    },
    toolbox: {
      manifestSha256: 'a'.repeat(64),
      tools,
      find: (name) => tools().find((tool) => tool.name === name),
      absence: (name) => `there is no tool ${name}`,
      async call(name, args) {
        calls.push({ tool: name, args });
        return (await bank.misbehave?.(name, args, () => carryOut(name, args))) ?? carryOut(name, args);
      },
      warnings: () => [],
      close: async () => {},
    },
  };
  return bank;
}
