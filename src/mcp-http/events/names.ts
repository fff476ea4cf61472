/** Names that the router needs at its start, apart from the code of MCP Events, which is loaded later. */

/** The database, in the router's folder. */
export const EVENTS_FILE = 'mcp-events.db';
export const EXTENSION = 'io.modelcontextprotocol/events';
export const METHODS = [
  ...(['events/list', 'events/poll', 'events/stream', 'events/subscribe', 'events/unsubscribe'] as const),
] as const;
