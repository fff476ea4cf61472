/**
 * The stdio MCP server behind `reveille ledger`: play money for trying the executor, with the same guarantees as real
 * money.
 */
import type { Readable, Writable } from 'node:stream';
import { type CallToolResult, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { type Clock, systemClock } from '../../src/kit/clock/clock.ts';
import type { Logger } from '../../src/kit/log/log.ts';
import { type ServedConnection, serveUntilDisconnect } from '../../src/kit/mcp/serve.ts';
import { toReveilleError, wireErrorOf } from '../../src/wire/errors.ts';
import { shortText } from '../../src/wire/text.ts';
import { type Book, openBook } from './book.ts';

/** Part of the tools' URIs. */
const LEDGER_VERSION = '0.1.0';

const account = z.string().min(1).max(64).describe('the name of an account');
const amount = z.string().min(1).max(20).describe('a decimal number above zero, as text: "12.50"');
const currency = z
  .string()
  .regex(/^[A-Z]{3}$/)
  .describe('an ISO 4217 code: "EUR"');
const keyOf = (what: string) => z.string().min(1).max(300).describe(`chosen by the caller, a new one for each ${what}`);

const order = { from: account, to: account, amount, currency };
const orderSchema = z.strictObject({ ...order, memo: shortText(200).optional().describe('a remark for both sides') });
const transferSchema = orderSchema.extend({ idempotency_key: keyOf('transfer') });
const exchangeOrderSchema = z.strictObject({
  ...order,
  to: account.describe('the name of an account in the target currency'),
});
const exchangeSchema = exchangeOrderSchema.extend({ idempotency_key: keyOf('exchange') });

const balances = z.array(z.object({ account: z.string(), balance: z.string(), currency: z.string() }));
const madeSchema = z.object({
  transfer_id: z.string(),
  from: z.string(),
  to: z.string(),
  amount: z.string(),
  currency: z.string(),
  memo: z.string().optional(),
  made_at: z.string(),
});
const exchanged = {
  from: z.string(),
  to: z.string(),
  amount: z.string(),
  currency: z.string(),
  received: z.object({ amount: z.string(), currency: z.string() }),
  rate: z.string(),
};
const exchangedSchema = z.object({ exchange_id: z.string(), ...exchanged, made_at: z.string() });
const ROUNDED = 'The result is amount times rate, rounded down to the cent.';

export type LedgerOptions = {
  /** The folder of `ledger.db`. */
  dataDir: string;
  log: Logger;
  clock?: Clock;
  input?: Readable;
  output?: Writable;
};

function createServer(book: Book, log: Logger): McpServer {
  /** An error of the order goes to its author; an error of the ledger goes to the log as well. */
  const answer = (make: () => object): CallToolResult => {
    try {
      const made = make();
      return { content: [{ type: 'text', text: JSON.stringify(made) }], structuredContent: { ...made } };
    } catch (thrown) {
      const error = toReveilleError(thrown);
      if (error.code === 'internal' || error.code === 'unavailable') log.error({ err: thrown }, 'the ledger failed');
      return { content: [{ type: 'text', text: JSON.stringify(wireErrorOf(error)) }], isError: true };
    }
  };
  const server = new McpServer(
    { name: 'ledger', title: 'Ledger: play money', version: LEDGER_VERSION },
    { instructions: 'A ledger of play money. Nothing in it is worth anything; it behaves as if it were.' },
  );
  server.registerTool(
    'accounts',
    {
      title: 'Accounts',
      description: 'The balance of each account; of all accounts, or of the named ones.',
      inputSchema: z.strictObject({ accounts: z.array(account).min(1).max(100).optional() }),
      outputSchema: z.object({ accounts: balances }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ({ accounts }) => answer(() => ({ accounts: book.accounts(accounts) })),
  );
  server.registerTool(
    'transfer',
    {
      title: 'Transfer',
      description:
        'Moves money from one account to another. With the same idempotency_key and the same arguments it is done once, however often it is called.',
      inputSchema: transferSchema,
      outputSchema: madeSchema,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    ({ idempotency_key, ...given }) => answer(() => book.transfer(given, idempotency_key)),
  );
  server.registerTool(
    'exchange',
    {
      title: 'Exchange',
      description: `Exchanges money of one account for the currency of another, at the current rate of the ledger. ${ROUNDED} With the same idempotency_key and the same arguments it is done once and at one rate, however often it is called.`,
      inputSchema: exchangeSchema,
      outputSchema: exchangedSchema,
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    ({ idempotency_key, ...given }) => answer(() => book.exchange(given, idempotency_key)),
  );
  server.registerTool(
    'quote',
    {
      title: 'Quote',
      description: `Shows the result of an exchange at the current rate of the ledger; moves nothing. ${ROUNDED}`,
      inputSchema: exchangeOrderSchema,
      outputSchema: z.object({ ...exchanged, before: balances, after: balances }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    (given) => answer(() => book.quote(given)),
  );
  server.registerTool(
    'simulate',
    {
      title: 'Simulate a transfer',
      description: 'Checks a transfer and shows the balances after it; moves nothing.',
      inputSchema: orderSchema,
      outputSchema: z.object({ before: balances, after: balances }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    (given) => answer(() => book.simulate(given)),
  );
  server.registerTool(
    'status',
    {
      title: 'Status of a transfer or an exchange',
      description:
        'Shows whether the transfer or the exchange with this idempotency_key was made. The call closes an unused key: nothing can be made with it afterwards, so "not_done" stays true.',
      inputSchema: z.strictObject({ idempotency_key: keyOf('transfer') }),
      outputSchema: z.object({
        status: z.enum(['done', 'not_done']),
        transfer_id: z.string().optional(),
        exchange_id: z.string().optional(),
      }),
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    },
    ({ idempotency_key }) => answer(() => book.status(idempotency_key)),
  );
  return server;
}

/**
 * Serves MCP on stdin and stdout until the client disconnects.
 *
 * @throws ReveilleError when the book cannot be opened
 */
export function startLedger({ dataDir, log, clock = systemClock, ...streams }: LedgerOptions): ServedConnection {
  const book = openBook(dataDir, clock);
  return serveUntilDisconnect({
    factory: () => createServer(book, log),
    onerror: (error) => log.warn({ reason: error.message }, 'MCP connection'),
    onEnd: () => book.close(),
    ...streams,
  });
}
