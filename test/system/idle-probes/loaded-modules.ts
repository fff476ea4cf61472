/** The modules that a Node process loads: a module that is not loaded cannot have run. */
import { readFileSync } from 'node:fs';

/**
 * A flag for Node with which it writes the address of each module, as it loads it, on a line of a file.
 *
 * @param file absolute
 */
export function recordModules(file: string): string {
  const preload = `
    import { appendFileSync } from 'node:fs';
    import { registerHooks } from 'node:module';
    registerHooks({
      load(url, context, next) {
        appendFileSync(${JSON.stringify(file)}, url + '\\n');
        return next(url, context);
      },
    });`;
  return `--import=data:text/javascript,${encodeURIComponent(preload)}`;
}

/** The recorded modules of a folder below `src`, as paths below it. */
export function modulesBelow(folder: string, file: string): string[] {
  const mark = `/src/${folder}/`;
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((url) => url.includes(mark)).map((url) => url.slice(url.indexOf(mark) + mark.length));
}
