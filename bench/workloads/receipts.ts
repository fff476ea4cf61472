/**
 * Rate of checking and writing receipts, compared with their bare signatures: one process, and one thread unless
 * stated.
 */
import { createPrivateKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import type { ReceiptEntry } from '../../src/executor/receipt/bodies.ts';
import { EMPTY_CHAIN, nextEnvelope } from '../../src/executor/receipt/chain.ts';
import { preAuthEncoding, unsignedText } from '../../src/executor/receipt/envelope.ts';
import { readValues } from '../../src/executor/receipt/receipt-text.ts';
import { verifyReceipt, verifyReceipts } from '../../src/executor/receipt/verify-receipt.ts';
import { KEY, receiptOf, seal } from '../../test/contract/receipt-vectors/sealing.ts';
import { transfer } from '../../test/contract/receipt-vectors/stories.ts';
import { rotated } from '../plan.ts';
import { median } from '../statistics.ts';
import type { Context } from './context.ts';

/** One operation; envelopes or signatures per second. */
export type ReceiptsRow = {
  way: ReceiptsWay;
  title: string;
  /** Bytes of an envelope on average. */
  bytes: number;
  median: number;
  /** The median ratio to the bare rate of the same round. */
  ofBare: number;
  rounds: number[];
};

const TITLES = {
  'bare-verify': 'bare verify of node:crypto',
  verify: 'check a receipt from its text',
  'verify-aside': 'check receipts, signatures on other threads',
  'bare-sign': 'bare sign of node:crypto',
  append: 'sign the next envelope',
} as const;
export type ReceiptsWay = keyof typeof TITLES;

const BARE_OF: { readonly [Way in ReceiptsWay]: ReceiptsWay } = {
  'bare-verify': 'bare-verify',
  verify: 'bare-verify',
  'verify-aside': 'bare-verify',
  'bare-sign': 'bare-sign',
  append: 'bare-sign',
};

/** Receipts in a file of JSON lines. */
const LINES = 32;

/** The work of one iteration, and its number of envelopes. */
function works(entries: readonly ReceiptEntry[]): { readonly [Way in ReceiptsWay]: () => number | Promise<number> } {
  const envelopes = seal(entries);
  const text = JSON.stringify(receiptOf(envelopes));
  const lines = `${text}\n`.repeat(LINES);
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const key = createPrivateKey(privateKey.export({ format: 'pem', type: 'pkcs8' }));
  const messages = envelopes.map((envelope) => Buffer.from(preAuthEncoding(unsignedText(envelope))));
  const signed = messages.map((message) => ({ message, signature: sign(null, message, key) }));
  return {
    'bare-verify': () => {
      for (const { message, signature } of signed)
        if (!verify(null, message, publicKey, signature)) throw new Error('a valid signature is rejected');
      return signed.length;
    },
    verify: () => {
      for (const read of readValues(text))
        if (!('value' in read) || verifyReceipt(read.value).broken) throw new Error('a valid receipt is rejected');
      return envelopes.length;
    },
    'verify-aside': async () => {
      for await (const checked of verifyReceipts(readValues(lines)))
        if (!('report' in checked) || checked.report.broken) throw new Error('a valid receipt is rejected');
      return envelopes.length * LINES;
    },
    'bare-sign': () => {
      for (const message of messages) sign(null, message, key);
      return messages.length;
    },
    append: () => {
      let head = EMPTY_CHAIN;
      for (const entry of entries) ({ head } = nextEnvelope({ head, entry, key: KEY }));
      return entries.length;
    },
  };
}

/** Rate per second over a window of this length. */
async function rateOf(work: () => number | Promise<number>, seconds: number): Promise<number> {
  const startedAt = performance.now();
  let done = 0;
  let took = 0;
  do {
    done += await work();
    took = performance.now() - startedAt;
  } while (took < seconds * 1000);
  return (done / took) * 1000;
}

/** Reads a receipt of a transfer, from its task to its end. */
export async function measureReceipts({ plan, progress }: Context): Promise<ReceiptsRow[]> {
  const ways = Object.keys(TITLES) as ReceiptsWay[];
  const work = works(transfer);
  const bytes = Math.round(Buffer.byteLength(JSON.stringify(receiptOf(seal(transfer)))) / transfer.length);
  const rates = new Map<ReceiptsWay, number[]>(ways.map((way) => [way, []]));
  for (const way of ways) await rateOf(work[way], 0.5);
  for (let round = 0; round < plan.rounds; round++) {
    progress.step(`receipts: round ${round + 1} of ${plan.rounds}`);
    for (const way of rotated(ways, round)) rates.get(way)!.push(await rateOf(work[way], plan.receipts.seconds));
  }
  return ways.map((way) => {
    const rounds = rates.get(way)!;
    const bare = rates.get(BARE_OF[way])!;
    const ofBare = median(rounds.map((rate, round) => rate / bare[round]!))!;
    return { way, title: TITLES[way], bytes, median: median(rounds)!, ofBare, rounds };
  });
}
