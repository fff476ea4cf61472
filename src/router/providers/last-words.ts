/** What a process said last, fit to be quoted in an error that travels to the alarm's ledger. */
import { HIDDEN, namesSecret, type ProcessMachine } from '../machines/machine.ts';

const LINES = 6;
const CHARACTERS = 400;
/** Shorter values stand in ordinary text by chance. */
const SHORTEST_SECRET = 6;

function secretsOf({ spec, token }: ProcessMachine): string[] {
  const values = Object.entries(spec.env ?? {}).filter(([name]) => namesSecret(name));
  return [token, ...values.map(([, value]) => value)]
    .filter((value) => value.length >= SHORTEST_SECRET)
    .sort((one, other) => other.length - one.length);
}

/**
 * The last lines of a process's output in one line: without control characters and terminal colours, and without the machine's
 * token and the values of variables that look like secrets.
 */
export function lastWords(output: string, machine: ProcessMachine): string {
  let text = output;
  for (const secret of secretsOf(machine)) text = text.replaceAll(secret, HIDDEN);
  const lines = text
    .replace(/\x1b\[[0-9;]*[A-Za-z]/g, '')
    .split(/[\r\n]+/)
    .map((line) => line.replace(/[\x00-\x1f\x7f]/g, ' ').trim())
    .filter((line) => line !== '');
  const said = lines.slice(-LINES).join(' | ');
  return said.length > CHARACTERS ? `…${said.slice(-CHARACTERS)}` : said;
}
