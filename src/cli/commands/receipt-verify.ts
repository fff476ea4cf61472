/** `reveille receipt verify`: verifies receipts on any computer, with the file alone. */
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { readValues, type Unreadable } from '../../executor/receipt/receipt-text.ts';
import { verifyReceipts } from '../../executor/receipt/verify-receipt.ts';
import { AgentKey } from '../../kit/identity/keys.ts';
import { parseDid } from '../../wire/did.ts';
import { thrownText } from '../../wire/errors.ts';
import { EXIT } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { factsOf, linesOf } from '../screens/receipt-text.ts';

export type VerifyFlags = { key?: string; trustEmbedded?: boolean; approver?: string[] };

/** A receipt has some kilobytes; files are read whole. */
const MAX_BYTES = 256 * 1024 * 1024;
const KEY_FILE_MAX_BYTES = 1024;
const APPROVER_FILE_MAX_BYTES = 16 * 1024;
const HEX = /^[0-9a-f]{64}$/i;

async function readBytes({ process }: CliContext, file: string, name: string): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let total = 0;
  try {
    for await (const piece of file === '-' ? process.stdin : createReadStream(file)) {
      pieces.push(piece as Buffer);
      total += (piece as Buffer).length;
      if (total > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes; verify it in parts`);
    }
  } catch (thrown) {
    throw new UsageError(`${name} cannot be read: ${thrownText(thrown)}`, thrown);
  }
  return Buffer.concat(pieces);
}

/** The trimmed text of a file. @param rule what the flag must be */
function smallFile(file: string, maxBytes: number, rule: string): string {
  try {
    if (statSync(file).size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`);
    return readFileSync(file, 'utf8').trim();
  } catch (thrown) {
    throw new UsageError(`${rule} (${file}: ${thrownText(thrown)})`, thrown);
  }
}

/** The key as hex digits. A file may contain the public key, its id, or the executor's own key. */
function keysIn(given: string): readonly string[] {
  if (HEX.test(given)) return [given.toLowerCase()];
  if (given.startsWith('did:')) {
    const did = parseDid(given);
    if (did) return [did.fingerprint];
    throw new UsageError(`--key must look like did:matrix:<label>:<16 hex digits> (got ${given})`);
  }
  const text = smallFile(given, KEY_FILE_MAX_BYTES, '--key must be 64 hex digits, a did, or a file that can be read');
  // Its content is not repeated: it may be the secret itself.
  if (!HEX.test(text)) throw new UsageError(`--key: ${given} must contain 64 hex digits and nothing else`);
  return [text.toLowerCase(), new AgentKey(text).publicKeyHex];
}

const approverFileSchema = z.union([
  z.object({ public_key: z.string().regex(HEX) }).transform(({ public_key }) => public_key),
  z.object({ approver: z.string().regex(HEX) }).transform(({ approver }) => approver),
]);

/** The public key of an approver. A file may contain its digits, the approver's key, or the output of "approver show --json". */
function approverIn(given: string): string {
  if (HEX.test(given)) return given.toLowerCase();
  const text = smallFile(
    given,
    APPROVER_FILE_MAX_BYTES,
    '--approver must be 64 hex digits, or a file that can be read',
  );
  if (HEX.test(text)) return text.toLowerCase();
  try {
    return approverFileSchema.parse(JSON.parse(text)).toLowerCase();
  } catch (thrown) {
    throw new UsageError(`--approver: ${given} must contain a public key: 64 hex digits, or JSON with one`, thrown);
  }
}

/** @returns `undefined` when the bytes are not UTF-8 */
function decoded(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (thrown) {
    if (thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

/** @throws UsageError on a terminal, where no input would come */
function piped({ process }: CliContext): string {
  if (process.stdin.isTTY !== true) return '-';
  throw new UsageError('name a file, or pipe a receipt: reveille intent receipt <id> | reveille receipt verify');
}

function reportUnreadable({ out }: CliContext, file: string, { line, column, message }: Unreadable): void {
  out.result({ file, line, valid: false, broken: { property: 'unreadable', line, column, message } }, [
    out.paint('red', `Broken: ${file}, line ${line}, column ${column}: ${message}`),
    '  Readers may disagree about this text. Receipts before it were verified.',
  ]);
}

/**
 * Verifies each receipt of a file. Exit status 0: all are valid and an expected key was given. 1: one is invalid, there
 * is none, or no expected key was given.
 *
 * @param given the file; without it, or with `-`, standard input
 * @throws UsageError when there is no file, or it or the key cannot be read
 */
export async function receiptVerify(context: CliContext, flags: VerifyFlags, given?: string): Promise<void> {
  const { out } = context;
  const file = given ?? piped(context);
  const keys = flags.key === undefined ? undefined : keysIn(flags.key);
  const approvers = flags.approver?.map(approverIn);
  const trustsEmbedded = flags.trustEmbedded === true;
  if (keys && trustsEmbedded) throw new UsageError('--key and --trust-embedded exclude each other');
  const name = file === '-' ? 'standard input' : file;
  const text = decoded(await readBytes(context, file, name));
  if (text === undefined) {
    reportUnreadable(context, name, { line: 1, column: 1, message: 'it is not UTF-8' });
    context.process.exitCode = EXIT.failed;
    return;
  }
  let receipts = 0;
  let broken = 0;
  for await (const checked of verifyReceipts(readValues(text), { keys, approvers })) {
    receipts++;
    if ('unreadable' in checked) {
      broken++;
      reportUnreadable(context, name, checked.unreadable);
      continue;
    }
    const { line, report } = checked;
    if (report.broken) broken++;
    const keyExpected = keys !== undefined && report.broken?.property !== 'key';
    const named = { keyNamed: keys !== undefined, approverExpected: approvers !== undefined };
    const place = { file: name, line, keyExpected, trustsEmbedded, ...named };
    if (receipts > 1) out.line();
    out.result(factsOf(report, place), out.json ? [] : linesOf(report, place, out));
  }
  if (receipts === 0) {
    reportUnreadable(context, name, { line: 1, column: 1, message: 'it is empty: it contains no receipt' });
    broken++;
  }
  if (receipts > 1) out.line(`\n${receipts} receipts, ${broken} of them broken`);
  if (broken > 0 || (keys === undefined && !trustsEmbedded)) context.process.exitCode = EXIT.failed;
}
