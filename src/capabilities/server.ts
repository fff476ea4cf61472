/**
 * The stdio MCP servers of `reveille capability`: abilities of an agent besides files and alarms
 * (docs/internals/decisions/0016-capabilities.md). Each is a separate process, so that each has its own sandbox.
 */
import type { Readable, Writable } from 'node:stream';
import { McpServer } from '@modelcontextprotocol/server';
import { type Clock, systemClock } from '../kit/clock/clock.ts';
import type { Resolve } from '../kit/http/guarded-lookup.ts';
import { WebAccess } from '../kit/http/web-access.ts';
import type { Logger } from '../kit/log/log.ts';
import { type ServedConnection, serveUntilDisconnect } from '../kit/mcp/serve.ts';
import { isSandboxed } from '../kit/process/bounded-program.ts';
import { addFetch } from './fetch.ts';
import { addGit } from './git.ts';
import { Remotes } from './git-remote.ts';
import { GitRunner } from './git-runner.ts';
import { PageReader } from './page-text.ts';
import { addSearch, searchEngineOf } from './search.ts';
import { addShell, Workspace } from './shell.ts';

/** Part of the URIs of the tools. */
export const CAPABILITIES_VERSION = '0.1.0';

export const CAPABILITIES = ['fetch', 'web_search', 'git', 'shell'] as const;
export type CapabilityName = (typeof CAPABILITIES)[number];

export type CapabilityOptions = {
  name: CapabilityName;
  log: Logger;
  clock?: Clock;
  /** The search path for programs. */
  path?: string | undefined;
  /** Of `git` and `shell`. */
  workspace?: string | undefined;
  /** Of `fetch` and `web_search`: allowed hosts of private networks. */
  allow?: string | undefined;
  searchUrl?: string | undefined;
  searchKey?: string | undefined;
  /** Of `git`: allowed prefixes of remote addresses, separated by commas. */
  remotes?: string | undefined;
  gitToken?: string | undefined;
  /** Of `shell`: whether commands may run without a sandbox. */
  isUnsandboxedAllowed?: boolean;
  /** The value of the environment variable that marks a sandbox. */
  sandbox?: string | undefined;
  resolve?: Resolve;
  input?: Readable;
  output?: Writable;
};

/** Serves one capability. @throws ReveilleError `invalid_request` for a wrong or missing setting */
export function startCapability(options: CapabilityOptions): ServedConnection {
  const { name, log, clock = systemClock, path } = options;
  const web = new WebAccess({ clock, allow: options.allow, ...(options.resolve && { resolve: options.resolve }) });
  const reader = new PageReader(clock);
  const closers = [() => web.close(), () => reader.close()];
  const adders: Record<CapabilityName, () => (server: McpServer) => void> = {
    fetch: () => (server) => addFetch(server, { web, reader }),
    web_search() {
      const engine = searchEngineOf(options.searchUrl, options.searchKey);
      return (server) => addSearch(server, web, engine);
    },
    git() {
      const git = new GitRunner({ clock, root: new Workspace(options.workspace ?? '').root });
      const remotes = new Remotes(clock, options.remotes ?? '', options.gitToken);
      closers.push(async () => void (await Promise.all([remotes.close(), git.close()])));
      return (server) => addGit(server, git, remotes);
    },
    shell() {
      const workspace = new Workspace(options.workspace ?? '');
      return (server) =>
        addShell(server, {
          clock,
          workspace,
          path,
          isUnsandboxedAllowed: options.isUnsandboxedAllowed ?? false,
          isSandboxed: isSandboxed(options.sandbox),
        });
    },
  };
  const add = adders[name]();
  return serveUntilDisconnect({
    factory() {
      const server = new McpServer({ name, version: CAPABILITIES_VERSION });
      add(server);
      return server;
    },
    onerror: (err) => log.warn({ err }, 'the MCP connection reported an error'),
    onEnd: async () => void (await Promise.all(closers.map((close) => close()))),
    ...(options.input && { input: options.input }),
    ...(options.output && { output: options.output }),
  });
}
