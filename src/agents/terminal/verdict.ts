/** Determines the outcome of a program's turn from its output and its exit. Pure. */
import { lastOutput } from '../../router/providers/redaction.ts';
import type { Outcome } from '../../turns/turn.ts';
import { withoutTrailing } from '../../wire/text.ts';
import type { TerminalPreset } from '../preset.ts';
import { oneLine } from '../prompt.ts';
import type { Exit, Output, Reading } from './readers.ts';
import { READERS } from './readers.ts';

export type Evidence = {
  output: Output;
  exit: Exit;
  /** Why the router ended it, as a phrase that finishes the sentence "the program …". */
  ended: string | undefined;
  /** The conversation that was continued. */
  session: string | undefined;
  /** Secrets that must not be repeated. */
  secrets: readonly string[];
};

/** A longer reply is cut; the agent has the full text in its own conversation. */
const REPLY_BYTES = 256 * 1024;

/** Cuts a reply that is too long to store. */
export function boundedReply(reply: string | undefined): string | undefined {
  if (reply === undefined) return undefined;
  const bytes = Buffer.from(reply, 'utf8');
  if (bytes.length <= REPLY_BYTES) return reply.toWellFormed();
  const kept = withoutTrailing(bytes.toString('utf8', 0, REPLY_BYTES), '\ufffd');
  return `${kept}\n[cut here: the reply has ${bytes.length} bytes]`;
}

const has = (text: string, phrases: readonly string[]) => {
  const lower = text.toLowerCase();
  return phrases.some((phrase) => lower.includes(phrase.toLowerCase()));
};

/** The error text of the program itself; never text of the agent. */
function errorTextOf(reading: Reading, { stdout, stderr }: Output): string {
  const own = [reading.errorText, reading.verdict === 'failed' ? reading.error : undefined, stderr.text];
  // Without output in its format, the program did not get far enough to write it.
  if (reading.verdict === 'none' && !reading.began) own.push(stdout.text);
  return own.filter((text) => text !== undefined).join('\n');
}

/** A failure which proves that no turn ran. */
function proofOfRest(
  preset: TerminalPreset,
  reading: Reading,
  { output, session, secrets }: Evidence,
): Outcome | undefined {
  if (reading.verdict === 'done' || reading.began) return undefined;
  const errorText = errorTextOf(reading, output);
  const why = reading.verdict === 'failed' ? oneLine(reading.error, secrets) : lastOutput(errorText, secrets);
  if (has(errorText, preset.busy)) return { status: 'not_started', why: `${preset.name} is busy: ${why}` };
  if (session !== undefined && has(errorText, preset.gone)) return { status: 'no_session', why };
  return undefined;
}

function endingOf(exit: Exit, ended: string | undefined): string | undefined {
  if (ended !== undefined) return ended;
  if (exit === undefined) return undefined;
  return 'code' in exit ? `ended with exit code ${exit.code}` : `was ended by ${exit.signal}`;
}

const usageIn = ({ usage, sessionUsage }: Reading) => ({
  ...(usage && { usage }),
  ...(sessionUsage && { sessionUsage }),
});

function unreadable(preset: TerminalPreset, reading: Reading, { output, exit, ended, secrets }: Evidence): Outcome {
  const { session } = reading;
  const reply = boundedReply(reading.reply);
  const lastLines = lastOutput(output.stderr.text.trim() === '' ? output.stdout.text : output.stderr.text, secrets);
  const text = reading.errorText === undefined ? lastLines : oneLine(reading.errorText, secrets);
  const detail = text === '' ? '' : `: ${text}`;
  const ending = endingOf(exit, ended);
  if (ending === undefined) {
    return {
      status: 'unknown',
      session,
      error: `${preset.name} ended while no router was running, and its output does not show the outcome${detail}`,
    };
  }
  const succeeded = ended === undefined && exit !== undefined && 'code' in exit && exit.code === 0;
  if (!succeeded)
    return { status: 'failed', session, reply, ...usageIn(reading), error: `${preset.name} ${ending}${detail}` };
  return {
    status: 'unknown',
    session,
    error: `${preset.name} ${ending}, but its output cannot be parsed (${preset.reads} was expected)${detail}`,
  };
}

/** A stored session becomes an argument later: it must not look like an option. */
const SESSION = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/;

export function verdictOf(preset: TerminalPreset, evidence: Evidence): Outcome {
  const given = READERS[preset.reads](evidence.output, evidence.exit);
  const reading = SESSION.test(given.session ?? '') ? given : { ...given, session: undefined };
  const rest = proofOfRest(preset, reading, evidence);
  if (rest) return rest;
  const read = { session: reading.session, reply: boundedReply(reading.reply), ...usageIn(reading) };
  if (reading.verdict === 'done') return { status: 'done', ...read };
  if (reading.verdict === 'failed') {
    const also = evidence.ended === undefined ? '' : `; it ${evidence.ended}`;
    return { status: 'failed', ...read, error: `${oneLine(reading.error, evidence.secrets)}${also}` };
  }
  return unreadable(preset, reading, evidence);
}
