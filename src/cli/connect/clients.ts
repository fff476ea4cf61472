/** The clients that can be connected: their files, and the form of MCP servers and hooks in them. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Settings } from '../../wire/settings.ts';

/** Paths on a computer, and the current folder. */
export type Surroundings = {
  readonly environment: Settings;
  readonly platform: NodeJS.Platform;
  readonly cwd: string;
};

export type ServersPart = {
  readonly kind: 'servers';
  /** The field of the file that contains servers by name. */
  readonly field: string;
  /** Further fields of each server. */
  readonly extra: Readonly<Record<string, string>>;
};

export type HookPart = {
  readonly kind: 'hook';
  /** The event of a prompt, as the client names it. */
  readonly event: string;
  /** Flags of `reveille time hook`. */
  readonly flags: string;
  readonly timeout: number;
};

/** A file of a client, and our entries in it. */
export type ClientFile = {
  readonly path: string;
  readonly format: 'json' | 'toml';
  readonly parts: readonly (ServersPart | HookPart)[];
};

export type Client = {
  readonly title: string;
  /** What to do until the client reads its files again. */
  readonly afterwards: string;
  /** For this user, everywhere. */
  user(around: Surroundings): ClientFile[];
  /** For the current folder; a client without this has no such files. */
  project?(around: Surroundings): ClientFile[];
};

export const homeOf = ({ environment: { HOME, USERPROFILE }, platform }: Surroundings) =>
  (platform === 'win32' ? USERPROFILE : HOME) || homedir();

/** Folders of desktop programs for their user's files. */
function desktopFolder(around: Surroundings): string {
  const { environment, platform } = around;
  if (platform === 'win32') return environment.APPDATA || join(homeOf(around), 'AppData', 'Roaming');
  if (platform === 'darwin') return join(homeOf(around), 'Library', 'Application Support');
  return environment.XDG_CONFIG_HOME || join(homeOf(around), '.config');
}

const servers = (field = 'mcpServers', extra: ServersPart['extra'] = {}): ServersPart => ({
  kind: 'servers',
  field,
  extra,
});
const json = (path: string, ...parts: ClientFile['parts']): ClientFile => ({ path, format: 'json', parts });
const toml = (path: string): ClientFile => ({ path, format: 'toml', parts: [servers('mcp_servers')] });

const PROMPT: HookPart = { kind: 'hook', event: 'UserPromptSubmit', flags: '', timeout: 5 };
const BEFORE_AGENT: HookPart = { kind: 'hook', event: 'BeforeAgent', flags: ' --format gemini', timeout: 5000 };
const TYPED = servers('mcpServers', { type: 'stdio' });

export const CLIENTS: Readonly<Record<string, Client>> = {
  claude: {
    title: 'Claude Code',
    afterwards: 'restart Claude Code; /mcp shows both servers',
    user(around) {
      const own = around.environment.CLAUDE_CONFIG_DIR;
      return [
        json(join(own || homeOf(around), '.claude.json'), TYPED),
        json(join(own || join(homeOf(around), '.claude'), 'settings.json'), PROMPT),
      ];
    },
    project: ({ cwd }) => [
      json(join(cwd, '.mcp.json'), TYPED),
      // Not the shared file: the paths are those of one computer.
      json(join(cwd, '.claude', 'settings.local.json'), PROMPT),
    ],
  },
  codex: {
    title: 'Codex',
    afterwards: 'restart Codex, and trust the hook once under /hooks',
    user(around) {
      const folder = around.environment.CODEX_HOME || join(homeOf(around), '.codex');
      return [toml(join(folder, 'config.toml')), json(join(folder, 'hooks.json'), PROMPT)];
    },
    project: ({ cwd }) => [toml(join(cwd, '.codex', 'config.toml')), json(join(cwd, '.codex', 'hooks.json'), PROMPT)],
  },
  gemini: {
    title: 'Gemini CLI',
    afterwards: 'restart Gemini CLI; /mcp shows both servers',
    user(around) {
      const home = around.environment.GEMINI_CLI_HOME || homeOf(around);
      return [json(join(home, '.gemini', 'settings.json'), servers(), BEFORE_AGENT)];
    },
    project: ({ cwd }) => [json(join(cwd, '.gemini', 'settings.json'), servers(), BEFORE_AGENT)],
  },
  // Cursor has no hook that can add to a prompt (docs/guides/time-hook.md).
  cursor: {
    title: 'Cursor',
    afterwards: 'enable both servers under Settings, MCP',
    user: (around) => [json(join(homeOf(around), '.cursor', 'mcp.json'), servers())],
    project: ({ cwd }) => [json(join(cwd, '.cursor', 'mcp.json'), servers())],
  },
  vscode: {
    title: 'VS Code',
    afterwards: 'VS Code asks once for permission to start them',
    user: (around) => [
      json(join(desktopFolder(around), 'Code', 'User', 'mcp.json'), servers('servers', { type: 'stdio' })),
    ],
    project: ({ cwd }) => [json(join(cwd, '.vscode', 'mcp.json'), servers('servers', { type: 'stdio' }))],
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    afterwards: 'quit and restart Claude Desktop',
    user: (around) => [json(join(desktopFolder(around), 'Claude', 'claude_desktop_config.json'), servers())],
  },
};
