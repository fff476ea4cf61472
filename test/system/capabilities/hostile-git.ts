/**
 * Hostile repositories, links and arguments for the git tools, hand-written and random. Beside the workspace is a
 * folder with canaries: a text that must not be read, a program that must not run, and names that must not be written.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { deflateSync, inflateSync } from 'node:zlib';
import { type Job, perform } from '../../../src/capabilities/git-operations.ts';
import { Beneath } from '../../../src/kit/files/beneath.ts';
import type { Dice } from '../../support/random/random.ts';
import { namesBelow } from '../../support/temporary.ts';

export type Site = {
  readonly workspace: string;
  readonly outside: string;
  readonly canary: string;
  /** The canary program creates files here. */
  readonly marks: string;
  readonly program: string;
};

export type Attempt = {
  readonly name: string;
  /** Changes the repository at `at`. */
  readonly prepare?: (at: string, site: Site) => void;
  /** The calls to try; {@link usualJobs} by default. */
  readonly jobs?: (site: Site) => Job[];
};

export function makeSite(given: string): Site {
  const folder = realpathSync(given);
  const [workspace, outside, marks] = [join(folder, 'workspace'), join(folder, 'outside'), join(folder, 'marks')];
  for (const made of [workspace, outside, marks, join(outside, 'folder')]) mkdirSync(made, { recursive: true });
  const canary = `CANARY-${createHash('sha1').update(folder).digest('hex')}`;
  for (const name of ['secret', 'folder/secret', 'canary-oid']) writeFileSync(join(outside, name), `${canary}\n`);
  // A file that would work as a reference, and one that would work as a configuration.
  writeFileSync(join(outside, 'reference'), `${createHash('sha1').update('x').digest('hex')}\n`);
  writeFileSync(join(outside, 'config'), `[user]\n\tname = ${canary}\n\temail = ${canary}@example.org\n`);
  const program = join(outside, 'program.sh');
  writeFileSync(program, `#!/bin/sh\necho ran > ${marks}/$$\ncat\n`);
  chmodSync(program, 0o777);
  return { workspace, outside, canary, marks, program };
}

/** Names, kinds, contents and modification times: every write there changes them. */
export function pictureOf(folder: string): string {
  const lines = namesBelow(folder)
    .sort()
    .map((name) => {
      const path = join(folder, name);
      const stats = lstatSync(path);
      const content = stats.isFile() ? readFileSync(path, 'latin1') : stats.isSymbolicLink() ? readlinkSync(path) : '';
      return `${name} ${stats.mode} ${stats.isDirectory() ? '' : stats.mtimeMs} ${content}`;
    });
  return lines.join('\n');
}

/** Whether a repository of the workspace has an object with the canary in it. */
export function holdsCanary(at: string, canary: string): boolean {
  const objects = join(at, '.git', 'objects');
  if (!existsSync(objects) || !lstatSync(join(at, '.git')).isDirectory() || !lstatSync(objects).isDirectory())
    return false;
  return readdirSync(objects, { withFileTypes: true }).some((folder) => {
    if (!folder.isDirectory()) return false;
    return readdirSync(join(objects, folder.name), { withFileTypes: true }).some((file) => {
      if (!file.isFile()) return false;
      const raw = readFileSync(join(objects, folder.name, file.name));
      try {
        return inflateSync(raw, { maxOutputLength: 2 ** 24 }).includes(canary);
      } catch {
        return raw.includes(canary);
      }
    });
  });
}

const REPOSITORY = 'r';

export const usualJobs = (folder = REPOSITORY): Job[] => [
  { operation: 'status', folder },
  { operation: 'diff', folder },
  { operation: 'diff', folder, staged: true },
  { operation: 'log', folder, revision: 'HEAD', count: 20 },
  { operation: 'show', folder, revision: 'HEAD' },
  { operation: 'branches', folder },
  { operation: 'init', folder, branch: 'main' },
  { operation: 'add', folder, paths: ['.'] },
  { operation: 'commit', folder, message: 'mine' },
  { operation: 'switch', folder, branch: 'made', create: true },
  { operation: 'switch', folder, branch: 'other' },
  { operation: 'diff', folder, staged: true },
  { operation: 'show', folder, revision: 'HEAD' },
];

const noHttp = {
  request(): never {
    throw new Error('a request was made');
  },
};

/** Runs jobs and collects their output. */
export async function answersOf(site: Site, jobs: readonly Job[]): Promise<{ ok: boolean; text: string }[]> {
  const files = new Beneath(site.workspace);
  const answers: { ok: boolean; text: string }[] = [];
  try {
    for (const job of jobs) {
      try {
        answers.push({ ok: true, text: await perform(job, { root: site.workspace, files, http: noHttp }) });
      } catch (thrown) {
        answers.push({ ok: false, text: String(thrown) });
      }
    }
  } finally {
    files.close();
  }
  return answers;
}

/** An ordinary repository with two branches and an uncommitted change, to be corrupted. */
export async function makeTemplate(site: Site): Promise<string> {
  const template = join(site.workspace, 'template');
  mkdirSync(join(template, 'sub'), { recursive: true });
  writeFileSync(join(template, 'a.txt'), 'one\n');
  writeFileSync(join(template, 'sub', 'b.txt'), 'two\n');
  const folder = 'template';
  const jobs: Job[] = [
    { operation: 'init', folder, branch: 'main' },
    { operation: 'add', folder, paths: ['.'] },
    { operation: 'commit', folder, message: 'first' },
    { operation: 'switch', folder, branch: 'other', create: true },
  ];
  const more: Job[] = [
    { operation: 'add', folder, paths: ['.'] },
    { operation: 'commit', folder, message: 'second' },
    { operation: 'switch', folder, branch: 'main' },
  ];
  const found = await answersOf(site, jobs);
  writeFileSync(join(template, 'c.txt'), 'three\n');
  found.push(...(await answersOf(site, more)));
  const failed = found.find(({ ok }) => !ok);
  if (failed) throw new Error(failed.text);
  writeFileSync(join(template, 'a.txt'), 'one and a half\n');
  const kept = join(dirname(site.workspace), 'template');
  cpSync(template, kept, { recursive: true });
  rmSync(template, { recursive: true });
  return kept;
}

/** Puts a fresh copy of the template into the workspace. @returns its path */
export function freshRepository(site: Site, template: string): string {
  for (const name of readdirSync(site.workspace)) rmSync(join(site.workspace, name), { recursive: true, force: true });
  const at = join(site.workspace, REPOSITORY);
  cpSync(template, at, { recursive: true });
  return at;
}

/** Replaces the content of a path. A link on the way is an error: a test removes only files in its own folder. */
function put(path: string, make: (path: string) => void): void {
  let existing = dirname(path);
  while (lstatSync(existing, { throwIfNoEntry: false }) === undefined) existing = dirname(existing);
  if (realpathSync(existing) !== existing) throw new Error(`${existing} leads elsewhere`);
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  make(path);
}

const file = (content: string) => (path: string) => writeFileSync(path, content);
const link = (target: string) => (path: string) => symlinkSync(target, path);
const fifo = (path: string) => void execFileSync('mkfifo', [path]);

/** Writes an object unchecked, valid or not. @returns its id */
function writeObject(at: string, type: string, content: Buffer): string {
  const whole = Buffer.concat([Buffer.from(`${type} ${content.length}\0`), content]);
  const oid = createHash('sha1').update(whole).digest('hex');
  put(join(at, '.git/objects', oid.slice(0, 2), oid.slice(2)), (path) => writeFileSync(path, deflateSync(whole)));
  return oid;
}

type Named = readonly [mode: string, name: string, oid: string];

function writeTree(at: string, entries: readonly Named[]): string {
  const parts = entries.map(([mode, name, oid]) =>
    Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(oid, 'hex')]),
  );
  return writeObject(at, 'tree', Buffer.concat(parts));
}

/** Makes the branch `other` a commit of these files. */
function plantTree(at: string, entriesOf: (blob: (text: string) => string) => readonly Named[]): void {
  const tree = writeTree(
    at,
    entriesOf((text) => writeObject(at, 'blob', Buffer.from(text))),
  );
  const who = 'E <e@example.org> 1700000000 +0000';
  const commit = writeObject(at, 'commit', Buffer.from(`tree ${tree}\nauthor ${who}\ncommitter ${who}\n\nevil\n`));
  writeFileSync(join(at, '.git/refs/heads/other'), `${commit}\n`);
}

/** An index with one file of this path, as git writes it. */
function plantIndex(at: string, path: string): void {
  const name = Buffer.from(path);
  const entry = Buffer.alloc(Math.ceil((62 + name.length + 1) / 8) * 8);
  entry.writeUInt32BE(0o100644, 24);
  Buffer.from(writeObject(at, 'blob', Buffer.from('planted\n')), 'hex').copy(entry, 40);
  entry.writeUInt16BE(Math.min(name.length, 0xfff), 60);
  name.copy(entry, 62);
  const head = Buffer.from('DIRC\0\0\0\x02\0\0\0\x01', 'latin1');
  const body = Buffer.concat([head, entry]);
  writeFileSync(join(at, '.git/index'), Buffer.concat([body, createHash('sha1').update(body).digest()]));
}

const IN_GIT = [
  ...['HEAD', 'index', 'config', 'packed-refs', 'shallow', 'COMMIT_EDITMSG', 'MERGE_HEAD', 'ORIG_HEAD', 'FETCH_HEAD'],
  ...[
    'refs',
    'refs/heads',
    'refs/heads/main',
    'refs/heads/made',
    'refs/heads/other',
    'refs/tags',
    'refs/remotes',
    'logs',
  ],
  ...[
    'logs/HEAD',
    'logs/refs',
    'objects',
    'objects/pack',
    'objects/info',
    'info',
    'info/exclude',
    'info/attributes',
    'hooks',
  ],
  ...[
    'index.lock',
    'HEAD.lock',
    'config.lock',
    'refs/heads/main.lock',
    'objects/00',
    'objects/ff',
    'modules',
    'worktrees',
  ],
];

const CONFIGURATION = [
  ...[
    'core.fsmonitor',
    'core.pager',
    'core.editor',
    'core.sshCommand',
    'core.askPass',
    'core.gitProxy',
    'core.hooksPath',
  ],
  ...['diff.external', 'credential.helper', 'gpg.program', 'gpg.ssh.program', 'sequence.editor', 'filter.x.clean'],
  ...['filter.x.smudge', 'filter.x.process', 'diff.x.textconv', 'diff.x.command', 'merge.x.driver', 'alias.status'],
  ...[
    'pager.status',
    'interactive.diffFilter',
    'remote.origin.uploadpack',
    'remote.origin.receivepack',
    'remote.origin.vcs',
  ],
  ...[
    'trailer.x.command',
    'submodule.x.update',
    'uploadpack.packObjectsHook',
    'core.alternateRefsCommand',
    'include.path',
  ],
  ...[
    'includeIf.gitdir:**.path',
    'core.worktree',
    'core.attributesFile',
    'core.excludesFile',
    'commit.template',
    'http.proxy',
  ],
  ...['http.corsProxy', 'url.ext::sh.insteadOf', 'init.templateDir', 'extensions.partialClone', 'blame.ignoreRevsFile'],
];

function configText(key: string, value: string): string {
  const [section, ...rest] = key.split('.');
  const name = rest.pop()!;
  return `[${section}${rest.length > 0 ? ` "${rest.join('.')}"` : ''}]\n\t${name} = ${value}\n`;
}

/** Paths that lead out, or that only look as if they stayed inside. */
const pathsOut = ({ outside, workspace }: Site): string[] => [
  ...[
    join(outside, 'secret'),
    '/dev/null',
    '/etc/passwd',
    '../../outside/secret',
    '../r/../../outside/secret',
    '..',
    '/',
  ],
  ...[
    relative(join(workspace, REPOSITORY), join(outside, 'secret')),
    `sub/../../../outside/secret`,
    '.git/config',
    '.git',
  ],
  ...[
    'sub/../.git/config',
    '.GIT/config',
    '--no-index',
    '--output=x',
    '-',
    ':(top)/../x',
    ':!x',
    '*',
    'sub/\\..\\..\\x',
  ],
  ...[
    `/proc/self/root${outside}/secret`,
    '/proc/self/environ',
    `//${outside}/secret`,
    `./././../../outside/secret`,
    'a\0b',
  ],
];

const REVISIONS = [
  ...[
    '--output=x',
    '-p',
    '@{-1}',
    '@{u}',
    'HEAD:../../outside/secret',
    '../../outside/reference',
    '../config',
    'refs/../config',
  ],
  ...[
    'refs/heads/../../config',
    '/etc/passwd',
    'HEAD~99999',
    'HEAD^9',
    'HEAD~999999999',
    'HEAD^{tree}',
    'a'.repeat(4000),
  ],
  ...[
    'deadbeef',
    '0'.repeat(40),
    'index',
    'objects',
    'config',
    'FETCH_HEAD',
    'HEAD.lock',
    'HEAD\n',
    '$(id)',
    '',
    '~1',
    '^',
  ],
];

const BRANCHES = [
  '../x',
  '..',
  '/etc/x',
  'a/../../../config',
  '-x',
  'HEAD',
  'a..b',
  'a.lock',
  'a\0b',
  '@{-1}',
  'x\n[core]',
];

/** All hand-written attempts. */
export function attemptsByHand(site: Site): Attempt[] {
  const { outside, program } = site;
  const attempts: Attempt[] = [];
  const targets: readonly (readonly [string, (path: string) => void])[] = [
    ['a link to a file', link(join(outside, 'secret'))],
    ['a link to a folder', link(join(outside, 'folder'))],
    ['a link to nothing', link(join(outside, 'made'))],
    ['a relative link', link('../../../outside/secret')],
    ['a FIFO', fifo],
  ];
  for (const name of IN_GIT)
    for (const [what, make] of targets)
      attempts.push({ name: `.git/${name} is ${what}`, prepare: (at) => put(join(at, '.git', name), make) });
  for (const [what, make] of [
    ...targets,
    ['a file that leads out', file(`gitdir: ${outside}/folder\n`)] as const,
    ['a file that leads to a sibling', file('gitdir: ../elsewhere/.git\n')] as const,
    ['a link to a device', link('/dev/zero')] as const,
  ])
    attempts.push({ name: `.git is ${what}`, prepare: (at) => put(join(at, '.git'), make) });
  for (const key of CONFIGURATION)
    for (const value of [program, `!${program}`]) {
      const prepare = (at: string) => {
        writeFileSync(join(at, '.gitattributes'), '* filter=x diff=x merge=x ident text\n');
        writeFileSync(
          join(at, '.git/config'),
          `${readFileSync(join(at, '.git/config'), 'utf8')}${configText(key, value)}`,
        );
      };
      attempts.push({
        name: `the configuration sets ${key} to ${value === program ? 'a program' : 'a command'}`,
        prepare,
      });
    }
  attempts.push({
    name: 'each hook is a program',
    prepare(at) {
      mkdirSync(join(at, '.git/hooks'), { recursive: true });
      for (const hook of ['pre-commit', 'commit-msg', 'prepare-commit-msg', 'post-commit', 'post-checkout', 'pre-push'])
        cpSync(program, join(at, '.git/hooks', hook));
      for (const hook of ['post-index-change', 'reference-transaction', 'post-merge', 'fsmonitor-watchman'])
        cpSync(program, join(at, '.git/hooks', hook));
    },
  });
  attempts.push({
    name: 'a repository inside the repository has a clean filter',
    prepare(at) {
      mkdirSync(join(at, 'inner'));
      cpSync(join(at, '.git'), join(at, 'inner/.git'), { recursive: true });
      writeFileSync(join(at, 'inner/.gitattributes'), '* filter=x\n');
      writeFileSync(
        join(at, 'inner/.git/config'),
        `[core]\n\tbare = false\n[filter "x"]\n\tclean = ${program}\n\trequired = true\n`,
      );
      writeFileSync(join(at, 'inner/a.txt'), 'changed\n');
    },
    jobs: () => [
      ...usualJobs(),
      { operation: 'add', folder: REPOSITORY, paths: ['inner'] },
      { operation: 'add', folder: REPOSITORY, paths: ['inner/a.txt'] },
      ...usualJobs(`${REPOSITORY}/inner`),
    ],
  });
  for (const name of [
    'commondir',
    'config.worktree',
    'objects/info/alternates',
    'objects/info/http-alternates',
    'gitdir',
  ])
    attempts.push({
      name: `.git/${name} leads out`,
      prepare: (at) => put(join(at, '.git', name), file(`${outside}\n`)),
    });
  for (const reference of [
    ...[
      '../../outside/secret',
      `${outside}/secret`,
      'refs/heads/../../../../outside/secret',
      'refs/heads/../../config',
      'index',
    ],
    ...[
      'config',
      'refs/heads/../../index',
      'refs/heads/x.lock',
      'objects/aa/bb',
      'HEAD',
      'refs/heads/',
      'refs/heads/a b',
    ],
  ]) {
    attempts.push({
      name: `HEAD names ${reference}`,
      prepare: (at) => writeFileSync(join(at, '.git/HEAD'), `ref: ${reference}\n`),
    });
    const prepare = (at: string) => writeFileSync(join(at, '.git/refs/heads/main'), `ref: ${reference}\n`);
    attempts.push({ name: `a branch names ${reference}`, prepare });
  }
  for (const name of [
    '../../../outside/made',
    'refs/heads/../../../../outside/made',
    '/etc/made',
    'refs/heads/../../config',
  ])
    attempts.push({
      name: `packed-refs has ${name}`,
      prepare: (at) => writeFileSync(join(at, '.git/packed-refs'), `${'1'.repeat(40)} ${name}\n`),
    });
  attempts.push(...treeAttempts(outside), ...workTreeAttempts(site));
  const folder = REPOSITORY;
  for (const path of pathsOut(site)) {
    const shown = JSON.stringify(path).replace(outside, '<outside>');
    const jobs = (): Job[] => [
      { operation: 'diff', folder, paths: [path, '/dev/null'] },
      { operation: 'diff', folder, staged: true, paths: [path, '/dev/null'] },
      { operation: 'diff', folder, paths: ['a.txt', path] },
      { operation: 'add', folder, paths: [path] },
      { operation: 'commit', folder, message: 'mine' },
      { operation: 'show', folder, revision: 'HEAD' },
    ];
    attempts.push({ name: `paths have ${shown}`, jobs });
    attempts.push({ name: `folder is ${shown}`, jobs: () => usualJobs(path) });
  }
  for (const revision of REVISIONS)
    attempts.push({
      name: `revision is ${JSON.stringify(revision.slice(0, 40))}`,
      jobs: () => [
        { operation: 'show', folder, revision },
        { operation: 'log', folder, revision, count: 5 },
      ],
    });
  for (const branch of BRANCHES)
    attempts.push({
      name: `branch is ${JSON.stringify(branch)}`,
      jobs: () => [
        { operation: 'switch', folder, branch, create: true },
        { operation: 'switch', folder, branch },
        { operation: 'commit', folder, message: 'x' },
        { operation: 'status', folder },
      ],
    });
  return attempts;
}

/** Trees and indexes that git never writes. */
function treeAttempts(outside: string): Attempt[] {
  const names = [
    '..',
    '.',
    '',
    '.git',
    '.GIT',
    '.git ',
    '.git.',
    'git~1',
    '.gi\u200ct',
    '.git::$INDEX_ALLOCATION',
    '../x',
    '/x',
    'a\\b',
  ];
  const attempts: Attempt[] = names.map((name) => ({
    name: `a tree names ${JSON.stringify(name)}`,
    prepare: (at) =>
      plantTree(at, (blob) => {
        const inner = writeTree(at, [
          ['100755', 'config', blob('[core]\n')],
          ['100755', 'made', blob('x')],
        ]);
        return [
          ['40000', name, inner],
          ['100644', 'z.txt', blob('z')],
        ];
      }),
  }));
  for (const name of names)
    attempts.push({
      name: `a file of a tree is named ${JSON.stringify(name)}`,
      prepare: (at) => plantTree(at, (blob) => [['100644', name, blob('x')]]),
    });
  for (const path of [
    '../made',
    '.git/hooks/pre-commit',
    '.GIT/config',
    '/made',
    'a/../../made',
    'sub/.git/config',
    './a',
    'a//b',
    'git~1/x',
  ])
    attempts.push({ name: `the index names ${path}`, prepare: (at) => plantIndex(at, path) });
  const linked = (target: string) => (at: string) =>
    plantTree(at, (blob) => [
      ['120000', 'a', blob(target)],
      ['40000', 'a', writeTree(at, [['100644', 'made', blob('x')]])],
    ]);
  for (const target of [outside, '../../outside', '.git', '.git/hooks'])
    attempts.push({
      name: `a tree has a link and a folder of one name, to ${target === outside ? '<outside>' : target}`,
      prepare: linked(target),
    });
  attempts.push({
    name: 'a tree has a link, and the next commit a folder in its place',
    prepare(at) {
      plantTree(at, (blob) => [['40000', 'way', writeTree(at, [['100644', 'made', blob('x')]])]]);
      symlinkSync(outside, join(at, 'way'));
    },
  });
  return attempts;
}

/** Links, FIFOs and lists of ignored files among the files themselves. */
function workTreeAttempts({ outside }: Site): Attempt[] {
  const spots = [
    'a.txt',
    'sub',
    'sub/b.txt',
    'c.txt',
    'new',
    '.gitignore',
    '.gitattributes',
    '.gitmodules',
    'sub/.gitignore',
  ];
  const kinds: readonly (readonly [string, (path: string) => void])[] = [
    ['a link to a file', link(join(outside, 'secret'))],
    ['a link to a folder', link(join(outside, 'folder'))],
    ['a link to .git', link('.git')],
    ['a link to a device', link('/dev/zero')],
    ['a FIFO', fifo],
  ];
  return spots.flatMap((spot) =>
    kinds.map(([what, make]) => ({
      name: `${spot} is ${what}`,
      prepare: (at: string) => put(join(at, spot), make),
      jobs: (): Job[] => [
        ...usualJobs(),
        { operation: 'add', folder: REPOSITORY, paths: [`${spot}/secret`, `${spot}/config`, `${spot}/b.txt`] },
        { operation: 'add', folder: REPOSITORY, paths: [spot] },
        { operation: 'diff', folder: REPOSITORY, paths: [`${spot}/secret`] },
        { operation: 'commit', folder: REPOSITORY, message: 'again' },
        { operation: 'show', folder: REPOSITORY, revision: 'HEAD' },
      ],
    })),
  );
}

/** Several corrupted places at once, with random arguments. */
export function attemptByChance(dice: Dice, site: Site, number: number): Attempt {
  const { outside, program } = site;
  const pick = <T>(list: readonly T[]): T => list[dice(list.length)]!;
  const pieces = [
    '..',
    '.',
    'sub',
    'a.txt',
    '.git',
    'config',
    'outside',
    'secret',
    '',
    'folder',
    '\\',
    'new',
    '.GIT',
    'x',
  ];
  const path = () =>
    `${pick(['', '/', './', `${outside}/`])}${Array.from({ length: 1 + dice(5) }, () => pick(pieces)).join('/')}`;
  const targets = () =>
    pick([
      link(join(outside, pick(['secret', 'folder', 'made', 'config']))),
      link(path()),
      fifo,
      file(`ref: ${path()}\n`),
      file(`${outside}\n`),
      file(configText(pick(CONFIGURATION), program)),
    ]);
  const spots = Array.from({ length: 1 + dice(4) }, () =>
    dice(3) === 0 ? pick(['a.txt', 'sub', 'sub/b.txt', 'new', '.gitignore', 'sub/new']) : `.git/${pick(IN_GIT)}`,
  );
  const made = spots.map((spot) => [spot, targets()] as const);
  const folder = REPOSITORY;
  const jobs: Job[] = [...usualJobs()];
  for (let more = 0; more < 6; more++)
    jobs.splice(
      dice(jobs.length + 1),
      0,
      pick<() => Job>([
        () => ({ operation: 'add', folder, paths: [path(), path()] }),
        () => ({ operation: 'diff', folder, paths: [path()] }),
        () => ({ operation: 'show', folder, revision: path() }),
        () => ({ operation: 'switch', folder, branch: path(), create: dice(2) === 0 }),
        () => ({ operation: 'status', folder: path() }),
        () => ({ operation: 'init', folder: path(), branch: 'main' }),
      ])(),
    );
  return {
    name: `by chance, ${number}: ${spots.join(', ')}`,
    prepare(at) {
      for (const [spot, make] of made) {
        try {
          put(join(at, spot), make);
        } catch {
          // An earlier corrupted entry is in the way.
        }
      }
    },
    jobs: () => jobs,
  };
}
