/** The result of a receipt verification: lines for a terminal, one object for programs. Pure. */
import {
  callStateOf,
  callsOf,
  type Ending,
  endOf,
  type Gate,
  type NodeRecord,
} from '../../executor/receipt/chain-state.ts';
import type { BrokenProperty } from '../../executor/receipt/verify.ts';
import type { ReceiptReport } from '../../executor/receipt/verify-receipt.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { DENIAL_CODES } from '../../wire/executor.ts';
import { wrap } from './columns.ts';
import type { Output } from './output.ts';

/** Characters that identify an intent or a call; the receipt has the whole text. */
const SHOWN_CHARACTERS = 2000;
const LABEL_WIDTH = 12;

/** Where a receipt is, and whether its key was expected. */
export type ReceiptSource = {
  readonly file: string;
  readonly line: number;
  readonly keyExpected: boolean;
  /** Whether the caller named a key. */
  readonly keyNamed: boolean;
  /** The caller accepts the key in the file. */
  readonly trustsEmbedded: boolean;
  /** Whether the caller named expected approvers. */
  readonly approverExpected: boolean;
};

type Words = Pick<Output, 'paint' | 'columns'>;

const MEANING: { readonly [Property in BrokenProperty]: string } = {
  malformed: 'This is not a receipt of an executor.',
  key: 'It may be a valid receipt of another executor, not of the one you named.',
  seq: 'Envelopes are missing, added or moved. Entries before it are valid; nothing after it is reliable.',
  key_id:
    'The envelope was written with another key, or changed. Entries before it are valid; nothing after it is reliable.',
  prev_hash: 'The chain was cut and joined. Entries before it may be exchanged as well; nothing after it is reliable.',
  signature:
    'This envelope was written or changed without the key. Entries before it are valid; nothing after it is reliable.',
  digest: 'The signature is valid: the executor itself wrote a wrong hash. Do not trust this step.',
  approver: 'The receipt itself is valid, but no key that you named approved this call.',
  story: 'The signature is valid: the executor itself wrote entries in an impossible order.',
};

function shown(text: string): string {
  const line = oneLine(text);
  return line.length > SHOWN_CHARACTERS ? `${line.slice(0, SHOWN_CHARACTERS).toWellFormed()}…` : line;
}

function labelled(label: string, text: string, { columns }: Words): string[] {
  const [first, ...more] = wrap(text, Math.max(30, columns - LABEL_WIDTH - 4));
  const indent = ' '.repeat(LABEL_WIDTH + 4);
  return [`  ${label.padEnd(LABEL_WIDTH)}  ${first}`, ...more.map((line) => `${indent}${line}`)];
}

/** Who allowed the call, as a sentence. */
function consentOf({ decided, gate }: NodeRecord): string {
  if (!decided) return 'the policy did not decide about it';
  const { effect, rule, reason } = decided;
  const answer = gate?.answered;
  const because = `rule ${shown(rule)}: ${shown(reason)}`;
  if (effect === 'allow') return `allowed without approval (${because})`;
  if (effect === 'deny') return `denied (${because})`;
  if (answer)
    return `${answer.approved ? 'approved' : 'denied'} by ${shown(answer.by)} at ${answer.at}${signedBy(answer)}`;
  return gate?.expired ? 'asked, and not answered in time' : `needs approval (${because})`;
}

function signedBy({ approver, name, passkey }: NonNullable<Gate['answered']>): string {
  if (approver === undefined) return '; the receipt is older than signed answers and names no approver’s key';
  const called = name === undefined ? '' : ` (${shown(name)})`;
  return passkey === undefined
    ? `, signed by ${approver}${called}`
    : `, signed with the passkey ${approver}${called} at ${shown(passkey.origin)}`;
}

function outcomeOf(record: NodeRecord): string {
  const status = callStateOf(record);
  if (status === undefined) return 'was not started';
  const reason = reasonOf(record);
  const named = Object.entries(record.finished?.references ?? {}).map(
    ([name, value]) => `${name} = ${canonicalJson(value)}`,
  );
  const what = {
    started: 'its outcome is not recorded',
    succeeded: 'succeeded',
    failed: 'failed',
    not_run: 'was not executed',
    unknown: 'its outcome is unknown',
  }[status];
  const details = [...(reason === undefined ? [] : [reason]), ...named].map(shown).join('; ');
  const when = record.started ? `started at ${record.started.at}; ` : '';
  return `${when}${what}${details === '' ? '' : ` (${details})`}`;
}

/** The latest status of the call. */
const reasonOf = ({ reconciled, finished }: NodeRecord) => (reconciled ?? finished)?.reason;

function callLines(nodeId: string, record: NodeRecord, words: Words): string[] {
  const { call } = record;
  const what = call ? `${shown(call.tool)} ${shown(canonicalJson(call.args))}` : 'a call of a lost plan';
  return [
    ...labelled('call', `${shown(nodeId)}: ${what}`, words),
    ...labelled('', consentOf(record), words),
    ...labelled('', outcomeOf(record), words),
  ];
}

/** `completed`, `denied`, `with an unknown outcome`. */
function endWord({ kind, body }: Ending): string {
  if (kind === 'intent.unknown') return 'with an unknown outcome';
  const code = 'code' in body ? body.code : undefined;
  return code !== undefined && DENIAL_CODES.includes(code) ? 'denied' : kind.slice('intent.'.length);
}

function executionLines({ state }: ReceiptReport, words: Words): string[] {
  const { accepted, compiled, clarify, refusals, broken } = state;
  const ending = endOf(state);
  if (!accepted) return [];
  const { principal, prose, intent, at } = accepted;
  const there = principal.origin === 'chronos' ? 'started by an alarm or another agent' : 'started by a person';
  return [
    ...labelled('asked', `by ${shown(principal.user)} at ${at}; ${there}`, words),
    ...labelled('', shown(prose ?? intent ?? ''), words),
    ...(compiled ? labelled('compiled', `${shown(compiled.intent.verb)}, by ${shown(compiled.compiler)}`, words) : []),
    ...(clarify === undefined ? [] : labelled('asked back', shown(clarify.question), words)),
    ...callsOf(state).flatMap(({ nodeId, record }) => callLines(nodeId, record, words)),
    ...(refusals === 0
      ? []
      : labelled('refused', refusals === 1 ? 'one answer was rejected' : `${refusals} answers were rejected`, words)),
    ...(broken ? labelled('journal', 'was changed outside the executor; the executor detected it', words) : []),
    ...(ending
      ? labelled(
          'ended',
          `${endWord(ending)} at ${ending.body.at}${'reason' in ending.body ? `: ${shown(ending.body.reason)}` : ''}`,
          words,
        )
      : []),
  ];
}

function keyLines(
  { publicKey, keyId, head, broken }: ReceiptReport,
  { keyExpected, keyNamed, trustsEmbedded }: ReceiptSource,
  words: Words,
): string[] {
  if (publicKey === undefined) return [];
  const whose = keyExpected
    ? 'the one that you named'
    : keyNamed
      ? 'claimed by the file: NOT the one that you named'
      : trustsEmbedded
        ? 'from the file, accepted with --trust-embedded'
        : 'claimed by the file: name the expected key with --key, or accept it with --trust-embedded';
  return [
    ...labelled('key', `${publicKey}, ${whose}`, words),
    ...labelled('key id', String(keyId), words),
    ...(broken || head.seq === 0 ? [] : labelled('digest', head.hash, words)),
  ];
}

function verdictLines(report: ReceiptReport, { keyExpected, trustsEmbedded }: ReceiptSource, words: Words): string[] {
  const { broken, envelopes, state } = report;
  if (!broken) {
    const isWhose = keyExpected || trustsEmbedded;
    const holds = isWhose
      ? words.paint('green', `Valid: all ${envelopes} envelopes.`)
      : words.paint(
          'yellow',
          `All ${envelopes} envelopes are valid with the key in the file; no expected key was given.`,
        );
    if (endOf(state)) return [holds];
    return [holds, `The intent is not final: the last entry is ${state.lastKind}. More may have happened since.`];
  }
  const { seq, property, message, expected, found, rule } = broken;
  const where = seq === 0 ? 'The receipt' : `Envelope ${seq} of ${envelopes}`;
  return [
    words.paint('red', `Broken: ${where}, ${rule === undefined ? property : `${property}, rule "${rule}"`}`),
    ...wrap(shown(message), words.columns - 2).map((line) => `  ${line}`),
    ...(expected === undefined ? [] : labelled('expected', shown(expected), words)),
    ...(found === undefined ? [] : labelled('found', shown(found), words)),
    ...wrap(MEANING[property], words.columns - 2).map((line) => `  ${line}`),
  ];
}

/** For a terminal: the intent, approvals, calls and the verdict. */
export function linesOf(report: ReceiptReport, place: ReceiptSource, words: Words): string[] {
  const title = report.intentId === undefined ? 'Receipt' : `Intent ${shown(report.intentId)}`;
  return [
    words.paint('bold', title),
    ...executionLines(report, words),
    ...keyLines(report, place, words),
    ...verdictLines(report, place, words),
  ];
}

/** For programs: one object. */
export function factsOf(report: ReceiptReport, place: ReceiptSource) {
  const { file, line, keyExpected, trustsEmbedded, approverExpected } = place;
  const { broken, state, intentId, publicKey, keyId, envelopes } = report;
  const { accepted, lastKind } = state;
  const ending = endOf(state);
  return {
    ...{ file, line, valid: broken === undefined, ended: ending !== undefined, broken },
    ...{ intent_id: intentId, public_key: publicKey, key_id: keyId, key_expected: keyExpected, envelopes },
    receipt_sha256: broken === undefined ? report.head.hash : undefined,
    ...{ key_trusted: keyExpected || trustsEmbedded, approver_expected: approverExpected, rules: accepted?.rules ?? 1 },
    ...{ user: accepted?.principal.user, origin: accepted?.principal.origin, accepted_at: accepted?.at },
    last_kind: lastKind,
    ending: ending && {
      kind: ending.kind,
      code: 'code' in ending.body ? ending.body.code : undefined,
      at: ending.body.at,
      reason: 'reason' in ending.body ? ending.body.reason : undefined,
    },
    refused_answers: state.refusals,
    journal_broken: state.broken !== undefined,
    calls: callsOf(state).map(({ nodeId, record }) => {
      const { call, surface, decided, gate, started, finished } = record;
      const answer = gate?.answered;
      return {
        ...{ node_id: nodeId, tool: call?.tool, args: call?.args, call_sha256: call?.call_sha256, surface },
        ...{ effect: decided?.effect, rule: decided?.rule },
        answered: answer && {
          ...{ by: answer.by, at: answer.at, approved: answer.approved, approver: answer.approver, name: answer.name },
          ...(answer.approver !== undefined && { signed_with: answer.passkey ? 'passkey' : 'key' }),
          ...(answer.passkey && { origin: answer.passkey.origin, credential_id: answer.passkey.credential_id }),
        },
        ...{ started_at: started?.at, status: callStateOf(record), reason: reasonOf(record) },
        references: finished?.references,
      };
    }),
  };
}
