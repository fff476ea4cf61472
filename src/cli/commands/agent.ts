/**
 * `reveille agent`: the identity of this agent, and the keys that chronosd accepts. `enroll --from` registers those of many
 * agents and writes their configurations.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { type ChronosClient, createChronosClient } from '../../chronos/client.ts';
import { fromNow } from '../../kit/clock/local-time.ts';
import { agentIdentity } from '../../kit/identity/agent.ts';
import { loadOrCreateKey, readKeyFile } from '../../kit/identity/keys.ts';
import { readPrivateFile, writePrivateFile } from '../../kit/identity/private-file.ts';
import { rotateKeyFile } from '../../kit/identity/rotation.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { type EnrolledKey, type Orphan, publicKeySchema } from '../../wire/agent.ts';
import { didOf, FINGERPRINT_LENGTH, labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError, thrownText } from '../../wire/errors.ts';
import { parseOrThrow } from '../../wire/validate.ts';
import { adminClient, eachKey, findChronos, keyFileOf, labelOf } from '../access/chronos.ts';
import { attend } from '../access/unreachable.ts';
import type { CliContext } from '../context.ts';
import { runningHere } from '../doctor/computer.ts';
import { fileFlag } from '../flags/flags.ts';
import { UsageError } from '../flags/usage-error.ts';
import { homeAt, loadOrMakeLabel, makeHome } from '../home/home.ts';
import { counted, table } from '../screens/columns.ts';
import { readerOf } from '../screens/reader.ts';
import { facts, type Reader } from '../screens/render.ts';

/** Shows the identity of this agent and creates it if missing. The seed of the key is never shown. */
export async function agentWhoami(context: CliContext): Promise<void> {
  makeHome(context.home);
  const keyFile = keyFileOf(context);
  const identity = agentIdentity(labelOf(context) ?? loadOrMakeLabel(context.home), loadOrCreateKey(keyFile));
  const record = { did: identity.did, label: identity.label, public_key: identity.publicKeyHex, key_file: keyFile };
  const rows = [
    ['did', identity.did],
    ['label', identity.label],
    ['public key', identity.publicKeyHex],
    ['key file', oneLine(keyFile)],
  ] as const;
  context.out.result(record, facts(rows, readerOf(context)));
}

/** The beginning of a public key, long enough to exclude typing errors. */
const BEGINNING = /^[0-9a-f]{8,63}$/;

export type KeyFlags = { label?: string; publicKey?: string; keyFile?: string };
export type EnrollFlags = KeyFlags & { from?: string; output?: string };

function labelFlag(given: string | undefined): string | undefined {
  if (given === undefined || labelSchema.safeParse(given).success) return given;
  throw new UsageError(
    `--label must be 1 to 64 of A-Z a-z 0-9 . _ -, and not dots alone (got ${JSON.stringify(given)})`,
  );
}

function publicKeyFlag(given: string | undefined): string | undefined {
  if (given === undefined || publicKeySchema.safeParse(given).success) return given?.toLowerCase();
  throw new UsageError(
    '--public-key must be 64 hex digits; "reveille agent whoami" prints it on the agent\'s computer',
  );
}

export type RotateFlags = { label?: string; keyFile?: string; keys?: string };

type Rotation = { label: string; key_file: string } & (
  | { result: 'rotated' | 'completed'; did: string; public_key: string; revoked_public_key: string }
  | { result: 'failed'; error: string }
);

/** The keys to rotate: those of a folder, named after their labels, or one. */
function keysToRotate(context: CliContext, { label, keyFile, keys }: RotateFlags): { label: string; path: string }[] {
  if (keys === undefined) {
    const name = labelFlag(label) ?? labelOf(context);
    if (name === undefined) throw new UsageError('--label is missing, and this home has no identity; give --label');
    return [{ label: name, path: keyFile ?? keyFileOf(context) }];
  }
  if (label !== undefined || keyFile !== undefined)
    throw new UsageError(
      '--keys excludes --label and --key-file; the files of the folder are named after their labels',
    );
  const found = filesOf(keys).filter((name) => name.endsWith('.key'));
  const paths = found.map((name) => ({ label: name.slice(0, -'.key'.length), path: join(keys, name) }));
  if (paths.length === 0) throw new UsageError(`${keys} has no file <label>.key`);
  return paths;
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    throw new UsageError(`--keys ${folder} cannot be read: ${thrownText(error)}`);
  }
}

/**
 * Replaces keys by new ones, which the old keys sign. Alarms belong to the label and stay.
 *
 * @throws ReveilleError as the rotation; with `--keys` `unavailable` after all keys, when some of them failed
 */
export async function agentRotate(context: CliContext, flags: RotateFlags): Promise<void> {
  const { out, home, clock } = context;
  const { url, token } = findChronos(context);
  const client = createChronosClient({ url, token, clock, attend: attend({ url, home, clock }) });
  const rotate = async (label: string, path: string): Promise<Rotation> => {
    const done = await rotateKeyFile(label, path, (from, to) => client.rotateKey(from, to));
    const { did, public_key, revoked_public_key, repeated } = done;
    const result = repeated ? 'completed' : 'rotated';
    return { label, key_file: path, result, did, public_key, revoked_public_key };
  };
  const rows: Rotation[] = [];
  for (const { label, path } of keysToRotate(context, flags)) {
    const row = await rotate(label, path).catch((error: unknown): Rotation => {
      if (flags.keys === undefined || !(error instanceof ReveilleError)) throw error;
      return { label, key_file: path, result: 'failed', error: error.message };
    });
    rows.push(row);
    if (out.json) out.result(row, []);
    else if (row.result === 'failed') out.line(`${label}  failed: ${oneLine(row.error)}`);
    else {
      out.line(row.result === 'rotated' ? `Rotated to ${row.did}` : `Completed an earlier rotation to ${row.did}`);
      out.line(`  ${row.revoked_public_key.slice(0, FINGERPRINT_LENGTH)}… is revoked; alarms are unchanged`);
    }
  }
  if (!out.json && runningHere(context))
    out.line('Restart "reveille up": an agent in a sandbox has the file of the old key until then.');
  const failed = rows.filter(({ result }) => result === 'failed').length;
  if (failed > 0)
    throw new ReveilleError('unavailable', `${failed} of ${rows.length} keys were not rotated; run the command again`);
}

/** Owners with waiting alarms and no usable key. */
async function* eachOrphan(client: ChronosClient): AsyncGenerator<Orphan> {
  let cursor: string | undefined;
  do {
    const page = await client.listOrphans(cursor === undefined ? {} : { cursor });
    yield* page.orphans;
    cursor = page.next_cursor;
  } while (cursor !== undefined);
}

export async function agentOrphans(context: CliContext): Promise<void> {
  const orphans = await Array.fromAsync(eachOrphan(adminClient(context)));
  const look = readerOf(context);
  const since = (instant: string | undefined) => (instant === undefined ? '-' : fromNow(Date.parse(instant), look.now));
  context.out.list(orphans, () => {
    if (orphans.length === 0) return ['Every waiting alarm has an owner with a usable key.'];
    const rows = orphans.map(({ label, open_alarms, next_fire_at, revoked_at }) => [
      ...[label, String(open_alarms), since(next_fire_at), since(revoked_at)],
    ]);
    return [
      ...table(['LABEL', 'ALARMS', 'NEXT FIRE', 'REVOKED'], rows, look),
      'They still fire. Enrol a new key with "reveille agent reown <label> --public-key …", or move them with --to.',
    ];
  });
}

export type ReownFlags = { to?: string; publicKey?: string };

/** Gives alarms without a usable key to a new key of their label, or to another label. */
export async function agentReown(context: CliContext, given: string, { to, publicKey }: ReownFlags): Promise<void> {
  if ((to === undefined) === (publicKey === undefined))
    throw new UsageError(
      'give --to <label> to move the alarms, or --public-key <hex> to enrol a new key for the label',
    );
  if (!labelSchema.safeParse(given).success || (to !== undefined && !labelSchema.safeParse(to).success))
    throw new UsageError('a label must be 1 to 64 of A-Z a-z 0-9 . _ -, and not dots alone');
  if (publicKey !== undefined) return await agentEnroll(context, { label: given, publicKey });
  const moved = await adminClient(context).reownAlarms({ label: given, to: to! });
  const lines =
    moved.moved === 0
      ? [
          `No alarms of ${moved.label}`,
          '  "reveille agent orphans" lists the labels with alarms and without a usable key',
        ]
      : [`Moved ${counted(moved.moved, 'alarm')} of ${moved.label} to ${moved.to}`];
  context.out.result(moved, lines);
}

/** Enrolls a key for a label: the given one, that of a key file, or this agent's own. With `--from`, all keys of a file. */
export async function agentEnroll(context: CliContext, flags: EnrollFlags): Promise<void> {
  const { from, output } = flags;
  if (from !== undefined) {
    const single = [flags.label, flags.publicKey, flags.keyFile].some((flag) => flag !== undefined);
    if (single) throw new UsageError('--from excludes --label, --public-key and --key-file; the file contains them');
    return await enrollRoster(context, { from, output });
  }
  if (output !== undefined) throw new UsageError('--output needs --from');
  if (flags.publicKey !== undefined && flags.keyFile !== undefined)
    throw new UsageError('--public-key and --key-file exclude each other; give one of them');
  const label = labelFlag(flags.label) ?? labelOf(context);
  if (label === undefined) throw new UsageError('--label is missing, and this home has no identity; give --label');
  const publicKey = publicKeyFlag(flags.publicKey) ?? readKeyFile(flags.keyFile ?? keyFileOf(context)).publicKeyHex;
  const key = await adminClient(context).enrollAgent({ label, public_key: publicKey });
  context.out.result(key, [`Enrolled ${key.did}`, `  ${key.public_key}`]);
}

/** The key of a label by its beginning, as `agent list` and DIDs show it. */
async function keyOf(client: ChronosClient, label: string, given: string): Promise<string> {
  const beginning = given.toLowerCase().replace(/…$/, '');
  if (!BEGINNING.test(beginning)) return publicKeyFlag(given)!;
  const found = (await Array.fromAsync(eachKey(client))).filter(
    (key) => ownerOf(key.label) === ownerOf(label) && key.public_key.startsWith(beginning),
  );
  const [only] = found;
  if (only && found.length === 1) return only.public_key;
  const what = only ? `${found.length} keys of ${label} begin` : `no key of ${label} begins`;
  throw new ReveilleError('not_found', `${what} with ${beginning}; "reveille agent list --json" shows whole keys`);
}

/** Revokes one key of a label, or all of them, with immediate effect. */
export async function agentRevoke(context: CliContext, flags: KeyFlags): Promise<void> {
  const label = labelFlag(flags.label);
  if (label === undefined) throw new UsageError('--label is missing; "reveille agent list" shows the labels');
  const client = adminClient(context);
  const publicKey = flags.publicKey === undefined ? undefined : await keyOf(client, label, flags.publicKey);
  const revoked = await client.revokeAgent({
    label,
    ...(publicKey === undefined ? {} : { public_key: publicKey }),
  });
  context.out.list(revoked, () => revoked.map(({ did }) => `Revoked ${did}`));
}

function renderKeys(keys: readonly EnrolledKey[], look: Reader): string[] {
  if (keys.length === 0) return ['No keys yet; the first key that proves its label is pinned.'];
  const rows = keys.map((key) => [
    key.label,
    `${key.public_key.slice(0, FINGERPRINT_LENGTH)}…`,
    key.revoked_at === undefined ? key.source : 'revoked',
    fromNow(Date.parse(key.revoked_at ?? key.enrolled_at), look.now),
  ]);
  const [heading, ...lines] = table(['LABEL', 'PUBLIC KEY', 'STATE', 'SINCE'], rows, look);
  const body = lines.map((line, at) => (keys[at]!.revoked_at === undefined ? line : look.paint('dim', line)));
  return [heading!, ...body];
}

export async function agentList(context: CliContext): Promise<void> {
  const keys = await Array.fromAsync(eachKey(adminClient(context)));
  context.out.list(keys, () => renderKeys(keys, readerOf(context)));
}

/** A line of the file. A missing key is created in the folder of `--output`. */
const entrySchema = z.strictObject({ label: labelSchema, public_key: publicKeySchema.optional() });
type Entry = z.output<typeof entrySchema> & { line: number };

const MOST_LINES = 100_000;
const EXAMPLE = '{"label": "alice", "public_key": "<64 hex digits>"}';

type Row = { line: number; label: string } & (
  | { result: 'enrolled' | 'already'; did: string; public_key: string; home?: string }
  | { result: 'failed'; error: string }
);

/** Reads the whole file before any enrollment. @throws UsageError naming the wrong lines, up to ten */
function readRoster(text: string, isWritten: boolean): Entry[] {
  const entries: Entry[] = [];
  const problems: string[] = [];
  const seen = new Map<string, number>();
  for (const [index, source] of text.split('\n').entries()) {
    const line = index + 1;
    if (source.trim() === '') continue;
    try {
      const entry = { ...parseOrThrow(entrySchema, JSON.parse(source)), line };
      if (entry.public_key === undefined && !isWritten)
        throw new ReveilleError(
          'invalid_request',
          'public_key is missing; --output <folder> creates a key for the line',
        );
      // With a folder each agent has one line, because its folder has one key.
      const name = isWritten ? ownerOf(entry.label) : `${ownerOf(entry.label)} ${entry.public_key?.toLowerCase()}`;
      const before = seen.get(name);
      if (before !== undefined) throw new ReveilleError('invalid_request', `duplicate of line ${before}`);
      seen.set(name, line);
      entries.push(entry);
    } catch (error) {
      const why = error instanceof SyntaxError ? `must be a JSON object such as ${EXAMPLE}` : (error as Error).message;
      problems.push(`line ${line}: ${why}`);
    }
  }
  if (entries.length > MOST_LINES) problems.push(`it has ${entries.length} lines; the limit is ${MOST_LINES}`);
  if (entries.length === 0 && problems.length === 0)
    problems.push(`it has no lines; a line is a JSON object such as ${EXAMPLE}`);
  if (problems.length === 0) return entries;
  const more = problems.length > 10 ? `; and ${problems.length - 10} more` : '';
  throw new UsageError(`nothing was enrolled: ${problems.slice(0, 10).join('; ')}${more}`);
}

function configurationOf(label: string, { url, token }: { url: string; token: string }): string {
  return [
    `# Configuration of the agent ${label}: set REVEILLE_HOME to this folder on the agent's host.`,
    '# This file contains a token of the fleet. keys/agent.key, if present, is the identity of this agent alone.',
    `MATRIX_USER_ID: ${JSON.stringify(label)}`,
    `MATRIX_CHRONOS_URL: ${JSON.stringify(url)}`,
    `MATRIX_CHRONOS_TOKEN: ${JSON.stringify(token)}`,
    '',
  ].join('\n');
}

type RosterFlags = { from: string; output?: string | undefined };

/**
 * Enrolls every line of a file and reports each. An enrolled key stays; a revoked one stays revoked. With `output` each
 * agent gets a folder there, its `REVEILLE_HOME`.
 *
 * @throws UsageError before any enrollment, when a line is wrong
 * @throws ReveilleError `unavailable` after all lines, when some of them failed
 */
async function enrollRoster(context: CliContext, { from, output }: RosterFlags) {
  const { out } = context;
  const entries = readRoster(fileFlag('--from', from), output !== undefined);
  const client = adminClient(context);
  const keys = new Map(
    (await Array.fromAsync(eachKey(client))).map((key) => [`${ownerOf(key.label)} ${key.public_key}`, key]),
  );
  const place = output === undefined ? undefined : findChronos(context);
  const rows: Row[] = [];

  const enroll = async ({ label, public_key: given, line }: Entry): Promise<Row> => {
    const home = output === undefined ? undefined : homeAt(resolve(output, label));
    // The key is on disk before chronosd knows it, so that an enrolled key can always be used.
    const publicKey = (given ?? loadOrCreateKey(home!.keyFile).publicKeyHex).toLowerCase();
    if (home) {
      const text = configurationOf(label, place!);
      const there = existsSync(home.configFile) ? readPrivateFile(home.configFile) : undefined;
      if (there === undefined) writePrivateFile(home.configFile, text);
      else if (there !== text)
        throw new ReveilleError(
          'conflict',
          `${home.configFile} has other content and was not changed; move it away first`,
        );
    }
    const about = {
      line,
      label,
      did: didOf(label, publicKey),
      public_key: publicKey,
      ...(home && { home: home.path }),
    };
    const before = keys.get(`${ownerOf(label)} ${publicKey}`);
    if (before?.revoked_at !== undefined)
      throw new ReveilleError(
        'conflict',
        `the key was revoked at ${before.revoked_at}; "agent enroll --label ${label} --public-key …" enrolls it again`,
      );
    if (before?.source === 'enrolled') return { ...about, result: 'already' };
    await client.enrollAgent({ label, public_key: publicKey });
    return { ...about, result: 'enrolled' };
  };

  for (const entry of entries) {
    const row = await enroll(entry).catch((error: unknown): Row => {
      if (!(error instanceof ReveilleError)) throw error;
      return { line: entry.line, label: entry.label, result: 'failed', error: error.message };
    });
    rows.push(row);
    if (out.json) out.result(row, []);
    else if (row.result === 'failed') out.line(`line ${row.line}  ${row.label}  failed: ${oneLine(row.error)}`);
    else
      out.line(
        `line ${row.line}  ${row.label}  ${row.result === 'already' ? 'enrolled already' : 'enrolled'}  ${row.did}`,
      );
  }

  const count = (result: Row['result']) => rows.filter((row) => row.result === result).length;
  const failed = count('failed');
  if (!out.json) {
    out.line(`${count('enrolled')} enrolled, ${count('already')} enrolled already, ${failed} failed`);
    if (output !== undefined) out.line(`Each agent's REVEILLE_HOME is ${join(resolve(output), '<label>')}.`);
    else out.line('--output <folder> also writes the configuration of each agent.');
  }
  if (failed > 0)
    throw new ReveilleError(
      'unavailable',
      `${failed} of ${rows.length} lines failed; run the command again, enrolled lines stay`,
    );
}
