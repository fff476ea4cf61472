/** The folder that a capability works in: paths that are given to it lead nowhere else. */
import { realpathSync, statSync } from 'node:fs';
import { isAbsolute, resolve } from 'node:path';
import { isWithin } from '../kit/process/view.ts';
import { ReveilleError } from '../wire/errors.ts';

export class Workspace {
  readonly root: string;

  /** @throws ReveilleError `invalid_request` for what is no folder */
  constructor(folder: string) {
    if (!isAbsolute(folder) || !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      throw new ReveilleError('invalid_request', `the workspace must be a folder (got ${JSON.stringify(folder)})`);
    this.root = realpathSync(folder);
  }

  /**
   * A folder of the workspace, without links.
   *
   * @param path relative to the workspace; the workspace itself unless told
   * @throws ReveilleError `invalid_request` for one that is not there, `forbidden` for one that lies elsewhere
   */
  folder(path = '.'): string {
    const shown = JSON.stringify(path.slice(0, 200));
    let real: string;
    try {
      real = realpathSync(resolve(this.root, path));
    } catch {
      throw new ReveilleError('invalid_request', `folder must be one of the workspace (${shown} is not there)`);
    }
    if (!isWithin(real, this.root))
      throw new ReveilleError('forbidden', `folder must lie in the workspace (${shown} leads out of it)`);
    if (!statSync(real).isDirectory()) throw new ReveilleError('invalid_request', `folder: ${shown} is a file`);
    return real;
  }
}

/** What programs of the workspace get of the environment: nothing but where programs and a home are. */
export function cleanVariables(workspace: Workspace, path: string | undefined): Record<string, string> {
  return { PATH: path || '/usr/local/bin:/usr/bin:/bin', HOME: workspace.root, LANG: 'C.UTF-8', TMPDIR: '/tmp' };
}
