/**
 * Loaded before each test file: what was compiled for one file is there for the next, which halves what a small file costs. Processes that a
 * test starts find it through NODE_COMPILE_CACHE, where the test hands that on.
 */
import { enableCompileCache, getCompileCacheDir } from 'node:module';

enableCompileCache();
process.env.NODE_COMPILE_CACHE ??= getCompileCacheDir();
