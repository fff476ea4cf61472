#!/usr/bin/env node
// The only plain JavaScript in the house: an older Node cannot even read what comes after it, and should say so kindly.
const NEEDED = 24;
const major = Number(process.versions.node.split('.')[0]);
if (major < NEEDED) {
  console.error(
    `reveille needs Node ${NEEDED} or newer (this is ${process.versions.node}); inside the repository, "npm start" and "npx reveille" use the pinned one`,
  );
  // A prompt hook must never stand in the way of a prompt.
  const isHook = process.argv[2] === 'time' && process.argv[3] === 'hook';
  process.exit(isHook ? 0 : 1);
}
const { enableCompileCache } = await import('node:module');
enableCompileCache();
await import('./reveille.ts');
