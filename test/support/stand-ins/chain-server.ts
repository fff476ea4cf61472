/**
 * A chain server for tests, on stdio, with the tool names of the sources: balances of 256 bits, and one transfer for
 * each request. A file records its transfers, one JSON line each, and outlives it.
 *
 * `node chain-server.ts <file>`; it writes JSON by hand, because its numbers have more digits than JavaScript keeps.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [, , FILE = ''] = process.argv;
/** 2^256 − 1. */
export const MOST = '115792089237316195423570985008687907853269984665640564039457584007913129639935';

type Args = Readonly<Record<string, string>>;
type Line = { request_id: string; state: 'confirmed' | 'closed'; args?: Args };

const text = { type: 'string' };
const tool = (name: string, properties: object, description: string) => ({
  name,
  description,
  inputSchema: { type: 'object', properties, required: Object.keys(properties), additionalProperties: false },
});
const order = { to: text, token: text, amount: { type: 'string', pattern: '^(0|[1-9][0-9]{0,77})$' } };
const TOOLS = [
  tool('get_balance', { address: text }, 'The balance of an address, in the smallest unit.'),
  tool('transfer', { ...order, request_id: text }, 'Sends a token to an address.'),
  tool('simulate_transfer', order, 'Shows the effect of a transfer.'),
  tool('get_transfer', { request_id: text }, 'Shows the outcome of a transfer, and closes an unknown request.'),
];

const lines = (): Line[] =>
  existsSync(FILE)
    ? readFileSync(FILE, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Line)
    : [];
const known = (id: string) => lines().find(({ request_id }) => request_id === id);
const write = (line: Line) => appendFileSync(FILE, `${JSON.stringify(line)}\n`);

/** The JSON text of a call's result; `undefined` when it fails. */
function answer(name: string, args: Args): string | undefined {
  const id = args.request_id ?? '';
  switch (name) {
    case 'get_balance':
      return `{"address":${JSON.stringify(args.address)},"balance":"${MOST}","wei":${MOST}}`;
    case 'simulate_transfer':
      return `{"fee":"21000","after":"0"}`;
    case 'get_transfer':
      if (!known(id)) write({ request_id: id, state: 'closed' });
      return JSON.stringify({ state: known(id)!.state });
    case 'transfer':
      if (known(id)?.state === 'closed') return undefined;
      if (!known(id)) write({ request_id: id, state: 'confirmed', args });
      return `{"tx_hash":"0x${Buffer.from(id).toString('hex').slice(0, 40)}"}`;
    default:
      return undefined;
  }
}

function resultOf(
  method: string,
  params: { name?: string; arguments?: Args; protocolVersion?: string },
): string | undefined {
  if (method === 'initialize') {
    const serverInfo = { name: 'paxeer-net', version: '1.0.0' };
    return JSON.stringify({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
  }
  if (method === 'tools/list') return JSON.stringify({ tools: TOOLS });
  if (method === 'ping') return '{}';
  if (method !== 'tools/call') return undefined;
  const made = answer(params.name!, params.arguments ?? {});
  const contentOf = (content: string) => `[{"type":"text","text":${JSON.stringify(content)}}]`;
  if (made === undefined) return `{"content":${contentOf('this request is closed')},"isError":true}`;
  return `{"content":${contentOf(made)},"structuredContent":${made}}`;
}

if (import.meta.main) {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params = {} } = JSON.parse(line) as { id?: number; method: string; params?: object };
    if (id === undefined) return;
    const result = resultOf(method, params);
    const body = result === undefined ? '"error":{"code":-32601,"message":"no such method"}' : `"result":${result}`;
    process.stdout.write(`{"jsonrpc":"2.0","id":${id},${body}}\n`);
  });
}
