/**
 * `reveille ledger` with accidents: an MCP server over stdio that passes every line on to the real one and back, and
 * lets something go wrong at calls of `transfer`. What goes wrong stands in the file that LEDGER_FAULTS names, a line
 * for each call; a line is used up before anything happens, so that a process that is started again goes on with the
 * next.
 *
 * - `ok`: nothing
 * - `die-before`: the ledger is killed before it gets the call
 * - `die-after`: the ledger is killed when it has answered, and nobody gets the answer
 * - `mute`: the answer is lost, the ledger lives
 * - `slow 200`: the answer is held back for so many milliseconds
 * - `garble`: what is answered is no tool result
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

type Message = { id?: string | number; method?: string; params?: { name?: string } };

const REVEILLE = join(import.meta.dirname, '..', '..', '..', 'bin', 'reveille.mjs');
const FAULTS = process.env.LEDGER_FAULTS ?? '';

function nextFault(): string {
  const [next = 'ok', ...rest] = readFileSync(FAULTS, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  writeFileSync(FAULTS, rest.join('\n'));
  return next;
}

const ledger: ChildProcess = spawn(process.execPath, [REVEILLE, 'ledger'], { stdio: ['pipe', 'pipe', 'inherit'] });

function die(): never {
  ledger.kill('SIGKILL');
  process.exit(1);
}

/** What is to be done with the answer to a request. */
const awaited = new Map<string | number, string>();

const toLedger = (line: string) => ledger.stdin?.write(`${line}\n`);
const toClient = (line: string) => process.stdout.write(`${line}\n`);

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const { id, method, params } = JSON.parse(line) as Message;
    if (method === 'tools/call' && params?.name === 'transfer' && id !== undefined) {
      const fault = nextFault();
      if (fault === 'die-before') die();
      awaited.set(id, fault);
    }
    toLedger(line);
  })
  .on('close', () => ledger.stdin?.end());

createInterface({ input: ledger.stdout! }).on('line', (line) => {
  const { id, method } = JSON.parse(line) as Message;
  const fault = method === undefined && id !== undefined ? awaited.get(id) : undefined;
  if (fault === 'die-after') die();
  if (fault === 'mute') return;
  const [word, milliseconds] = (fault ?? 'ok').split(' ');
  if (word === 'slow') setTimeout(() => toClient(line), Number(milliseconds));
  else if (word === 'garble') toClient(JSON.stringify({ jsonrpc: '2.0', id, result: { content: 'no list' } }));
  else toClient(line);
});

ledger.on('exit', (code) => process.exit(code ?? 1));
