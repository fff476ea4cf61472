/**
 * A repository of the workspace that nobody need trust. What is in it may have been written by a model or fetched from
 * anywhere, and git runs programs that a repository's configuration names. So git is started only where that
 * configuration says nothing but what cannot name a program, with no hooks, no settings of the person and no variables,
 * in a repository that lies in the workspace as a whole.
 */
import { lstatSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../kit/clock/clock.ts';
import { isWithin } from '../kit/process/view.ts';
import { ReveilleError } from '../wire/errors.ts';
import { type ProgramEnd, runBounded } from './bounded-program.ts';
import { cleanVariables, type Workspace } from './workspace.ts';

/** What a repository's configuration may say. Keys as git writes them, sections and names in lower case. */
const HARMLESS = [
  /^core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)$/,
  /^core\.(?:autocrlf|eol|safecrlf|quotepath|abbrev|compression)$/,
  /^extensions\.(?:objectformat|refstorage)$/,
  /^remote\..+\.(?:url|pushurl|fetch|tagopt|prune)$/,
  /^branch\..+\.(?:remote|merge|rebase|description)$/,
  /^user\.(?:name|email)$/,
  /^(?:init\.defaultbranch|pull\.rebase|pull\.ff|push\.default|push\.autosetupremote|fetch\.prune)$/,
  /^submodule\..+\.(?:url|active)$/,
  /^(?:color|advice)\./,
];

/** Said on every command line, where it goes before the repository's own word. */
const GUARDS = [
  ...['core.hooksPath=/dev/null', 'core.fsmonitor=false', 'core.untrackedCache=false', 'core.pager=cat'],
  ...['core.editor=true', 'core.sshCommand=false', 'core.gitProxy=', 'core.askPass=', 'credential.helper='],
  ...['commit.gpgSign=false', 'tag.gpgSign=false', 'push.gpgSign=false', 'log.showSignature=false', 'diff.external='],
  ...[
    'submodule.recurse=false',
    'status.submoduleSummary=false',
    'diff.ignoreSubmodules=dirty',
    'fetch.recurseSubmodules=no',
  ],
  ...['protocol.allow=never', 'http.followRedirects=false', 'gc.auto=0', 'maintenance.auto=false'],
  ...['core.attributesFile=/dev/null', 'core.excludesFile=/dev/null', 'safe.bareRepository=explicit'],
].flatMap((setting) => ['-c', setting]);

const KEPT_BYTES = 200 * 1024;
const LOCAL_MS = 30_000;

export type GitOptions = {
  clock: Clock;
  workspace: Workspace;
  /** Where git is looked for. */
  path: string | undefined;
};

export type GitRun = {
  /** Where to run; the whole repository where one is given. */
  repository?: string;
  cwd: string;
  args: readonly string[];
  /** More configuration for this run, by key. */
  config?: Readonly<Record<string, string>>;
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
};

const refuse = (what: string): never => {
  throw new ReveilleError('forbidden', `git is not run there: ${what}`);
};

export class Git {
  readonly #options: GitOptions;

  constructor(options: GitOptions) {
    this.#options = options;
  }

  get workspace(): Workspace {
    return this.#options.workspace;
  }

  /**
   * The repository that a folder of the workspace belongs to, after it was looked at.
   *
   * @throws ReveilleError `not_found` where there is none, `forbidden` for one that leads out of the workspace or whose
   *   configuration could run programs, naming the key and never its value
   */
  async repository(folder: string | undefined, signal?: AbortSignal): Promise<string> {
    const { workspace } = this.#options;
    const start = workspace.folder(folder);
    for (let root = start; isWithin(root, workspace.root); root = dirname(root)) {
      const found = lstatSync(join(root, '.git'), { throwIfNoEntry: false });
      if (found === undefined) {
        if (root === dirname(root)) break;
        continue;
      }
      if (!found.isDirectory()) refuse('its .git is no folder but leads elsewhere');
      await this.#inspect(root, signal);
      return root;
    }
    const shown = JSON.stringify((folder ?? '.').slice(0, 200));
    throw new ReveilleError('not_found', `there is no git repository at ${shown} of the workspace; init makes one`);
  }

  async #inspect(root: string, signal?: AbortSignal): Promise<void> {
    const own = join(root, '.git');
    for (const name of ['commondir', 'config.worktree', 'objects/info/alternates', 'objects/info/http-alternates'])
      if (lstatSync(join(own, name), { throwIfNoEntry: false })) refuse(`its .git/${name} leads out of the repository`);
    for (const name of ['config', 'HEAD', 'objects', 'refs', 'index', 'info']) {
      const path = join(own, name);
      const found = lstatSync(path, { throwIfNoEntry: false });
      if (found?.isSymbolicLink() || (found && !isWithin(realpathSync(path), own)))
        refuse(`its .git/${name} is a link`);
    }
    const args = ['config', '--file', join(own, 'config'), '--no-includes', '--null', '--name-only', '--list'];
    const listed = await this.run({ cwd: root, args, signal });
    if (listed.code !== 0) refuse('its configuration cannot be read');
    const odd = listed.stdout.split('\0').find((key) => key !== '' && !HARMLESS.some((form) => form.test(key)));
    if (odd === undefined) return;
    const key = JSON.stringify(odd.slice(0, 200));
    refuse(`its .git/config sets ${key}, which may run programs or lead elsewhere; take it out`);
  }

  /** Runs git. Whoever runs it in a repository has looked at it with {@link repository}. */
  run({ repository, cwd, args, config = {}, timeoutMs = LOCAL_MS, signal }: GitRun): Promise<ProgramEnd> {
    const { clock, workspace, path } = this.#options;
    const place =
      repository === undefined ? [] : [`--git-dir=${join(repository, '.git')}`, `--work-tree=${repository}`];
    const more = Object.entries(config).flatMap(([key, value], index) => [
      [`GIT_CONFIG_KEY_${index}`, key],
      [`GIT_CONFIG_VALUE_${index}`, value],
    ]);
    const env = {
      ...cleanVariables(workspace, path),
      ...{ GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_SYSTEM: '/dev/null', GIT_CONFIG_GLOBAL: '/dev/null' },
      ...{
        GIT_TERMINAL_PROMPT: '0',
        GIT_EDITOR: 'true',
        GIT_PAGER: 'cat',
        GIT_SSH_COMMAND: 'false',
        GIT_ASKPASS: 'false',
      },
      ...{ GIT_CEILING_DIRECTORIES: dirname(workspace.root), GIT_ATTR_NOSYSTEM: '1', GIT_LITERAL_PATHSPECS: '1' },
      ...{ GIT_OPTIONAL_LOCKS: '0', GIT_NO_LAZY_FETCH: '1', XDG_CONFIG_HOME: '/dev/null' },
      // Not on the command line, which other processes can read: it may be a credential.
      ...Object.fromEntries([['GIT_CONFIG_COUNT', String(more.length / 2)], ...more]),
    };
    const command = ['git', ...GUARDS, ...place, ...args] as const;
    return runBounded(clock, { ...{ command, cwd, env, timeoutMs, signal }, keptBytes: KEPT_BYTES });
  }
}
