/**
 * A look at an MCP server: the events of a subscription since the last look, or its renewal where the server posts its
 * events. The server is one of the agent's manifest, which the machine's specification names, and has an address:
 * programs are run only by the agent itself.
 */
import { isAbsolute } from 'node:path';
import { bundledManifest } from '../../mcp-host/bundled-programs.ts';
import { type EventServers, EventsRefused } from '../../mcp-host/event-servers.ts';
import { loadManifest, type ServerSpec } from '../../mcp-host/manifest.ts';
import { thrownText } from '../../wire/errors.ts';
import {
  CURSOR_CHARACTERS,
  isSubscription,
  LOOK_MAX_BYTES,
  LOOK_MS,
  type LookAnswer,
  type LookedAt,
  type LookRequest,
  mcpEvent,
  mcpGap,
  readPosition,
  SEEN_MAX_BYTES,
} from '../../wire/look.ts';
import { utf8Bytes } from '../../wire/text.ts';
import { digestOf, NotAllowed, Undecided } from '../checks/finding.ts';
import type { Machine } from '../machines/machine.ts';
import { machineVariables } from '../providers/child-environment.ts';
import type { Isolation } from '../providers/isolation.ts';

type McpSource = Extract<LookedAt, { source: 'mcp' }>;

/** Events that a server is asked for at once. */
const EVENTS = 100;
const LONGEST_WAIT_MS = 24 * 3600 * 1000;
/** How long a server is asked to keep a subscription; half of what it grants is waited. */
const SUBSCRIPTION_MS = 3600 * 1000;
const SHORTEST_REFRESH_MS = 5_000;

export type McpParts = {
  servers: EventServers;
  isolation: Pick<Isolation, 'isWritable'>;
  /** The router's own variables, to which those of the machine may refer. The manifest gets only the machine's. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Epoch milliseconds. */
  now: number;
};

/**
 * Asks for the events since the last look, or keeps a subscription alive whose events come by webhook.
 *
 * @param seen what the last look had shown; without it, events count from now on
 * @param callback where the server posts; without it, a server that posts is only asked whether it has the event
 * @throws Undecided when the server does not answer, NotAllowed when it can never be asked
 */
export async function lookAtServer(
  machine: Machine,
  source: McpSource,
  parts: McpParts,
  { seen, callback }: Pick<LookRequest, 'seen' | 'callback'>,
): Promise<LookAnswer> {
  const { servers, now } = parts;
  const { name, arguments: given } = source;
  const spec = serverOf(machine, source.server, parts);
  const of = digestOf(JSON.stringify([source.server, name, given ?? {}])).slice(7, 23);
  const read = seen === undefined ? undefined : readPosition(seen);
  const before = read?.of === of ? read : undefined;
  const subject = { name, arguments: given, user: machine.userId, cursor: before?.cursor ?? null };
  const answer = async <T>(asked: Promise<T>): Promise<T> =>
    asked.catch((thrown: unknown) => {
      throw thrown instanceof EventsRefused ? new NotAllowed(thrown.message) : new Undecided(thrownText(thrown));
    });
  const seenAt = (cursor: string | null): string => {
    const after = JSON.stringify({ of, cursor });
    if (utf8Bytes(after) > SEEN_MAX_BYTES || (cursor?.length ?? 0) > CURSOR_CHARACTERS)
      throw new Undecided(`the cursor of the server ${spec.alias} is too long`);
    return after;
  };
  const gap = (isTruncated: boolean, cursor: string | null) => (isTruncated && before ? [mcpGap(name, cursor)] : []);

  if (isSubscription(source) && callback === undefined) {
    await answer(servers.requireDelivery(spec, subject, 'webhook', LOOK_MS));
    return { events: [], seen: seenAt(null) };
  }
  if (callback !== undefined) {
    const grant = await answer(servers.subscribe(spec, { ...subject, callback, ttlMs: SUBSCRIPTION_MS }, LOOK_MS));
    const cursor = grant.cursor ?? subject.cursor;
    const leftMs = grant.refreshBefore === undefined ? LONGEST_WAIT_MS : (grant.refreshBefore - now) / 2;
    return {
      events: gap(grant.isTruncated, cursor),
      seen: seenAt(cursor),
      wait_ms: Math.ceil(Math.min(Math.max(leftMs, SHORTEST_REFRESH_MS), LONGEST_WAIT_MS)),
    };
  }
  const page = await answer(servers.poll(spec, { ...subject, maxEvents: EVENTS }, LOOK_MS));
  const { cursor, isTruncated, hasMore, nextPollMs } = page;
  if (page.events.length > EVENTS) throw new Undecided(`the server ${spec.alias} sent more events than were asked for`);
  let left = LOOK_MAX_BYTES;
  const events = page.events.map(({ eventId, source: data }) => {
    const event = mcpEvent(data, eventId, name, left);
    left = Math.max(0, left - utf8Bytes(event.data));
    return event;
  });
  return {
    // Without a cursor the first answer is where the subscription begins.
    events: before ? [...gap(isTruncated, cursor), ...events] : [],
    seen: seenAt(cursor),
    ...(hasMore && cursor !== null && cursor !== before?.cursor && { more: true }),
    ...(nextPollMs !== undefined && { wait_ms: Math.min(Math.ceil(nextPollMs), LONGEST_WAIT_MS) }),
  };
}

/**
 * The server of the machine's manifest. The router asks it outside of any sandbox, so it reads no manifest that the
 * machine can write, and gives it no variable that the machine does not get.
 *
 * @throws NotAllowed when the manifest has no such server with an address, or is the machine's to change
 */
function serverOf(machine: Machine, alias: string, { isolation, environment }: McpParts): ServerSpec {
  const { provider, spec, userId } = machine;
  if (provider !== 'process')
    throw new NotAllowed(
      `events of MCP servers need a machine of provider process, whose manifest the router can read; that of ${userId} has provider ${provider}`,
    );
  let variables: Readonly<Record<string, string>>;
  try {
    variables = machineVariables(environment, spec.env ?? {});
  } catch (thrown) {
    throw new NotAllowed(thrownText(thrown));
  }
  const named = variables.NEO_MANIFEST;
  const isBundled = named === 'neo' || named === 'default';
  const path = isBundled ? bundledManifest(named) : named;
  if (path === undefined || !isAbsolute(path))
    throw new NotAllowed(
      `the machine of ${userId} names no manifest file (NEO_MANIFEST), so it has no server ${alias}`,
    );
  const resolved = { ...spec, env: variables };
  if (!isBundled && isolation.isWritable({ ...machine, spec: resolved }, path))
    throw new NotAllowed(
      `the manifest of ${userId} is in a folder that its machine may write, so the router does not read it; move it elsewhere and set NEO_MANIFEST`,
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
