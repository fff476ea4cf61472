/** The tools of `git`: read repositories of the workspace, record changes, and exchange commits with remotes. */
import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Job } from './git-operations.ts';
import type { Remotes } from './git-remote.ts';
import type { GitRunner } from './git-runner.ts';

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

type Context = { mcpReq: { signal: AbortSignal } };

export function addGit(server: McpServer, git: GitRunner, remotes: Remotes): void {
  const reading = { readOnlyHint: true, openWorldHint: false };
  const writing = { readOnlyHint: false, destructiveHint: false, openWorldHint: false };
  const remoteAccess = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
  const tool = <S extends z.ZodObject>(
    name: string,
    texts: [title: string, description: string],
    inputSchema: S,
    annotations: object,
    jobOf: (given: z.output<S>) => Job,
  ) => {
    const [title, description] = texts;
    const handler = async (given: unknown, { mcpReq: { signal } }: Context) => {
      const job = jobOf(given as z.output<S>);
      const remote = 'url' in job ? remotes.open(job.url) : undefined;
      const text = await git.run(remote ? ({ ...job, url: remote.href } as Job) : job, { signal, remote });
      return { content: [{ type: 'text' as const, text: text || 'done' }], isError: false };
    };
    server.registerTool(name, { title, description, inputSchema, annotations }, handler as never);
  };

  tool(
    'status',
    ['Status', 'Shows the changes in a repository of the workspace and its branch.'],
    z.strictObject({ folder }),
    reading,
    (given) => ({ operation: 'status', ...given }),
  );

  tool(
    'diff',
    ['Differences', 'Shows the uncommitted or the staged changes.'],
    z.strictObject({ folder, staged: z.boolean().optional(), paths: paths.optional() }),
    reading,
    (given) => ({ operation: 'diff', ...given }),
  );

  tool(
    'log',
    ['History', 'Lists the commits of a branch, the newest first.'],
    z.strictObject({ folder, revision: revision.optional(), count: z.int().min(1).max(200).optional() }),
    reading,
    ({ revision: of = 'HEAD', count = 20, ...given }) => ({ operation: 'log', ...given, revision: of, count }),
  );

  tool(
    'show',
    ['Show a commit', 'Shows a commit with its changes.'],
    z.strictObject({ folder, revision }),
    reading,
    (given) => ({ operation: 'show', ...given }),
  );

  tool(
    'branches',
    ['Branches', 'Lists the branches of a repository.'],
    z.strictObject({ folder }),
    reading,
    (given) => ({
      operation: 'branches',
      ...given,
    }),
  );

  tool(
    'init',
    ['Make a repository', 'Creates a repository in a folder of the workspace.'],
    z.strictObject({ folder, branch: branch.optional() }),
    writing,
    ({ branch: named = 'main', ...given }) => ({ operation: 'init', ...given, branch: named }),
  );

  tool(
    'add',
    ['Stage changes', 'Stages files for the next commit, including removed ones.'],
    z.strictObject({ folder, paths }),
    writing,
    (given) => ({ operation: 'add', ...given }),
  );

  tool(
    'commit',
    ['Commit', 'Records the staged changes.'],
    z.strictObject({ folder, message: z.string().trim().min(1).max(10_000) }),
    writing,
    (given) => ({ operation: 'commit', ...given }),
  );

  tool(
    'switch',
    ['Switch branches', 'Switches to another branch, or creates one.'],
    z.strictObject({ folder, branch, create: z.boolean().optional() }),
    writing,
    (given) => ({ operation: 'switch', ...given }),
  );

  tool(
    'clone',
    ['Clone', 'Clones a repository from a remote that the operator allows, without its submodules.'],
    z.strictObject({
      url,
      folder: z
        .string()
        .min(1)
        .max(200)
        .regex(/^[A-Za-z0-9_][A-Za-z0-9._-]*$/, 'must be a plain name')
        .describe('the new folder of the workspace'),
    }),
    remoteAccess,
    (given) => ({ operation: 'clone', ...given }),
  );

  tool(
    'pull',
    ['Pull', 'Fetches the commits of a remote’s branch and fast-forwards to them; makes no merge.'],
    z.strictObject({ folder, url, branch }),
    remoteAccess,
    (given) => ({ operation: 'pull', ...given }),
  );

  tool(
    'push',
    ['Push', 'Sends the commits of a branch to a remote that the operator allows; overwrites nothing there.'],
    z.strictObject({ folder, url, branch }),
    remoteAccess,
    (given) => ({ operation: 'push', ...given }),
  );
}
