/**
 * Loaded before each test file. What was compiled for one file is there for the next, which halves what a small file costs. Processes that a
 * test starts find it through NODE_COMPILE_CACHE, where the test hands that on.
 */
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import '../../bin/lean-modules.ts';

enableCompileCache();
process.env.NODE_COMPILE_CACHE ??= getCompileCacheDir();

// Properties say their seed when they fail; this is how it is given back to them.
if (process.env.REVEILLE_SEED !== undefined) {
  const { default: check } = await import('fast-check');
  check.configureGlobal({ seed: Number(process.env.REVEILLE_SEED) });
}
