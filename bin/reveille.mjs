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
const { join } = await import('node:path');
// What lies there is run without another look. Node's own place for it is the folder for temporary files: an agent's program behind walls may
// write there, and another user may have made that folder first. Beside our code, whoever may change the one may change the other.
enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'reveille'));
await import('./lean-modules.ts');
await import('./reveille.ts');
