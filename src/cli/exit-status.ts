/** What a command's end says to the shell (docs/contracts.md §10); 3 is the doctor's alone. */
export const EXIT = { done: 0, failed: 1, usage: 2, notRunning: 3 } as const;
