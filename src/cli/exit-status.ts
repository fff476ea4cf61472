/** Exit statuses of commands (docs/reference/api.md); 3 means that Reveille is not running. */
export const EXIT = { done: 0, failed: 1, usage: 2, notRunning: 3 } as const;
