#!/usr/bin/env node
// The only program file in plain JavaScript, in syntax that every Node since 12 can parse. An older Node cannot parse the
// other files; this file prints the required version.
const REQUIRED_VERSION = 24;
const { node } = process.versions;
if (Number(node.split('.')[0]) < REQUIRED_VERSION) {
  console.error(
    `reveille needs Node ${REQUIRED_VERSION} or newer (this is Node ${node}); install it from https://nodejs.org, or run "npm ci && npm start" in a checkout, which brings its own`,
  );
  // A prompt hook must never block a prompt.
  const isHook = process.argv[2] === 'time' && process.argv[3] === 'hook';
  process.exit(isHook ? 0 : 1);
}
import('node:module')
  .then(({ enableCompileCache }) => {
    // Node executes cached code without a check. Its default folder is below the folder for temporary files, where a
    // sandboxed program or another user could place code. A folder beside this code has the same write permissions as the
    // code. Without write permission there is no cache.
    enableCompileCache(`${import.meta.dirname}/../node_modules/.cache/reveille`);
    return import('./lean-modules.ts');
  })
  .then(() => import('./reveille.ts'));
