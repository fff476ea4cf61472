/**
 * A look at an MCP server: the events of a subscription since the last look. The server is one of the agent's manifest,
 * which the machine's specification names, and has an address: programs are run only by the agent itself.
 */
import { type EventServers, EventsRefused } from '../../mcp-host/event-servers.ts';
import { loadManifest, type ServerSpec } from '../../mcp-host/manifest.ts';
import { thrownText } from '../../wire/errors.ts';
import { eventData, LOOK_MS, type LookAnswer, type LookedAt, SEEN_MAX_BYTES } from '../../wire/look.ts';
import { utf8Bytes } from '../../wire/text.ts';
import { digestOf, NotAllowed, Undecided } from '../checks/finding.ts';
import type { Machine } from '../machines/machine.ts';
import { resolvedVariable } from '../providers/child-environment.ts';

type McpSource = Extract<LookedAt, { source: 'mcp' }>;

/** Events that a server is asked for at once. */
const EVENTS = 100;
const ID_CHARACTERS = 400;
const LONGEST_WAIT_MS = 24 * 3600 * 1000;

type Seen = { of: string; cursor: string | null };

export type McpParts = {
  servers: EventServers;
  /** The router's own variables, to which those of the machine may refer. */
  environment: Readonly<Record<string, string | undefined>>;
};

/**
 * @param seen what the last look had shown; without it, events count from now on
 * @throws Undecided when the server does not answer, NotAllowed when it can never be asked
 */
export async function lookAtServer(
  machine: Machine,
  source: McpSource,
  { servers, environment }: McpParts,
  seen: string | undefined,
): Promise<LookAnswer> {
  const { name, arguments: given } = source;
  const spec = serverOf(machine, source.server, environment);
  const of = digestOf(JSON.stringify([source.server, name, given ?? {}])).slice(7, 23);
  const read = seen === undefined ? undefined : decodeSeen(seen);
  const before = read?.of === of ? read : undefined;
  const query = { name, arguments: given, maxEvents: EVENTS, user: machine.userId, cursor: before?.cursor ?? null };
  const page = await servers.poll(spec, query, LOOK_MS).catch((thrown: unknown) => {
    throw thrown instanceof EventsRefused ? new NotAllowed(thrown.message) : new Undecided(thrownText(thrown));
  });
  const { cursor, isTruncated, hasMore, nextPollMs } = page;
  const after = JSON.stringify({ of, cursor });
  if (utf8Bytes(after) > SEEN_MAX_BYTES) throw new Undecided(`the cursor of the server ${spec.alias} is too long`);
  if (page.events.length > EVENTS) throw new Undecided(`the server ${spec.alias} sent more events than were asked for`);
  const gap = {
    id: `gap-${digestOf(after).slice(7, 23)}`,
    data: JSON.stringify({ name, truncated: true, note: 'the server has skipped events that it no longer has' }),
  };
  const events = page.events.map(({ eventId, source: data }) => ({
    id: idOf(eventId),
    data: dataOf(data, eventId, name),
  }));
  return {
    // Without a cursor the first answer is where the subscription begins.
    events: before ? [...(isTruncated ? [gap] : []), ...events] : [],
    seen: after,
    ...(hasMore && cursor !== null && cursor !== before?.cursor && { more: true }),
    ...(nextPollMs !== undefined && { wait_ms: Math.min(Math.ceil(nextPollMs), LONGEST_WAIT_MS) }),
  };
}

const idOf = (eventId: string) => (eventId.length <= ID_CHARACTERS ? `mcp-${eventId}` : digestOf(eventId));

/** The event as the server wrote it. */
function dataOf(source: string, eventId: string, name: string): string {
  return eventData(source, (bytes) => ({
    ...{ eventId: eventId.slice(0, ID_CHARACTERS), name, bytes },
    note: 'the event is too long for a wake; ask the server for it',
  }));
}

/** @throws NotAllowed when the manifest has no such server with an address */
function serverOf(
  { provider, spec, userId }: Machine,
  alias: string,
  environment: McpParts['environment'],
): ServerSpec {
  if (provider !== 'process')
    throw new NotAllowed(
      `events of MCP servers need a machine of provider process, whose manifest the router can read; that of ${userId} has provider ${provider}`,
    );
  const variables = { ...environment };
  try {
    for (const [name, value] of Object.entries(spec.env ?? {}))
      variables[name] = resolvedVariable(name, value, environment);
  } catch (thrown) {
    throw new NotAllowed(thrownText(thrown));
  }
  const { NEO_MANIFEST: path } = spec.env ?? {};
  if (path === undefined || !path.startsWith('/'))
    throw new NotAllowed(
      `the machine of ${userId} names no manifest file (NEO_MANIFEST), so it has no server ${alias}`,
    );
  let servers: readonly ServerSpec[];
  try {
    ({ servers } = loadManifest(path, variables));
  } catch (thrown) {
    throw new Undecided(`the manifest of ${userId} cannot be read: ${thrownText(thrown)}`);
  }
  const server = servers.find((one) => one.alias === alias);
  const withAddress = servers.filter(({ link }) => link.kind === 'http').map((one) => one.alias);
  const others =
    withAddress.length === 0 ? 'it has none with an address' : `those with an address: ${withAddress.join(', ')}`;
  if (!server) throw new NotAllowed(`the manifest of ${userId} has no server ${alias}; ${others}`);
  if (server.link.kind !== 'http')
    throw new NotAllowed(
      `the server ${alias} is a program that only the agent runs, so its events cannot be asked for; ${others}`,
    );
  if (server.missing.length > 0)
    throw new NotAllowed(`the server ${alias} refers to ${server.missing.join(', ')}, which the machine does not set`);
  if (server.unmetNeed !== undefined) throw new NotAllowed(`the server ${alias} is off: ${server.unmetNeed}`);
  return server;
}

/** `undefined` for a text that this version has not written. */
function decodeSeen(text: string): Seen | undefined {
  try {
    const { of, cursor } = JSON.parse(text) as Partial<Seen>;
    return typeof of === 'string' && cursor !== undefined ? { of, cursor } : undefined;
  } catch {
    return undefined;
  }
}
