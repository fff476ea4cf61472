/** `reveille agent`: the identity of this agent, and the keys that chronosd accepts. */

import type { ChronosClient } from '../../chronos/client.ts';
import { fromNow } from '../../kit/clock/local-time.ts';
import { agentIdentity } from '../../kit/identity/agent.ts';
import { loadOrCreateKey, readKeyFile } from '../../kit/identity/keys.ts';
import { oneLine } from '../../kit/text/hidden-characters.ts';
import { type EnrolledKey, publicKeySchema } from '../../wire/agent.ts';
import { FINGERPRINT_LENGTH, labelSchema, ownerOf } from '../../wire/did.ts';
import { ReveilleError } from '../../wire/errors.ts';
import { adminClient, keyFileOf, labelOf } from '../access/chronos.ts';
import type { CliContext } from '../context.ts';
import { UsageError } from '../flags/usage-error.ts';
import { loadOrMakeLabel, makeHome } from '../home/home.ts';
import { columns } from '../screens/columns.ts';
import { lookOf } from '../screens/look.ts';
import { facts, type Look } from '../screens/render.ts';
import { enrollRoster } from './agent-roster.ts';

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
  context.out.result(record, facts(rows, lookOf(context)));
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

/** Enrolls a key for a label: the given one, that of a key file, or this agent's own. With `--from`, all keys of a file. */
export async function agentEnroll(context: CliContext, flags: EnrollFlags): Promise<void> {
  const { from, output } = flags;
  if (from !== undefined) {
    const single = [flags.label, flags.publicKey, flags.keyFile].some((flag) => flag !== undefined);
    if (single) throw new UsageError('--from excludes --label, --public-key and --key-file; the file contains them');
    return await enrollRoster(context, { from, output }, () => allKeys(adminClient(context)));
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

async function allKeys(client: ChronosClient): Promise<EnrolledKey[]> {
  const keys: EnrolledKey[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.listAgents(cursor === undefined ? {} : { cursor });
    keys.push(...page.agents);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return keys;
}

/** The key of a label by its beginning, as `agent list` and DIDs show it. */
async function keyOf(client: ChronosClient, label: string, given: string): Promise<string> {
  const beginning = given.toLowerCase().replace(/…$/, '');
  if (!BEGINNING.test(beginning)) return publicKeyFlag(given)!;
  const found = (await allKeys(client)).filter(
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
  const { out } = context;
  if (out.json) for (const key of revoked) out.result(key, []);
  else for (const key of revoked) out.line(`Revoked ${key.did}`);
}

function renderKeys(keys: readonly EnrolledKey[], look: Look): string[] {
  if (keys.length === 0) return ['No keys yet; the first key that proves its label is pinned.'];
  const rows = keys.map((key) => [
    key.label,
    `${key.public_key.slice(0, FINGERPRINT_LENGTH)}…`,
    key.revoked_at === undefined ? key.source : 'revoked',
    fromNow(Date.parse(key.revoked_at ?? key.enrolled_at), look.now),
  ]);
  const [heading, ...lines] = columns([['LABEL', 'PUBLIC KEY', 'STATE', 'SINCE'], ...rows], look.width);
  const body = lines.map((line, at) => (keys[at]!.revoked_at === undefined ? line : look.paint('dim', line)));
  return [look.paint('dim', heading!), ...body];
}

export async function agentList(context: CliContext): Promise<void> {
  const { out } = context;
  const keys = await allKeys(adminClient(context));
  if (out.json) for (const key of keys) out.result(key, []);
  else for (const line of renderKeys(keys, lookOf(context))) out.line(line);
}
