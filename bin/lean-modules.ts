/**
 * Leaves out modules that nobody here calls. zod brings its messages in fifty languages, a file each, whoever imports it:
 * a tenth of the CPU time of every start. Ours are in English, which zod loads by itself.
 */
import { registerHooks } from 'node:module';

const NOTHING = { url: 'data:text/javascript,', format: 'module', shortCircuit: true };

registerHooks({
  resolve(specifier, context, next) {
    const isLocales = specifier === '../locales/index.js' && context.parentURL?.includes('/node_modules/zod/v4/');
    return isLocales ? NOTHING : next(specifier, context);
  },
});
