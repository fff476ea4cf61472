/**
 * Makes loading modules cheaper, which is most of what a start costs.
 *
 * It leaves out modules that nobody here calls: zod brings its messages in fifty languages, a file each, whoever imports
 * it. Ours are in English, which zod loads by itself. And it takes a relative import that names its file as it is:
 * Node would look for the file, for links on the way and for the package around it, once for each of hundreds.
 */
import { registerHooks } from 'node:module';

const NOTHING = { url: 'data:text/javascript,', format: 'module', shortCircuit: true };
const NAMES_A_FILE = /^\.\.?\/.*\.(?:ts|js|mjs)$/;

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL, conditions } = context;
    if (specifier === '../locales/index.js' && parentURL?.includes('/node_modules/zod/v4/')) return NOTHING;
    if (!NAMES_A_FILE.test(specifier) || !parentURL?.startsWith('file:') || !conditions.includes('import'))
      return next(specifier, context);
    return { url: new URL(specifier, parentURL).href, shortCircuit: true };
  },
});
