/** A program that exchanges a folder for a link, as fast as it can. */
import { spawn } from 'node:child_process';

const SCRIPT = `
const { renameSync, symlinkSync, rmSync } = require('node:fs');
const [, folder, outside] = process.argv;
symlinkSync(outside, folder + '/lure');
for (;;) {
  try {
    renameSync(folder + '/real', folder + '/swapped');
    renameSync(folder + '/swapped', folder + '/real');
    renameSync(folder + '/lure', folder + '/swapped');
    renameSync(folder + '/swapped', folder + '/lure');
  } catch {}
}`;

/** @returns ends it */
export function swapper(folder: string, outside: string): () => void {
  const child = spawn(process.execPath, ['-e', SCRIPT, folder, outside], { stdio: 'inherit' });
  return () => void child.kill('SIGKILL');
}
