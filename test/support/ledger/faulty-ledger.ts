/**
 * `reveille ledger` with faults: an MCP server over stdio that forwards every line to the real one and back, with
 * faults at calls of `transfer`. The file of LEDGER_FAULTS lists the faults, a line for each call. A line is removed
 * before its fault happens, so that a restarted process continues with the next.
 *
 * - `ok`: no fault
 * - `die-before`: the ledger is killed before it gets the call
 * - `die-after`: the ledger is killed after its answer, and the answer is lost
 * - `mute`: the answer is lost, the ledger stays alive
 * - `slow 200`: the answer is delayed by so many milliseconds
 * - `garble`: the answer is no tool result
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

/** The treatment of the answer to a request. */
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
  const [kind, milliseconds] = (fault ?? 'ok').split(' ');
  if (kind === 'slow') setTimeout(() => toClient(line), Number(milliseconds));
  else if (kind === 'garble') toClient(JSON.stringify({ jsonrpc: '2.0', id, result: { content: 'no list' } }));
  else toClient(line);
});

ledger.on('exit', (code) => process.exit(code ?? 1));
