/** The programs that can be connected: which files they read, and how an MCP server and a hook look in them. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Settings } from '../../wire/settings.ts';

/** Where things are on a machine, and in which folder somebody stands. */
export type Surroundings = {
  readonly environment: Settings;
  readonly platform: NodeJS.Platform;
  readonly cwd: string;
};

export type ServersPart = {
  readonly kind: 'servers';
  /** The field of the file that holds servers by their names. */
  readonly field: string;
  /** What each of them says besides how it is started. */
  readonly extra: Readonly<Record<string, string>>;
};

export type HookPart = {
  readonly kind: 'hook';
  /** What happens when somebody sends a prompt, in the words of the client. */
  readonly event: string;
  /** Flags of `reveille time hook`. */
  readonly flags: string;
  readonly timeout: number;
};

/** A file of a client, and what of ours goes into it. */
export type ClientFile = {
  readonly path: string;
  readonly format: 'json' | 'toml';
  readonly parts: readonly (ServersPart | HookPart)[];
};

export type Client = {
  readonly title: string;
  /** What to do until it has read its files again. */
  readonly afterwards: string;
  /** For this person, everywhere. */
  user(around: Surroundings): ClientFile[];
  /** For the folder that somebody stands in; a client without this has no such files. */
  project?(around: Surroundings): ClientFile[];
};

export const homeOf = ({ environment: { HOME, USERPROFILE }, platform }: Surroundings) =>
  (platform === 'win32' ? USERPROFILE : HOME) || homedir();

/** Where desktop programs keep what belongs to their user. */
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
    afterwards: 'start Claude Code anew; /mcp shows both servers',
    user(around) {
      const own = around.environment.CLAUDE_CONFIG_DIR;
      return [
        json(join(own || homeOf(around), '.claude.json'), TYPED),
        json(join(own || join(homeOf(around), '.claude'), 'settings.json'), PROMPT),
      ];
    },
    project: ({ cwd }) => [
      json(join(cwd, '.mcp.json'), TYPED),
      // Not the file that is shared: the paths in it are those of one machine.
      json(join(cwd, '.claude', 'settings.local.json'), PROMPT),
    ],
  },
  codex: {
    title: 'Codex',
    afterwards: 'start Codex anew, and trust the hook once under /hooks',
    user(around) {
      const folder = around.environment.CODEX_HOME || join(homeOf(around), '.codex');
      return [toml(join(folder, 'config.toml')), json(join(folder, 'hooks.json'), PROMPT)];
    },
    project: ({ cwd }) => [toml(join(cwd, '.codex', 'config.toml')), json(join(cwd, '.codex', 'hooks.json'), PROMPT)],
  },
  gemini: {
    title: 'Gemini CLI',
    afterwards: 'start Gemini CLI anew; /mcp shows both servers',
    user(around) {
      const home = around.environment.GEMINI_CLI_HOME || homeOf(around);
      return [json(join(home, '.gemini', 'settings.json'), servers(), BEFORE_AGENT)];
    },
    project: ({ cwd }) => [json(join(cwd, '.gemini', 'settings.json'), servers(), BEFORE_AGENT)],
  },
  // Cursor has no hook that can add to a prompt (docs/time-hook.md).
  cursor: {
    title: 'Cursor',
    afterwards: 'switch both servers on under Settings, MCP',
    user: (around) => [json(join(homeOf(around), '.cursor', 'mcp.json'), servers())],
    project: ({ cwd }) => [json(join(cwd, '.cursor', 'mcp.json'), servers())],
  },
  vscode: {
    title: 'VS Code',
    afterwards: 'VS Code asks once whether it may start them',
    user: (around) => [
      json(join(desktopFolder(around), 'Code', 'User', 'mcp.json'), servers('servers', { type: 'stdio' })),
    ],
    project: ({ cwd }) => [json(join(cwd, '.vscode', 'mcp.json'), servers('servers', { type: 'stdio' }))],
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    afterwards: 'quit Claude Desktop and start it anew',
    user: (around) => [json(join(desktopFolder(around), 'Claude', 'claude_desktop_config.json'), servers())],
  },
};
