/**
 * Loaded before each test file. What was compiled for one file is there for the next, which halves what a small file costs. Processes that a
 * test starts find it through NODE_COMPILE_CACHE, where the test hands that on.
 */
import { createRequire, enableCompileCache, getCompileCacheDir } from 'node:module';
import { after } from 'node:test';
import { isMainThread } from 'node:worker_threads';

enableCompileCache();
process.env.NODE_COMPILE_CACHE ??= getCompileCacheDir();
// Not before: without what was compiled earlier, the first file with types loads a compiler.
await import('../../bin/lean-modules.ts');

// Properties say their seed when they fail; this is how it is given back to them.
if (process.env.REVEILLE_SEED !== undefined) {
  const { default: check } = await import('fast-check');
  check.configureGlobal({ seed: Number(process.env.REVEILLE_SEED) });
}

/** How long a file may stay after its last test. */
const OPEN_MS = 30_000;

// What a failed test has left open, a program that it had started say, would keep the whole run waiting.
if (isMainThread)
  after(() => {
    const open = () => {
      console.error(`still open after its last test: ${process.getActiveResourcesInfo().join(', ')}`);
      process.exit(1);
    };
    setTimeout(open, OPEN_MS).unref();
  });

// The runner follows every promise and socket back to the test that made it, so that it can say which test an error
// outside of all calls belongs to. That is a tenth of what the suites cost. Without it such an error fails the file.
if (isMainThread && process.execArgv.includes('--expose-internals')) {
  const [hooks] = createRequire(import.meta.url)('internal/async_hooks').getHookArrays();
  for (const hook of [...hooks]) hook.disable();
}
