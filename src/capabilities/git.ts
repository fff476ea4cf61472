/** The tools of `git`: looking at repositories of the workspace, recording changes there, and speaking to remotes. */
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { ReveilleError } from '../wire/errors.ts';
import type { ProgramEnd } from './bounded-program.ts';
import type { Git } from './git-repository.ts';

const REMOTE_MS = 120_000;

const folder = z.string().max(1024).optional().describe('a folder of the repository, relative to the workspace');
const branch = z
  .string()
  .max(200)
  .regex(
    /^(?!.*(?:\.\.|@\{|\/\/|\.lock(?:\/|$)))[A-Za-z0-9_][A-Za-z0-9._/-]*(?<![./])$/,
    'must be the name of a branch',
  );
const revision = z
  .string()
  .max(200)
  .regex(/^[A-Za-z0-9_][A-Za-z0-9._/@{}^~-]*$/, 'must be a commit, a branch or a tag');
const path = z
  .string()
  .min(1)
  .max(1024)
  .regex(/^[^\0]*$/, 'must hold no NUL');
const paths = z.array(path).min(1).max(500);
const url = z.url({ protocol: /^https?$/, error: 'must be an https:// address' }).max(2048);

export type Remotes = {
  /** What the addresses of remotes must begin with; none are spoken to unless named. */
  readonly allowed: readonly string[];
  /** Sent to them as a password. */
  readonly token: string | undefined;
};

/** @throws ReveilleError `invalid_request` naming the entry that is no address */
export function readRemotes(list: string, token: string | undefined): Remotes {
  const allowed = list.split(',').flatMap((entry) => entry.trim() || []);
  for (const entry of allowed) {
    const parsed = URL.parse(entry);
    if (parsed && /^https?:$/.test(parsed.protocol) && parsed.username === '' && parsed.password === '') continue;
    const what = `must be https:// addresses, separated by commas (got ${JSON.stringify(entry.slice(0, 200))})`;
    throw new ReveilleError('invalid_request', `--remotes ${what}`);
  }
  return { allowed, token: token || undefined };
}

/** The address as git gets it, and the configuration with which it may go there. */
function remoteOf({ allowed, token }: Remotes, given: string) {
  const address = new URL(given);
  if (address.username !== '' || address.password !== '')
    throw new ReveilleError('invalid_request', 'url must not hold a user name or a password');
  const fits = (prefix: URL) =>
    prefix.origin === address.origin && `${address.pathname}/`.startsWith(`${prefix.pathname.replace(/\/+$/, '')}/`);
  const prefix = allowed.map((entry) => new URL(entry)).find(fits);
  if (!prefix) {
    const list = allowed.length === 0 ? 'none is' : `these are: ${allowed.join(', ')}`;
    throw new ReveilleError(
      'forbidden',
      `${address.origin} is no remote that was named (${list}); set EXECUTOR_GIT_REMOTES`,
    );
  }
  const basic = token && Buffer.from(`x-access-token:${token}`).toString('base64');
  const config = {
    [`protocol.${address.protocol.slice(0, -1)}.allow`]: 'always',
    ...(basic && { [`http.${prefix.href}.extraHeader`]: `Authorization: Basic ${basic}` }),
  };
  return { href: address.href, config };
}

function resultOf({ code, signal, ended, stdout, stderr }: ProgramEnd) {
  const why = ended ? `git was ended (${ended})` : signal ? `git was ended by ${signal}` : '';
  const text = [why, stdout.trimEnd(), stderr.trimEnd()].filter(Boolean).join('\n');
  return { content: [{ type: 'text' as const, text: text || 'done' }], isError: code !== 0 };
}

type Context = { mcpReq: { signal: AbortSignal } };

/** Adds the tools to a server. */
export function addGit(server: McpServer, git: Git, remotes: Remotes): void {
  const inside = async (at: string | undefined, args: readonly string[], { mcpReq: { signal } }: Context) => {
    const repository = await git.repository(at, signal);
    return resultOf(await git.run({ repository, cwd: repository, args, signal }));
  };
  const reading = { readOnlyHint: true, openWorldHint: false };
  const writing = { readOnlyHint: false, destructiveHint: false, openWorldHint: false };
  const leaving = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
  const plain = ['--no-ext-diff', '--no-textconv', '--no-color'];
  const tool = <S extends z.ZodObject>(
    name: string,
    words: [title: string, description: string],
    inputSchema: S,
    annotations: object,
    act: (given: z.output<S>, context: Context) => Promise<ReturnType<typeof resultOf>>,
  ) => {
    const [title, description] = words;
    const handler = (given: unknown, context: unknown) => act(given as z.output<S>, context as Context);
    server.registerTool(name, { title, description, inputSchema, annotations }, handler as never);
  };

  tool(
    'status',
    ['Status', 'What has changed in a repository of the workspace, and on which branch it is.'],
    z.strictObject({ folder }),
    reading,
    ({ folder: at }, context) => inside(at, ['status', '--short', '--branch', '--ignore-submodules=all'], context),
  );

  tool(
    'diff',
    ['Differences', 'The changes that are not committed, or those that are staged.'],
    z.strictObject({ folder, staged: z.boolean().optional(), paths: paths.optional() }),
    reading,
    ({ folder: at, staged, paths: some = [] }, context) =>
      inside(
        at,
        ['diff', ...plain, '--ignore-submodules=all', ...(staged ? ['--cached'] : []), '--', ...some],
        context,
      ),
  );

  tool(
    'log',
    ['History', 'The commits of a branch, the newest first.'],
    z.strictObject({ folder, revision: revision.optional(), count: z.int().min(1).max(200).optional() }),
    reading,
    ({ folder: at, revision: of = 'HEAD', count = 20 }, context) =>
      inside(
        at,
        [
          'log',
          '--no-color',
          '--no-show-signature',
          `--max-count=${count}`,
          '--date=iso-strict',
          '--end-of-options',
          of,
          '--',
        ],
        context,
      ),
  );

  tool(
    'show',
    ['Show a commit', 'A commit with its changes.'],
    z.strictObject({ folder, revision }),
    reading,
    ({ folder: at, revision: of }, context) =>
      inside(at, ['show', ...plain, '--no-show-signature', '--end-of-options', of, '--'], context),
  );

  tool(
    'branches',
    ['Branches', 'The branches of a repository.'],
    z.strictObject({ folder }),
    reading,
    ({ folder: at }, context) => inside(at, ['branch', '--list', '--all', '--verbose', '--no-color'], context),
  );

  tool(
    'init',
    ['Make a repository', 'Makes a repository of a folder of the workspace.'],
    z.strictObject({ folder, branch: branch.optional() }),
    writing,
    async ({ folder: at, branch: named = 'main' }, { mcpReq: { signal } }) => {
      const cwd = git.workspace.folder(at);
      return resultOf(await git.run({ cwd, args: ['init', '--template=', `--initial-branch=${named}`, cwd], signal }));
    },
  );

  tool(
    'add',
    ['Stage changes', 'Stages files for the next commit; also those that were removed.'],
    z.strictObject({ folder, paths }),
    writing,
    ({ folder: at, paths: some }, context) => inside(at, ['add', '--all', '--', ...some], context),
  );

  tool(
    'commit',
    ['Commit', 'Records what is staged.'],
    z.strictObject({ folder, message: z.string().trim().min(1).max(10_000) }),
    writing,
    async ({ folder: at, message }, { mcpReq: { signal } }) => {
      const repository = await git.repository(at, signal);
      const named = await git.run({ repository, cwd: repository, args: ['config', '--local', 'user.email'], signal });
      const config = named.code === 0 ? {} : { 'user.name': 'Agent', 'user.email': 'agent@localhost' };
      const args = ['commit', '--no-verify', '--no-gpg-sign', '--cleanup=verbatim', '--message', message];
      return resultOf(await git.run({ repository, cwd: repository, args, config, signal }));
    },
  );

  tool(
    'switch',
    ['Switch branches', 'Goes to another branch, or makes one.'],
    z.strictObject({ folder, branch, create: z.boolean().optional() }),
    writing,
    ({ folder: at, branch: named, create }, context) =>
      inside(at, ['switch', '--no-guess', '--no-recurse-submodules', ...(create ? ['--create'] : []), named], context),
  );

  tool(
    'clone',
    ['Clone', 'Gets a repository from a remote that the operator has named, without its submodules.'],
    z.strictObject({
      url,
      folder: z
        .string()
        .min(1)
        .max(200)
        .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]*$/, 'must be a plain name')
        .describe('the new folder of the workspace'),
    }),
    leaving,
    async ({ url: from, folder: into }, { mcpReq: { signal } }) => {
      const { href, config } = remoteOf(remotes, from);
      const cwd = git.workspace.root;
      const args = ['clone', '--template=', '--no-recurse-submodules', '--no-local', '--', href, into];
      return resultOf(await git.run({ cwd, args, config, timeoutMs: REMOTE_MS, signal }));
    },
  );

  tool(
    'pull',
    ['Pull', 'Takes the commits of a remote’s branch over, where that needs no merge.'],
    z.strictObject({ folder, url, branch }),
    leaving,
    async ({ folder: at, url: from, branch: named }, { mcpReq: { signal } }) => {
      const repository = await git.repository(at, signal);
      const { href, config } = remoteOf(remotes, from);
      const args = ['pull', '--ff-only', '--no-recurse-submodules', '--no-verify', href, `refs/heads/${named}`];
      return resultOf(await git.run({ repository, cwd: repository, args, config, timeoutMs: REMOTE_MS, signal }));
    },
  );

  tool(
    'push',
    ['Push', 'Sends the commits of a branch to a remote that the operator has named; overwrites nothing there.'],
    z.strictObject({ folder, url, branch }),
    leaving,
    async ({ folder: at, url: to, branch: named }, { mcpReq: { signal } }) => {
      const repository = await git.repository(at, signal);
      const { href, config } = remoteOf(remotes, to);
      const ref = `refs/heads/${named}:refs/heads/${named}`;
      const args = ['push', '--no-verify', '--no-signed', '--recurse-submodules=no', href, ref];
      return resultOf(await git.run({ repository, cwd: repository, args, config, timeoutMs: REMOTE_MS, signal }));
    },
  );
}
