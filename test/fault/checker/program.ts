/**
 * `npm run verdict -- --client a.jsonl --receiver b.jsonl --database file-or-uri`: checks three logs against the ten
 * invariants. Exit 0: every promise was kept; 1: some was broken; 2: the logs cannot be judged.
 */
import { parseArgs } from 'node:util';
import { ReveilleError } from '../../../src/wire/errors.ts';
import { parseInstant } from '../../../src/wire/rfc3339.ts';
import { DEFAULT_POLICY, type Policy } from './history.ts';
import { judge } from './judge.ts';
import { type ReadMoment, readDatabase } from './read-database.ts';
import { readClientLogs, readReceiverLogs } from './read-log.ts';
import { reportLines } from './report.ts';

const USAGE = `usage: npm run verdict -- --client FILE --receiver FILE --database FILE|URI

  --client FILE            the clients' requests and answers; may be given more than once
  --receiver FILE          the received wakes and their turns; may be given more than once
  --database FILE|URI      a chronos.db, or a postgres:// address; it is only read
  --read-at INSTANT        the database's time when its last dispatcher was stopped, if that was before now
  --whole-since INSTANT    end of the last fault
  --max-failures N         CHRONOS_MAX_FAILURES of the store (${DEFAULT_POLICY.maxFailures})
  --user-concurrency N     CHRONOS_USER_CONCURRENCY of the store (${DEFAULT_POLICY.userConcurrency})
  --json                   the whole verdict as one JSON object

example: npm run verdict -- --client client.jsonl --receiver receiver.jsonl --database ~/.reveille/chronos/chronos.db`;

function misuse(message: string): ReveilleError {
  return new ReveilleError('invalid_request', message);
}

function instantOption(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const instant = parseInstant(text);
  if (instant === undefined)
    throw misuse(`${name} must be an RFC 3339 instant with an offset, such as 2026-06-15T08:10:00Z (got ${text})`);
  return instant;
}

function countOption(name: string, text: string | undefined, absent: number): number {
  if (text === undefined) return absent;
  if (!/^[1-9]\d{0,5}$/.test(text)) throw misuse(`${name} must be a whole number of at least 1 (got ${text})`);
  return Number(text);
}

function optionsOf(argv: string[]) {
  const { values } = parseArgs({
    args: argv,
    options: {
      client: { type: 'string', multiple: true },
      receiver: { type: 'string', multiple: true },
      database: { type: 'string' },
      'read-at': { type: 'string' },
      'whole-since': { type: 'string' },
      'max-failures': { type: 'string' },
      'user-concurrency': { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const { client, receiver, database } = values;
  if (!client || !receiver || !database) {
    const missing = Object.entries({ client, receiver, database }).flatMap(([name, given]) =>
      given ? [] : `--${name}`,
    );
    throw misuse(`${missing.join(' and ')} must be given`);
  }
  const readAt = instantOption('--read-at', values['read-at']);
  const wholeSince = instantOption('--whole-since', values['whole-since']);
  const moment: ReadMoment = {
    ...(readAt === undefined ? {} : { readAt }),
    ...(wholeSince === undefined ? {} : { wholeSince }),
  };
  const policy: Policy = {
    ...DEFAULT_POLICY,
    maxFailures: countOption('--max-failures', values['max-failures'], DEFAULT_POLICY.maxFailures),
    userConcurrency: countOption('--user-concurrency', values['user-concurrency'], DEFAULT_POLICY.userConcurrency),
  };
  return { client, receiver, database, moment, policy, json: values.json };
}

/** The outputs: one for the verdict, one for errors of the call. */
export type Output = { say(text: string): void; complain(text: string): void };

async function verdictOf(argv: string[], { say }: Output): Promise<number> {
  const options = optionsOf(argv);
  if (!options) {
    say(USAGE);
    return 0;
  }
  const client = readClientLogs(options.client);
  const receiver = readReceiverLogs(options.receiver);
  const database = await readDatabase(options.database, options.moment);
  const remarks = [...client.remarks, ...receiver.remarks];
  if (database.audit === null) remarks.push('the database has no audit: only its ledger shows stale writes');
  const verdict = judge({ client: client.log, receiver: receiver.log, database, policy: options.policy });
  if (options.json) say(JSON.stringify({ kept: verdict.violations.length === 0, ...verdict, remarks }));
  else say(reportLines(verdict, remarks).join('\n'));
  return verdict.violations.length === 0 ? 0 : 1;
}

/** The caller can correct invalid options and unreadable logs; any other error is a defect, and is thrown. */
function isCallerError(thrown: unknown): thrown is Error {
  if (thrown instanceof ReveilleError) return thrown.code === 'invalid_request';
  return thrown instanceof Error && 'code' in thrown && String(thrown.code).startsWith('ERR_PARSE_ARGS');
}

/** @returns the exit code */
export async function runVerdict(argv: string[], output: Output): Promise<number> {
  try {
    return await verdictOf(argv, output);
  } catch (thrown) {
    if (!isCallerError(thrown)) throw thrown;
    output.complain(`${thrown.message}\n\n${USAGE.split('\n')[0]} (--help says more)`);
    return 2;
  }
}
