/** What a command's end says to the shell (contracts §10). */
export const EXIT = { done: 0, failed: 1, usage: 2 } as const;
