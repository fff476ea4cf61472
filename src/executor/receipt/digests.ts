/** The hashes in an envelope's body that can be taken again from what stands beside them. Pure. */
import type { BoundCall, CompileRead, ReceiptEntry } from './bodies.ts';
import { callSha256, digestOf, sha256Hex } from './envelope.ts';

/** A hash that is not the one of what stands beside it. */
export type WrongDigest = { readonly field: string; readonly expected: string; readonly found: string };

function compare(field: string, expected: string, found: string): WrongDigest | undefined {
  return expected === found ? undefined : { field, expected, found };
}

function ofArgs(field: string, { args, args_sha256 }: { args: unknown; args_sha256: string }): WrongDigest | undefined {
  return compare(`${field}args_sha256`, digestOf(args), args_sha256);
}

function ofCall({ tool, args, args_sha256, call_sha256 }: BoundCall): WrongDigest | undefined {
  return (
    compare('body.call.args_sha256', digestOf(args), args_sha256) ??
    compare('body.call.call_sha256', callSha256(tool, args), call_sha256)
  );
}

function ofReads(reads: readonly CompileRead[]): WrongDigest | undefined {
  for (const [at, read] of reads.entries()) {
    const wrong = ofArgs(`body.reads.${at}.`, read);
    if (wrong) return wrong;
  }
  return undefined;
}

/** @returns the first that is wrong */
export function wrongDigest({ kind, body }: ReceiptEntry): WrongDigest | undefined {
  switch (kind) {
    case 'intent.compiled':
    case 'intent.clarify':
      return ofReads(body.reads);
    case 'call.decided':
    case 'call.started':
      return ofCall(body.call);
    case 'call.tried':
      return ofArgs('body.', body);
    case 'gate.asked':
      return compare('body.displayed_sha256', sha256Hex(body.displayed), body.displayed_sha256);
    default:
      return undefined;
  }
}
