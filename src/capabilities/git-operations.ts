/**
 * The operations of the git tools in a repository of the workspace. `git-thread.ts` runs them in a thread with limits.
 */
import { relative, resolve, sep } from 'node:path';
import * as git from 'isomorphic-git';
import type { Beneath } from '../kit/files/beneath.ts';
import { isWithin } from '../kit/process/view.ts';
import { ReveilleError } from '../wire/errors.ts';
import { type Commit, isGitName, Repository, refuse, shortOf } from './git-repository.ts';
import { changeLines, commitLines, Lines, statusText } from './git-text.ts';
import { type Change, changesBetween, indexTree, selector, WorkTree } from './git-worktree.ts';

type InFolder = { folder?: string | undefined };

/** An operation and its arguments from a tool call. */
export type Job =
  | ({ operation: 'status' } & InFolder)
  | ({ operation: 'branches' } & InFolder)
  | ({ operation: 'diff'; staged?: boolean | undefined; paths?: readonly string[] | undefined } & InFolder)
  | ({ operation: 'log'; revision: string; count: number } & InFolder)
  | ({ operation: 'show'; revision: string } & InFolder)
  | ({ operation: 'init'; branch: string } & InFolder)
  | ({ operation: 'add'; paths: readonly string[] } & InFolder)
  | ({ operation: 'commit'; message: string } & InFolder)
  | ({ operation: 'switch'; branch: string; create?: boolean | undefined } & InFolder)
  | { operation: 'clone'; url: string; folder: string }
  | ({ operation: 'pull'; url: string; branch: string } & InFolder)
  | ({ operation: 'push'; url: string; branch: string } & InFolder);

export type GitContext = {
  /** The workspace: its path, and its file system. */
  root: string;
  files: Beneath;
  http: git.HttpClient;
};

type Operations = {
  [K in Job['operation']]: (job: Extract<Job, { operation: K }>, context: GitContext) => Promise<string>;
};

/** @returns the tool's answer */
export function perform(job: Job, context: GitContext): Promise<string> {
  return (OPERATIONS[job.operation] as (job: Job, context: GitContext) => Promise<string>)(job, context);
}

/**
 * A path that a caller gave, relative to a folder beneath the workspace.
 *
 * @throws ReveilleError `forbidden` for a path that leaves the folder, before any link is resolved
 */
function within(root: string, folder: string, given: string, what: string): string {
  const base = resolve(root, folder);
  const path = resolve(base, given);
  const shown = JSON.stringify(given.slice(0, 200));
  if (!isWithin(path, base))
    return refuse(`${what} must be in the ${folder === '' ? 'workspace' : 'repository'} (${shown} is outside)`);
  const inside = relative(base, path).split(sep).join('/');
  if (inside.split('/').some(isGitName)) refuse(`${what} must not be in a .git folder (got ${shown})`);
  return inside;
}

async function open({ folder = '.' }: InFolder, { root, files }: GitContext) {
  const repository = await Repository.find(files, within(root, '', folder, 'folder'));
  return { repository, workTree: await WorkTree.open(repository) };
}

const pathsOf = ({ root }: GitContext, repository: Repository, paths: readonly string[] | undefined) =>
  paths?.map((path) => within(root, repository.folder, path, 'paths'));

async function diffText(
  repository: Repository,
  changes: readonly Change[],
  readTo: (change: Change) => Promise<Buffer>,
) {
  const lines = new Lines();
  const nothing = Buffer.alloc(0);
  for (const change of changes) {
    if (lines.isFull) break;
    const submodule = (oid: string) => Buffer.from(`Subproject commit ${oid}\n`);
    const from =
      change.from?.mode === '160000'
        ? submodule(change.from.oid)
        : await (change.from ? repository.readBlob(change.from.oid) : nothing);
    const to = change.to?.mode === '160000' ? submodule(change.to.oid) : await (change.to ? readTo(change) : nothing);
    changeLines(lines, change, { from, to });
  }
  return lines.text;
}

const subjectOf = ({ message }: Commit) => message.split('\n', 1)[0]!;

/** One line with the characters that an author's name and address may have. */
const plainName = (text: string | undefined) => text?.replace(/[\0-\x1f\x7f<>]/g, ' ').trim() || undefined;

/** @throws ReveilleError `conflict` when `oid` is neither `ancestor` nor its descendant */
async function requireDescendant(repository: Repository, oid: string, ancestor: string): Promise<void> {
  if (oid === ancestor || (await git.isDescendent({ ...repository.access, oid, ancestor, depth: -1 }))) return;
  throw new ReveilleError(
    'conflict',
    'the branches have diverged, and only a fast-forward is allowed; nothing was changed',
  );
}

async function fetchBranch(repository: Repository, { http }: GitContext, url: string, branch: string | undefined) {
  const singleBranch = branch !== undefined;
  const ref = branch && `refs/heads/${branch}`;
  const options = { http, url, remote: 'origin', corsProxy: '', tags: false, singleBranch };
  const result = await git.fetch({ ...repository.access, ...options, ...(ref && { ref, remoteRef: ref }) });
  repository.throwRefusal();
  return result;
}

const OPERATIONS: Operations = {
  async status(job, context) {
    const { repository, workTree } = await open(job, context);
    const { branch, oid } = await repository.head();
    const tree = await repository.headTree();
    return repository.index(async (index) =>
      statusText({
        branch: branch === undefined ? 'HEAD (no branch)' : oid === undefined ? `No commits yet on ${branch}` : branch,
        staged: changesBetween(tree, indexTree(index)).filter(({ path }) => !index.unmergedPaths.includes(path)),
        changes: workTree.changes(index, () => true),
        untracked: await workTree.untracked(index, () => true, false),
        unmerged: index.unmergedPaths,
      }),
    );
  },

  async diff(job, context) {
    const { repository, workTree } = await open(job, context);
    const isSelected = selector(pathsOf(context, repository, job.paths));
    if (job.staged) {
      const tree = await repository.headTree();
      const changes = await repository.index((index) => changesBetween(tree, indexTree(index)));
      const selected = changes.filter(({ path }) => isSelected(path));
      return diffText(repository, selected, ({ to }) => repository.readBlob(to!.oid));
    }
    const changes = await repository.index((index) => workTree.changes(index, isSelected));
    return diffText(repository, changes, async ({ path, to }) => workTree.read(path, to!.mode));
  },

  async log(job, context) {
    const { repository } = await open(job, context);
    const { oid } = await repository.commitOf(job.revision);
    const lines = new Lines();
    const commits = await git.log({ ...repository.access, ref: oid, depth: job.count });
    for (const [index, { oid: of, commit }] of commits.entries()) {
      if (index > 0) lines.add('');
      commitLines(lines, { ...commit, oid: of });
    }
    return lines.text;
  },

  async show(job, context) {
    const { repository } = await open(job, context);
    const commit = await repository.commitOf(job.revision);
    const lines = new Lines();
    commitLines(lines, commit);
    lines.add('');
    const [parent, ...others] = commit.parent;
    if (others.length > 0) return lines.text;
    const before = await repository.tree(parent === undefined ? undefined : (await repository.readCommit(parent)).tree);
    const changes = changesBetween(before, await repository.tree(commit.tree));
    lines.add(await diffText(repository, changes, ({ to }) => repository.readBlob(to!.oid)));
    return lines.text;
  },

  async branches(job, context) {
    const { repository } = await open(job, context);
    const { branch: current, oid: head } = await repository.head();
    const rows: [mark: string, name: string, oid: string | undefined][] = [];
    if (current === undefined) rows.push(['*', '(no branch)', head]);
    for (const name of await git.listBranches(repository.access))
      rows.push([name === current ? '*' : ' ', name, await repository.reference(`refs/heads/${name}`)]);
    for (const name of await git.listBranches({ ...repository.access, remote: 'origin' }))
      if (name !== 'HEAD')
        rows.push([' ', `remotes/origin/${name}`, await repository.reference(`refs/remotes/origin/${name}`)]);
    repository.throwRefusal();
    const width = Math.max(0, ...rows.map(([, name]) => name.length));
    const lines = new Lines();
    for (const [mark, name, oid] of rows) {
      if (oid === undefined || lines.isFull) continue;
      lines.add(`${mark} ${name.padEnd(width)} ${shortOf(oid)} ${subjectOf(await repository.readCommit(oid))}`);
    }
    return lines.text;
  },

  async init({ folder = '.', branch }, { root, files }) {
    const at = within(root, '', folder, 'folder');
    const shown = JSON.stringify(folder.slice(0, 200));
    if (at !== '' && files.kind(at) !== 'folder')
      throw new ReveilleError('invalid_request', `folder must be a folder of the workspace (${shown})`);
    const existing = files.kind(at === '' ? '.git' : `${at}/.git`);
    if (existing !== undefined && existing !== 'folder')
      refuse('no repository was made: .git exists and is not a folder');
    if (existing === 'folder' && files.kind(at === '' ? '.git/HEAD' : `${at}/.git/HEAD`) !== undefined) {
      await Repository.find(files, at);
      return `there is already a git repository at ${shown}; it was not changed`;
    }
    Repository.init(files, at, branch);
    return `made an empty git repository at ${shown} with the branch ${branch}`;
  },

  async add(job, context) {
    const { repository, workTree } = await open(job, context);
    const excluded = await workTree.add(pathsOf(context, repository, job.paths)!);
    return excluded.map((path) => `not staged: ${path} is a separate repository`).join('\n');
  },

  async commit(job, context) {
    const { repository } = await open(job, context);
    const { branch, oid: parent } = await repository.head();
    const before = await repository.headTree();
    const changes = await repository.index((index) => {
      if (index.unmergedPaths.length > 0) throw new ReveilleError('conflict', 'a merge has not been finished');
      return changesBetween(before, indexTree(index));
    });
    if (changes.length === 0) throw new ReveilleError('conflict', 'nothing is staged for a commit');
    const [name, email] = [
      plainName(await repository.setting('user.name')),
      plainName(await repository.setting('user.email')),
    ];
    const author = email === undefined ? { name: 'Agent', email: 'agent@localhost' } : { name: name ?? email, email };
    const oid = await git.commit({
      ...repository.access,
      message: job.message,
      author,
      committer: author,
      disallowEmpty: false,
    });
    repository.throwRefusal();
    const where = `${branch ?? 'detached HEAD'}${parent === undefined ? ' (root-commit)' : ''}`;
    const count = `${changes.length} file${changes.length === 1 ? '' : 's'} changed`;
    return `[${where} ${shortOf(oid)}] ${job.message.split('\n', 1)[0]}\n ${count}`;
  },

  async switch(job, context) {
    const { repository, workTree } = await open(job, context);
    const { branch: current, oid: head } = await repository.head();
    const target = await repository.reference(`refs/heads/${job.branch}`);
    if (job.create) {
      if (target !== undefined) throw new ReveilleError('conflict', `the branch ${job.branch} already exists`);
      if (head !== undefined) await repository.setBranch(job.branch, head);
      await repository.checkOutBranch(job.branch);
      return `Switched to a new branch '${job.branch}'`;
    }
    if (current === job.branch) return `Already on '${job.branch}'`;
    if (target === undefined)
      throw new ReveilleError('not_found', `there is no branch ${job.branch}; set create to make it`);
    await workTree.checkOut(await repository.tree((await repository.readCommit(target)).tree));
    await repository.checkOutBranch(job.branch);
    return `Switched to branch '${job.branch}'`;
  },

  async clone(job, context) {
    const { files } = context;
    const kind = files.kind(job.folder);
    if (kind === undefined) files.mkdir(job.folder);
    else if (kind !== 'folder' || files.list(job.folder).length > 0)
      throw new ReveilleError(
        'conflict',
        `${JSON.stringify(job.folder)} exists and is not an empty folder; nothing was cloned`,
      );
    // Restore the folder after a failure, so that the clone can be repeated.
    const rollback = () => {
      removeTree(files, `${job.folder}/.git`);
      if (kind === undefined && files.list(job.folder).length === 0) files.rmdir(job.folder);
    };
    try {
      const repository = Repository.init(files, job.folder, 'main', job.url);
      repository.keepReferences((name) => name.startsWith('refs/remotes/origin/'));
      const { defaultBranch, fetchHead } = await fetchBranch(repository, context, job.url, undefined);
      repository.keepReferences(() => true);
      if (fetchHead === null) return `cloned an empty repository into ${JSON.stringify(job.folder)}`;
      const named = defaultBranch?.startsWith('refs/heads/') ? defaultBranch.slice('refs/heads/'.length) : 'main';
      const commit = await repository.readCommit(fetchHead);
      const target = await repository.tree(commit.tree);
      Repository.init(files, job.folder, named, job.url);
      const workTree = await WorkTree.open(repository);
      await workTree.checkOut(target);
      await repository.setBranch(named, commit.oid);
      return `cloned ${target.size} files into ${JSON.stringify(job.folder)}, on the branch ${named}`;
    } catch (thrown) {
      rollback();
      throw thrown;
    }
  },

  async pull(job, context) {
    const { repository, workTree } = await open(job, context);
    const { branch, oid: head } = await repository.head();
    // Fetch objects only: the remote's reference names are not stored.
    repository.keepReferences(() => false);
    const { fetchHead } = await fetchBranch(repository, context, job.url, job.branch);
    repository.keepReferences(() => true);
    if (fetchHead === null) throw new ReveilleError('not_found', 'the remote has no commits');
    const commit = await repository.readCommit(fetchHead);
    if (head === commit.oid) return 'Already up to date.';
    if (head !== undefined) {
      if (await git.isDescendent({ ...repository.access, oid: head, ancestor: commit.oid, depth: -1 }))
        return 'Already up to date.';
      await requireDescendant(repository, commit.oid, head);
    }
    if (branch === undefined) throw new ReveilleError('conflict', 'no branch is checked out; switch to one first');
    await workTree.checkOut(await repository.tree(commit.tree));
    await repository.setBranch(branch, commit.oid);
    return `Fast-forward ${head === undefined ? '' : `${shortOf(head)}..`}${shortOf(commit.oid)} on ${branch}`;
  },

  async push(job, context) {
    const { repository } = await open(job, context);
    const ref = `refs/heads/${job.branch}`;
    if ((await repository.reference(ref)) === undefined)
      throw new ReveilleError('not_found', `there is no branch ${job.branch} here`);
    repository.keepReferences(() => false);
    const options = {
      http: context.http,
      url: job.url,
      remote: 'origin',
      ref,
      remoteRef: ref,
      force: false,
      corsProxy: '',
    };
    const { ok, refs } = await git.push({ ...repository.access, ...options });
    repository.throwRefusal();
    const problem = Object.values(refs).find((one) => !one.ok)?.error;
    if (!ok || problem)
      throw new ReveilleError('conflict', `the remote refused the push: ${problem ?? 'it gave no reason'}`);
    return `pushed ${job.branch}`;
  },
};

function removeTree(files: Beneath, path: string): void {
  const kind = files.kind(path);
  if (kind === 'folder') {
    for (const { name } of files.list(path)) removeTree(files, `${path}/${name}`);
    files.rmdir(path);
  } else if (kind !== undefined) files.unlink(path);
}
