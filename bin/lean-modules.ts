/**
 * Makes loading modules cheaper; it takes most of the time of a start.
 *
 * - Skips unused modules: zod imports its messages in fifty languages, one file each. Reveille needs only English, which
 *   zod loads separately.
 * - Uses a relative import with a file name as it is. Node would check the file, links in its path and its package, for
 *   each of hundreds of imports.
 */
import { registerHooks } from 'node:module';

const EMPTY_MODULE = { url: 'data:text/javascript,', format: 'module', shortCircuit: true };
const FILE_IMPORT = /^\.\.?\/.*\.(?:ts|js|mjs)$/;

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL, conditions } = context;
    if (specifier === '../locales/index.js' && parentURL?.includes('/node_modules/zod/v4/')) return EMPTY_MODULE;
    if (!FILE_IMPORT.test(specifier) || !parentURL?.startsWith('file:') || !conditions.includes('import'))
      return next(specifier, context);
    return { url: new URL(specifier, parentURL).href, shortCircuit: true };
  },
});
