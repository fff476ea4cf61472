/** Names of MCP Events that a plain start of the router needs, which loads nothing else of it. */

/** The database, in the router's folder. */
export const EVENTS_FILE = 'mcp-events.db';
export const EXTENSION = 'io.modelcontextprotocol/events';
export const METHODS = [
  ...(['events/list', 'events/poll', 'events/stream', 'events/subscribe', 'events/unsubscribe'] as const),
] as const;
