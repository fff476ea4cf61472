/** Stand-in for `claude -p … --output-format json`. */
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync } from 'node:fs';
import { misbehave, noteCall, readStdin, sessionFile, takeMode } from './executable.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function fail(text: string): never {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}

function parse(argv: string[]): { resume: string | undefined; message: string | undefined } {
  const left = [...argv];
  const positional: string[] = [];
  let resume: string | undefined;
  for (let option = left.shift(); option !== undefined; option = left.shift()) {
    if (option === '-p') continue;
    if (option === '--resume') resume = left.shift();
    else if (option === '--output-format' && left.shift() !== 'json') fail('error: another format was expected');
    else if (option === '--model' || option === '--tools') left.shift();
    else if (option === '--strict-mcp-config') continue;
    else if (option !== '--output-format' && option.startsWith('-')) fail(`error: unknown option '${option}'`);
    else if (option !== '--output-format') positional.push(option);
  }
  return { resume, message: positional[0] };
}

const given = parse(process.argv.slice(2));
const message = given.message ?? readStdin();
const mode = takeMode();
noteCall('claude', given.message === undefined ? message : undefined);

if (!(await misbehave(mode))) {
  const { resume } = given;
  if (resume !== undefined && !UUID.test(resume))
    fail('Error: --resume requires a valid session ID when used with --print.');
  if (resume !== undefined && !existsSync(sessionFile('claude', resume)))
    fail(`No conversation found with session ID: ${resume}`);
  const session = resume ?? randomUUID();
  appendFileSync(sessionFile('claude', session), `${JSON.stringify({ message })}\n`);
  const turns = { type: 'result', num_turns: 1, session_id: session, duration_ms: 12, total_cost_usd: 0.01 };
  const answers: Record<string, object> = {
    'is-error': { subtype: 'success', is_error: true, result: 'API Error: 529 overloaded' },
    'max-turns': { subtype: 'error_max_turns', is_error: false },
    denied: {
      subtype: 'success',
      is_error: false,
      result: 'I could not write the file.',
      permission_denials: ['Bash', 'Write', 'Bash'].map((tool_name) => ({
        tool_name,
        tool_use_id: 'x',
        tool_input: {},
      })),
    },
  };
  const well = {
    subtype: 'success',
    is_error: false,
    result: `heard ${Buffer.byteLength(message)} bytes`,
    permission_denials: [],
  };
  console.log(JSON.stringify({ ...turns, ...(answers[mode.mode] ?? well) }));
}
