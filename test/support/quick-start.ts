/** Settings of programs that tests start, for a start as quick as that of the command line. */

const { NODE_COMPILE_CACHE: folder } = process.env;

/** Flags for Node: they omit modules that no test uses. */
export const LEAN: readonly string[] = ['--import', import.meta.resolve('../../bin/lean-modules.ts')];

/** Their environment: a shared compile cache, also for processes without an inherited environment. */
export const COMPILED: Readonly<Record<string, string>> = folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
