/** The folder of a capability: paths outside it are refused. */
import { realpathSync, statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { isWithin } from '../kit/process/view.ts';
import { ReveilleError } from '../wire/errors.ts';

export class Workspace {
  readonly root: string;

  /** @throws ReveilleError `invalid_request` when it is not a folder */
  constructor(folder: string) {
    if (!isAbsolute(folder) || !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      throw new ReveilleError('invalid_request', `the workspace must be a folder (got ${JSON.stringify(folder)})`);
    this.root = realpathSync(folder);
  }

  /**
   * The real path of a folder of the workspace.
   *
   * @param path relative to the workspace; default: the workspace itself
   * @throws ReveilleError `invalid_request` when it does not exist, `forbidden` when it is outside the workspace
   */
  folder(path = '.'): string {
    const shown = JSON.stringify(path.slice(0, 200));
    let real: string;
    try {
      real = realpathSync(resolve(this.root, path));
    } catch {
      throw new ReveilleError('invalid_request', `folder must be a folder of the workspace (${shown} does not exist)`);
    }
    if (!isWithin(real, this.root))
      throw new ReveilleError('forbidden', `folder must be in the workspace (${shown} is outside)`);
    if (!statSync(real).isDirectory()) throw new ReveilleError('invalid_request', `folder: ${shown} is a file`);
    return real;
  }
}

/** The environment of programs in the workspace: only the search path and a home folder. */
export function cleanVariables(workspace: Workspace, path: string | undefined): Record<string, string> {
  return { PATH: path || '/usr/local/bin:/usr/bin:/bin', HOME: workspace.root, LANG: 'C.UTF-8', TMPDIR: '/tmp' };
}
