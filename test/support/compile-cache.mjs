/** Loaded before each test file: what was compiled for one file is there for the next, which halves what a small file costs. */
import { enableCompileCache } from 'node:module';

enableCompileCache();
