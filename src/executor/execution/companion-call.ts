/** Companion calls of a tool: dry run, status and read-back. They change nothing, so they may be repeated. */
import { clip } from '../../kit/text/excerpt.ts';
import type { CallNode } from '../../wire/intent.ts';
import type { CompanionCall } from '../../wire/manifest.ts';
import { fillIn } from '../intent/companion.ts';

import type { CallStatus, Received } from '../receipt/bodies.ts';
import { digestOf } from '../receipt/envelope.ts';
import { callKey } from '../receipt/plan-order.ts';
import { type CallReport, splitName } from '../tools/toolbox.ts';
import type { IntentRun } from './run.ts';

/** Characters of an answer's text that a receipt contains. */
const TEXT_CHARACTERS = 4000;

type CompanionAnswer = {
  /** `<alias>/<tool>` */
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly args_sha256: string;
  readonly status: CallStatus;
  readonly report: CallReport;
};

/** The members of a receipt body that describe an answer. */
export function receivedOf({ report }: { report: CallReport }): Received {
  if (report.status !== 'answered') return { text: clip(report.message, TEXT_CHARACTERS) };
  const { rawSha256, rawBytes, text } = report;
  return { response_sha256: rawSha256, response_bytes: rawBytes, text: clip(text, TEXT_CHARACTERS) };
}

export function statusOfReport(report: CallReport): CallStatus {
  if (report.status !== 'answered') return report.status;
  return report.isError ? 'failed' : 'succeeded';
}

/** Makes a companion call for one call of a plan. @param result the call's structured result, where there is one */
export async function callCompanion(
  run: IntentRun,
  { id, tool, args }: CallNode,
  companion: CompanionCall,
  { result, signal }: { result?: unknown; signal: AbortSignal },
): Promise<CompanionAnswer> {
  const { toolbox } = run.parts;
  const name = `${splitName(tool)[0]}/${companion.tool}`;
  const filled = fillIn(companion.args, { args, result, key: callKey(run.intentId, id) });
  const answer = (report: CallReport, sent: Readonly<Record<string, unknown>>) => ({
    tool: name,
    args: sent,
    args_sha256: digestOf(sent),
    status: statusOfReport(report),
    report,
  });
  if ('missing' in filled) return answer({ status: 'not_run', message: `it was not called: ${filled.missing}` }, {});
  const found = toolbox.find(name);
  if (!found) return answer({ status: 'not_run', message: toolbox.absence(name) }, filled.args);
  if (found.surface === 'escalate') {
    const message = `it was not called: ${name} moves or commits something itself`;
    return answer({ status: 'not_run', message }, filled.args);
  }
  const { user } = run.state().accepted.principal;
  const { definitionSha256 } = found;
  return answer(await toolbox.call(name, filled.args, { signal, definitionSha256, user }), filled.args);
}
