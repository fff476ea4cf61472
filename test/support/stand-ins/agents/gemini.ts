/** Stand-in for `gemini -p … --output-format json`. */
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync } from 'node:fs';
import { misbehave, noteCall, readStdin, sessionFile, takeMode } from './executable.ts';

const argv = process.argv.slice(2);
const after = (flag: string) => (argv.includes(flag) ? argv[argv.indexOf(flag) + 1] : undefined);
const prompt = after('-p');
// A prompt that looks like an option is parsed as one.
if (prompt === undefined || prompt.startsWith('-') || after('--output-format') !== 'json') {
  process.stderr.write('Not enough arguments following: p\n');
  process.exit(42);
}
const piped = prompt === 'Take up the message above.' ? readStdin() : undefined;
const message = piped === undefined ? prompt : `${piped}\n\n${prompt}`;
const mode = takeMode();
noteCall('gemini', piped);

if (!(await misbehave(mode))) {
  const resume = after('--resume');
  if (resume !== undefined && !existsSync(sessionFile('gemini', resume))) {
    process.stderr.write(`Error resuming session: Invalid session identifier "${resume}".\n`);
    process.exit(42);
  }
  if (mode.mode === 'exit') {
    const error = { type: 'FatalError', message: mode.text, code: mode.code };
    process.stderr.write(`Loaded cached credentials.\n${JSON.stringify({ error }, null, 2)}\n`);
    process.exit(mode.code);
  }
  const session = resume ?? randomUUID();
  appendFileSync(sessionFile('gemini', session), `${JSON.stringify({ message })}\n`);
  const answer = { session_id: session, response: `heard ${Buffer.byteLength(message)} bytes`, stats: { models: {} } };
  process.stdout.write(`Loaded cached credentials.\n${JSON.stringify(answer, null, 2)}\n`);
}
