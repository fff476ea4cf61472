/**
 * The conversation of a tool call. It is never guessed: a wrong session would receive another session's message.
 *
 * The open session of each client: the client's hook records it with every prompt, and `alarm_set` reads it. Clients
 * pass the session's id to hooks. They do not pass it to MCP servers, or only once.
 *
 * One file per client process keeps two sessions in one folder apart.
 */
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readPrivateFile, replacePrivateFile } from '../kit/identity/private-file.ts';
import { type ClientProcess, isAlive } from '../kit/process/process-info.ts';
import { conversationIdSchema } from '../wire/alarm.ts';
import { CONVERSATION_META } from '../wire/manifest.ts';

/** A conversation, and a remark about waking it. */
export type Conversation = { readonly id: string; readonly note?: string | undefined };

/** Codex's client name, and the `_meta` field with the thread of a call. */
const CODEX = /^codex/i;
const CODEX_THREAD_META = 'threadId';

/** The remark when the conversation is unknown. */
export const NEW_CONVERSATION =
  'The conversation of this call is not known: the alarm starts a new conversation. Pass conversation_id to be woken in this one.';

/**
 * The conversation of a call, for an alarm that names none.
 *
 * @param meta the call's `_meta`
 * @param client the client's name in its handshake
 * @param session the open conversation of the client process
 * @returns `undefined` when unknown
 */
export function conversationOf(
  meta: Readonly<Record<string, unknown>>,
  client: string | undefined,
  session: () => Conversation | undefined,
): Conversation | undefined {
  // One process of Codex may serve many threads: only the call names its thread.
  const isCodex = (client !== undefined && CODEX.test(client)) || meta[CODEX_THREAD_META] !== undefined;
  const own = meta[CONVERSATION_META] ?? (isCodex ? meta[CODEX_THREAD_META] : undefined);
  if (own === undefined) return isCodex ? undefined : session();
  const { data } = conversationIdSchema.safeParse(own);
  return data === undefined ? undefined : { id: data };
}

const recordSchema = z.object({
  pid: z.int(),
  started: z.string(),
  /** Missing when unknown. */
  session: conversationIdSchema.optional(),
  folder: z.string().optional(),
  /** Earlier sessions of this process. */
  earlier: z.array(z.string()),
});
type SessionRecord = z.output<typeof recordSchema>;

/** Limits: client processes on record, and earlier sessions of each. */
const MOST_CLIENTS = 64;
const MOST_EARLIER = 32;

const fileOf = (folder: string, { pid, started }: ClientProcess) =>
  join(folder, `${pid}-${started.replaceAll(/[^0-9A-Za-z]/g, '')}.json`);

function readRecord(file: string): SessionRecord | undefined {
  try {
    const text = readPrivateFile(file);
    return text === undefined ? undefined : recordSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Removes records of ended processes, and the oldest beyond the limit. */
function sweep(folder: string): void {
  const files = readdirSync(folder)
    .filter((name) => /^\d+-.*\.json$/.test(name))
    .map((name) => join(folder, name));
  const kept = files.filter((file) => {
    const record = readRecord(file);
    const isKept = record !== undefined && isAlive(record);
    if (!isKept) rmSync(file, { force: true });
    return isKept;
  });
  const age = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  for (const file of kept.sort((one, other) => age(other) - age(one)).slice(MOST_CLIENTS))
    rmSync(file, { force: true });
}

/** The used fields of a hook's input; the prompt is not kept. */
const hookInputSchema = z.object({ session_id: conversationIdSchema, cwd: z.string().max(4096).optional() });

/**
 * Records the open session of a client. A process that returns to an earlier session may serve several: its session is
 * unknown from then on.
 *
 * @param folder of the records; created if missing
 * @param input of the hook: JSON with `session_id`; any other input makes the session unknown
 */
export function recordSession(folder: string, client: ClientProcess, input: string): void {
  let given: z.output<typeof hookInputSchema> | undefined;
  try {
    given = hookInputSchema.parse(JSON.parse(input));
  } catch {
    given = undefined;
  }
  const file = fileOf(folder, client);
  const before = readRecord(file);
  const session = given?.session_id;
  if (before !== undefined && before.session === session && before.folder === given?.cwd) return;
  const changed = before?.session !== undefined && before.session !== session;
  const earlier = [...(before?.earlier ?? []), ...(changed ? [before.session!] : [])].slice(-MOST_EARLIER);
  const record: SessionRecord = {
    pid: client.pid,
    started: client.started,
    ...(session !== undefined && !earlier.includes(session) && { session }),
    ...(given?.cwd !== undefined && { folder: given.cwd }),
    earlier,
  };
  replacePrivateFile(file, `${JSON.stringify(record)}\n`);
  if (before === undefined) sweep(folder);
}

const targetSchema = z.object({ client: z.string(), folder: z.string() });

/** A remark when wakes cannot find the session's folder; `undefined` otherwise. */
function elsewhere(targetFile: string, folder: string | undefined): string | undefined {
  try {
    const text = readPrivateFile(targetFile);
    if (text === undefined || folder === undefined) return undefined;
    const target = targetSchema.parse(JSON.parse(text));
    if (target.folder === folder) return undefined;
    return `Wakes start ${target.client} in ${target.folder}. This session is of ${folder}, so the alarm starts a new conversation there.`;
  } catch {
    return undefined;
  }
}

/**
 * The open session of a client process.
 *
 * @param folder of the records
 * @param targetFile names the folder of the wake target that `connect` registered
 * @returns `undefined` when unknown
 */
export function sessionOf(
  folder: string,
  targetFile: string,
  client: ClientProcess | undefined,
): Conversation | undefined {
  const record = client && existsSync(folder) ? readRecord(fileOf(folder, client)) : undefined;
  if (record?.session === undefined) return undefined;
  return { id: record.session, note: elsewhere(targetFile, record.folder) };
}
