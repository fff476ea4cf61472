/** Reads a passphrase: hidden on the terminal, from a file that a script names, or from standard input. */
import { readPrivateFile } from '../../kit/identity/private-file.ts';
import { ReveilleError } from '../../wire/errors.ts';
import type { CliProcess } from '../cli-process.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';

const ENTER = new Set(['\r', '\n', '\u0004']);
const RUBOUT = new Set(['\u007f', '\b']);
const INTERRUPT = '\u0003';
const LINE_MAX = 4096;

type Asking = Pick<CliContext, 'process' | 'environment'>;

/** Reads a line from the terminal without echo. The question goes to stderr, so that stdout has results only. */
function typed({ stdin, stderr }: CliProcess, question: string): Promise<string> {
  // Before the question: early input must not be echoed either.
  stdin.setRawMode(true);
  stderr.write(question);
  stdin.setEncoding('utf8').resume();
  return new Promise((resolve, reject) => {
    let line = '';
    const end = (then: () => void) => {
      stdin.off('data', take).setRawMode(false).pause();
      stderr.write('\n');
      then();
    };
    const take = (keys: string) => {
      for (const key of keys) {
        if (key === INTERRUPT) return end(() => reject(new ReveilleError('forbidden', 'no passphrase was given')));
        if (ENTER.has(key)) return end(() => resolve(line));
        if (RUBOUT.has(key)) line = [...line].slice(0, -1).join('');
        else line += key;
      }
    };
    stdin.on('data', take);
  });
}

async function piped({ stdin }: CliProcess): Promise<string> {
  let text = '';
  stdin.setEncoding('utf8');
  for await (const piece of stdin) {
    text += piece as string;
    if (text.includes('\n') || text.length > LINE_MAX) break;
  }
  return text.split(/\r?\n/)[0]!;
}

type Passphrase = {
  /** The variable that may name a file with it. */
  readonly variable: `REVEILLE_${'APPROVER' | 'BACKUP'}_PASSPHRASE_FILE`;
  /** Why it is needed, for users without a terminal. */
  readonly why: string;
};

const OF_APPROVER: Passphrase = {
  variable: 'REVEILLE_APPROVER_PASSPHRASE_FILE',
  why: "the approver's key is sealed",
};

/**
 * @param isNew asks twice on a terminal, to detect a typing error
 * @throws UsageError without a terminal and without a line to read
 */
export function passphraseFrom(
  { process, environment }: Asking,
  question: string,
  isNew = false,
  { variable, why } = OF_APPROVER,
): () => Promise<string> {
  return async () => {
    const file = environment[variable];
    if (file) {
      const text = readPrivateFile(file);
      if (text === undefined) throw new UsageError(`${variable} ${file} cannot be read: the file does not exist`);
      return text.split(/\r?\n/)[0]!;
    }
    if (!process.stdin.isTTY) {
      const line = await piped(process);
      if (line !== '') return line;
      throw new UsageError(
        `${why}, and there is no terminal: name a file with ${variable}, or write the passphrase to standard input`,
      );
    }
    const given = await typed(process, `${question}: `);
    if (isNew && (await typed(process, 'Repeat it: ')) !== given) throw new UsageError('the two passphrases differ');
    return given;
  };
}

export const askPassphrase = (context: Asking): (() => Promise<string>) =>
  passphraseFrom(context, "Passphrase of the approver's key");
