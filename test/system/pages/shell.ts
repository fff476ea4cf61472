/**
 * A real shell in which the process of the test runs `reveille` and `npx reveille`. Arguments, variables, pipes and input
 * come from the shell. A command costs a tenth of a new process.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { type Outcome, reveille } from '../../support/command-line.ts';
import { listening, type Owner, temporaryFolder } from '../../support/temporary.ts';

/** A command of Reveille that the shell ran. */
export type Ran = Outcome & { readonly args: readonly string[] };

type Env = Readonly<Record<string, string>>;

export type ShellOptions = {
  /** `REVEILLE_HOME` of the commands, unless a line sets another. */
  readonly home: string;
  readonly env: Env;
  /** Runs a command that does not end by itself; `undefined` for all others. */
  readonly stay: (args: readonly string[], env: Env) => Promise<Outcome> | undefined;
};

export type Shell = {
  /** Runs a script. @returns the commands of Reveille by the order of their ends, and the first other failure */
  run(script: string): Promise<{ ran: Ran[]; failed: string | undefined }>;
};

/** Sends arguments, variables and standard input to the test, and prints the output of the command. */
const FUNCTIONS = `
exec < /dev/null
reveille() {
  local call="$CALLS/$BASHPID-$RANDOM"
  printf '%s\\0' "$@" > "$call.words"
  env -0 > "$call.env"
  [ /proc/self/fd/0 -ef /dev/null ] || cat > "$call.input"
  curl --silent --show-error --fail "$CALLS_URL$call" || return 99
  [ ! -s "$call.stdout" ] || cat "$call.stdout"
  [ ! -s "$call.stderr" ] || cat "$call.stderr" >&2
  return "$(< "$call.status")"
}
npx() { [ "$1" = reveille ] && shift && reveille "$@"; }
`;
/** Reports failures of other programs; the status of Reveille is checked separately. */
const TRAP = `trap 'case "$BASH_COMMAND" in *reveille*|return*) ;; *) echo "failed: $BASH_COMMAND" >&2;; esac' ERR`;

const listOf = (file: string) => readFileSync(file, 'utf8').split('\0').slice(0, -1);

export async function startShell(owner: Owner, { home, env, stay }: ShellOptions): Promise<Shell> {
  const calls = temporaryFolder(owner);
  let ran: Ran[] = [];
  const server = createServer(async (request, response) => {
    const call = request.url!;
    const args = listOf(`${call}.words`);
    const given = Object.fromEntries(listOf(`${call}.env`).map((pair) => pair.split(/=(.*)/s) as [string, string]));
    const input = existsSync(`${call}.input`) ? readFileSync(`${call}.input`) : Buffer.alloc(0);
    const outcome = await (stay(args, given) ?? reveille(home, args, { env: given, input }));
    ran.push({ ...outcome, args });
    for (const part of ['stdout', 'stderr', 'status'] as const) writeFileSync(`${call}.${part}`, String(outcome[part]));
    response.end();
  });
  const own = { ...env, CALLS: join(calls, 'calls'), CALLS_URL: await listening(owner, server) };
  mkdirSync(own.CALLS);
  return {
    run: (script) =>
      new Promise((resolve) => {
        ran = [];
        const child = execFile('bash', ['-c', `${FUNCTIONS}\n${TRAP}\n${script}`], { env: own }, (_, __, stderr) =>
          resolve({ ran, failed: /^(?:failed: |.*(?:syntax error|command not found)).*$/m.exec(stderr)?.[0] }),
        );
        child.stdin?.end();
      }),
  };
}
