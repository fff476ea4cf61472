#!/usr/bin/env node
// The only plain JavaScript in the house, in words that every Node since 12 can read: an older one cannot even parse what
// comes after it, and says here what it needs.
const NEEDED = 24;
const { node } = process.versions;
if (Number(node.split('.')[0]) < NEEDED) {
  console.error(
    `reveille needs Node ${NEEDED} or newer and this is Node ${node}: get one at https://nodejs.org, or in a checkout run "npm ci && npm start", which brings its own`,
  );
  // A prompt hook must never stand in the way of a prompt.
  const isHook = process.argv[2] === 'time' && process.argv[3] === 'hook';
  process.exit(isHook ? 0 : 1);
}
import('node:module')
  .then(({ enableCompileCache }) => {
    // What lies there is run without another look. Node's own place for it is the folder for temporary files: an agent's
    // program behind walls may write there, and another user may have made that folder first. Beside our code, whoever
    // may change the one may change the other; where nobody may, there is none.
    enableCompileCache(`${import.meta.dirname}/../node_modules/.cache/reveille`);
    return import('./lean-modules.ts');
  })
  .then(() => import('./reveille.ts'));
