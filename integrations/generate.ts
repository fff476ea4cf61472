/**
 * `npm run integrations`: writes the files for the directories of agents' clients. The version comes from
 * `package.json`, the servers from `src/cli/connect`, the skills from `skills/`, the tools from their definitions.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ROOT, readManifest, registryName } from '../packaging/manifest.ts';
import { toolDefinitions } from '../src/chronometric/tools/definitions.ts';
import { readChronosTools, TOOLS_FILE } from '../src/chronos-mcp/tools.ts';
import { SERVERS, type ServerName } from '../src/cli/connect/entries.ts';
import {
  bundleSchema,
  claudeMarketplaceSchema,
  claudePluginSchema,
  geminiExtensionSchema,
  hooksSchema,
  mcpServerSchema,
  serversSchema,
} from './formats.ts';

const { name: PACKAGE, version: VERSION, license: LICENSE } = readManifest(ROOT) as unknown as Record<string, string>;
const AUTHOR = { name: 'The Reveille maintainers' };
const KEYWORDS = ['alarm', 'scheduler', 'time', 'reminder', 'mcp'];
const DESCRIPTION =
  'An alarm clock for AI agents: alarms that survive restarts and wake the agent with its own message, and a sense of time for its person.';

/** The command that starts each server for users without an installation. */
const viaNpx = (server: ServerName) => ({ command: 'npx', args: ['-y', `${PACKAGE}@${VERSION}`, SERVERS[server]] });
export const NPX_SERVERS = { chronos: viaNpx('chronos'), chronometric: viaNpx('chronometric') };

/**
 * Runs the program where it is installed; elsewhere does nothing at once, because fetching it would delay every prompt.
 */
const hookLine = (flags: string) => `command -v ${PACKAGE} >/dev/null 2>&1 && ${PACKAGE} time hook${flags} || true`;
const hooksOf = (event: string, flags: string, timeout: number) =>
  hooksSchema(event).parse({
    hooks: { [event]: [{ hooks: [{ type: 'command', command: hookLine(flags), timeout }] }] },
  });

/** A list of tools has space for the first sentence. */
const firstSentence = (text: string) => /^.*?[.](?=\s|$)/s.exec(text)?.[0].replaceAll(/\s+/g, ' ') ?? text;

type Tool = { readonly name: string; readonly description: string };
type Bundle = {
  readonly server: ServerName;
  readonly title: string;
  readonly about: string;
  readonly tools: readonly Tool[];
};

export const BUNDLES: readonly Bundle[] = [
  {
    server: 'chronos',
    title: 'Reveille: alarms',
    about: 'Three tools to set, list and cancel alarms. They fire while "reveille up" runs on this computer.',
    tools: [...readChronosTools(TOOLS_FILE).values()],
  },
  {
    server: 'chronometric',
    title: 'Reveille: time',
    about:
      'What time it is for you, what you set out to do, how long you have been at it, and when a break is due. It uses no network.',
    tools: toolDefinitions(),
  },
];

/** Clients replace this variable with the folder of the unpacked bundle. */
export const BUNDLE_FOLDER = `\${__dirname}`;

/** The manifest of a desktop bundle, which has the whole package in its folder `server`. */
export const bundleManifest = ({ server, title, about, tools }: Bundle) =>
  bundleSchema.parse({
    manifest_version: '0.3',
    name: `${PACKAGE}-${server}`,
    display_name: title,
    version: VERSION,
    description: DESCRIPTION,
    long_description: about,
    author: AUTHOR,
    server: {
      type: 'node',
      entry_point: 'server/bin/reveille.mjs',
      mcp_config: { command: 'node', args: [`${BUNDLE_FOLDER}/server/bin/reveille.mjs`, SERVERS[server]] },
    },
    tools: tools.map(({ name, description }) => ({ name, description: firstSentence(description) })),
    keywords: KEYWORDS,
    license: LICENSE,
    compatibility: { platforms: ['darwin', 'win32', 'linux'], runtimes: { node: '>=24' } },
  });

/** The icon of the console, which the repository serves under the tag of the version. */
const ICON = 'src/console/assets/icon.svg';

/** Where the registry links to: the repository, its website and its icon; nothing for a repository elsewhere. */
function placesOf(url: string | undefined, website: string | undefined) {
  const [, path] = /^https:\/\/github\.com\/([\w.-]+\/[\w.-]+)$/.exec(url ?? '') ?? [];
  if (path === undefined) return website === undefined ? {} : { websiteUrl: website };
  const src = `https://raw.githubusercontent.com/${path}/v${VERSION}/${ICON}`;
  return {
    repository: { url, source: 'github' },
    websiteUrl: website ?? `${url}#readme`,
    icons: [{ src, mimeType: 'image/svg+xml', sizes: ['any'] }],
  };
}

/**
 * The entry of the MCP registry. A package has one `mcpName`, so it has one entry: the alarms.
 *
 * @param address of the repository, whose owner the name belongs to
 * @param website of the project; the repository by default
 */
export function registryEntry(address?: string, website?: string) {
  const url = address?.replace(/^git\+/, '').replace(/\.git$/, '');
  return mcpServerSchema.parse({
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: registryName(address),
    title: 'Reveille',
    description: 'Alarms that survive restarts and wake the agent with its own words.',
    version: VERSION,
    ...placesOf(url, website),
    packages: [
      {
        registryType: 'npm',
        identifier: PACKAGE,
        version: VERSION,
        runtimeHint: 'npx',
        transport: { type: 'stdio' },
        packageArguments: [{ type: 'positional', value: SERVERS.chronos }],
      },
    ],
  });
}

/**
 * A skill of this project (`SKILL.mtx`) in the format that other agents read: front matter with name and description,
 * then the guide.
 */
function skillPage(text: string): { name: string; page: string } {
  const [, name, description] = /^§SKILL (\S+)\n\s+(.+)\nend$/m.exec(text) ?? [];
  const [, guide] = /^§GUIDE\n(.*?)^end$/ms.exec(text) ?? [];
  if (!name || !description || !guide) throw new Error('a skill needs §SKILL with one line, and §GUIDE');
  const body = guide.replaceAll(/^ {2}/gm, '');
  return { name, page: `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n---\n\n${body}` };
}

const skills = () =>
  readdirSync(join(ROOT, 'skills')).map((folder) =>
    skillPage(readFileSync(join(ROOT, 'skills', folder, 'SKILL.mtx'), 'utf8')),
  );

type SlashCommand = {
  readonly description: string;
  readonly hint?: string;
  readonly prompt: (request: string) => string;
};

/** Slash commands, by name; each client has its own placeholder for the arguments. */
const COMMANDS: Readonly<Record<string, SlashCommand>> = {
  alarm: {
    description: 'Set an alarm that wakes you with a message, once or repeatedly',
    hint: '<what> <when>',
    prompt: (request) => `Set an alarm with the tool alarm_set of the server chronos, for: ${request}

Pass the person's words for the time as when. Compare the reading in the answer with the request; if it differs, correct the alarm with alarm_id and when.
Write the wake message for a reader without any context: the task, the reason, the paths and ids, and when it is done.
Give an idempotency key that names the task. Then say in one sentence when it fires, in the person's local time, and the alarm's id.
If the task or the time is unclear, ask instead of guessing.`,
  },
  alarms: {
    description: 'List the upcoming alarms',
    prompt: () => `Call alarm_list of the server chronos and show the upcoming alarms.
Show for each the person's local time, how often it repeats, the label or the beginning of the message, and the first characters of the id.
Add nothing else. Without any, say so in one sentence.`,
  },
  'cancel-alarm': {
    description: 'Cancel an alarm by its id, its label or its subject',
    hint: '<which>',
    prompt: (request) => `Use the tool alarm_cancel of the server chronos to cancel this alarm: ${request}

Find it with alarm_list. If more than one matches, or none, show the candidates and ask; cancel nothing on a guess.
Then say which one is cancelled, and when it would have fired.`,
  },
};

const claudeCommand = ({ description, hint, prompt }: SlashCommand) =>
  `---\ndescription: ${description}\n${hint === undefined ? '' : `argument-hint: ${JSON.stringify(hint)}\n`}---\n\n${prompt('$ARGUMENTS')}\n`;

const geminiCommand = ({ description, prompt }: SlashCommand) =>
  `description = ${JSON.stringify(description)}\nprompt = ${JSON.stringify(prompt('{{args}}'))}\n`;

const SNIPPET_NOTE =
  'Made by "npm run integrations". "reveille connect codex" writes this with the path of an installed program.';

/** The TOML of Codex; TOML accepts JSON's strings and lists. */
const codexSnippet = () =>
  [
    `# ${SNIPPET_NOTE}`,
    ...Object.entries(NPX_SERVERS).map(
      ([name, { command, args }]) =>
        `\n[mcp_servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = [${args.map((word) => JSON.stringify(word)).join(', ')}]`,
    ),
    '',
  ].join('\n');

/** All generated files, by path within the repository. */
export function integrationFiles(): Record<string, string> {
  const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
  const below = (folder: string) =>
    Object.fromEntries(skills().map(({ name, page }) => [`integrations/${folder}/skills/${name}/SKILL.md`, page]));
  const commands = (path: (name: string) => string, page: (command: SlashCommand) => string) =>
    Object.fromEntries(Object.entries(COMMANDS).map(([name, command]) => [path(name), page(command)]));
  const plugin = { name: PACKAGE, version: VERSION, description: DESCRIPTION };
  return {
    '.claude-plugin/marketplace.json': json(
      claudeMarketplaceSchema.parse({
        name: PACKAGE,
        owner: AUTHOR,
        description: DESCRIPTION,
        plugins: [
          { name: PACKAGE, source: './integrations/claude', description: DESCRIPTION, category: 'productivity' },
        ],
      }),
    ),
    'integrations/claude/.claude-plugin/plugin.json': json(
      claudePluginSchema.parse({ ...plugin, author: AUTHOR, license: LICENSE, keywords: KEYWORDS }),
    ),
    'integrations/claude/.mcp.json': json({ mcpServers: serversSchema.parse(NPX_SERVERS) }),
    'integrations/claude/hooks/hooks.json': json(hooksOf('UserPromptSubmit', '', 5)),
    ...commands((name) => `integrations/claude/commands/${name}.md`, claudeCommand),
    ...below('claude'),
    'integrations/gemini/gemini-extension.json': json(
      geminiExtensionSchema.parse({ ...plugin, mcpServers: NPX_SERVERS }),
    ),
    'integrations/gemini/hooks/hooks.json': json(hooksOf('BeforeAgent', ' --format gemini', 5000)),
    ...commands((name) => `integrations/gemini/commands/${PACKAGE}/${name}.toml`, geminiCommand),
    ...below('gemini'),
    'integrations/codex/config.toml': codexSnippet(),
    'integrations/cursor/mcp.json': json({ mcpServers: serversSchema.parse(NPX_SERVERS) }),
    'integrations/registry/server.json': json(registryEntry()),
    ...Object.fromEntries(
      BUNDLES.map((bundle) => [`integrations/desktop/${bundle.server}.json`, json(bundleManifest(bundle))]),
    ),
  };
}

if (import.meta.main)
  for (const [name, text] of Object.entries(integrationFiles())) {
    mkdirSync(dirname(join(ROOT, name)), { recursive: true });
    writeFileSync(join(ROOT, name), text);
  }
