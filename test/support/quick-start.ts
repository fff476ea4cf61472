/** What programs that tests start are given, so that they start as quickly as those of the command line do. */

const { NODE_COMPILE_CACHE: folder } = process.env;

/** Flags for Node: modules that nobody here calls are left out. */
export const LEAN: readonly string[] = ['--import', import.meta.resolve('../../bin/lean-modules.ts')];

/** Of their environment: what was compiled once is there for all, for those as well that inherit nothing. */
export const COMPILED: Readonly<Record<string, string>> = folder === undefined ? {} : { NODE_COMPILE_CACHE: folder };
