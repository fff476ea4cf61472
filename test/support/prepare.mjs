/**
 * Loaded before each test file. The compiled code of one file is reused by the next, which halves the cost of a small
 * file. Processes that a test starts find it through NODE_COMPILE_CACHE, where the test passes that on.
 */
import { createRequire, enableCompileCache, flushCompileCache, getCompileCacheDir } from 'node:module';
import { after, before } from 'node:test';
import { isMainThread } from 'node:worker_threads';

enableCompileCache();
process.env.NODE_COMPILE_CACHE ??= getCompileCacheDir();
// Not before: without the compile cache, the first file with types loads a compiler.
await import('../../bin/lean-modules.ts');

// Property tests print their seed when they fail; this variable passes it to them.
if (process.env.REVEILLE_SEED !== undefined) {
  const { default: check } = await import('fast-check');
  check.configureGlobal({ seed: Number(process.env.REVEILLE_SEED) });
}

// Node stores the code at the end of the process; the other files of a first run and the children of this one start
// before.
if (isMainThread) before(() => flushCompileCache());

/** Maximum time from the last test of a file to its end. */
const OPEN_MS = 30_000;

// Resources that a failed test left open, such as a program, would keep the whole run waiting.
if (isMainThread)
  after(() => {
    const open = () => {
      console.error(`still open after its last test: ${process.getActiveResourcesInfo().join(', ')}`);
      process.exit(1);
    };
    setTimeout(open, OPEN_MS).unref();
  });

// The runner traces every promise and socket to the test that made it, in order to attribute an error outside of all
// calls. That is a tenth of the cost of the suites. Without it such an error fails the file.
if (isMainThread && process.execArgv.includes('--expose-internals')) {
  const [hooks] = createRequire(import.meta.url)('internal/async_hooks').getHookArrays();
  for (const hook of [...hooks]) hook.disable();
}
