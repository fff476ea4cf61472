/**
 * The formats that the directories of agents' clients accept, as zod schemas. Only one npm package has their schemas,
 * and it brings 57 others. So these schemas follow the documentation as of November 2026. They refuse unknown fields,
 * so that a typing error is found; unused fields are not in them.
 *
 * Claude Code: code.claude.com/docs, plugins reference and marketplace reference. MCP registry: server.json of
 * 2025-12-11.
 * Bundles: MANIFEST.md 0.3 of modelcontextprotocol/mcpb. Gemini CLI: extensions reference, hooks reference.
 */
import { z } from 'zod';

/** Lower-case words with hyphens. */
const kebab = z.string().regex(/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/);
/** One version, no range (https://semver.org). */
const version = z.string().regex(/^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?$/);
const relativePath = z.string().regex(/^\.\/(?!.*\.\.)/, 'must be a path within, ./…');
const words = z.array(z.string().min(1));
const person = z.strictObject({ name: z.string().min(1), email: z.email().optional(), url: z.url().optional() });
const stdioServer = z.strictObject({ command: z.string().min(1), args: words.optional() });

export const serversSchema = z.record(kebab, stdioServer);

export const claudePluginSchema = z.strictObject({
  name: kebab,
  version,
  description: z.string().min(1),
  author: person,
  license: z.string(),
  keywords: z.array(kebab),
});

/** The client refuses names that Anthropic reserves; this project uses none of them. */
export const claudeMarketplaceSchema = z.strictObject({
  name: kebab,
  owner: person,
  description: z.string().min(1),
  plugins: z
    .array(z.strictObject({ name: kebab, source: relativePath, description: z.string().min(1), category: z.string() }))
    .min(1),
});

const hookGroup = z.strictObject({
  hooks: z.array(
    z.strictObject({ type: z.literal('command'), command: z.string().min(1), timeout: z.int().positive() }),
  ),
});
/** The time limit is in seconds for Claude Code and in milliseconds for Gemini CLI. */
export const hooksSchema = (event: string) =>
  z.strictObject({ hooks: z.strictObject({ [event]: z.array(hookGroup) }) });

export const mcpServerSchema = z.strictObject({
  $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
  /** Reverse DNS, one slash; must be the `mcpName` of the package that it names. */
  name: z
    .string()
    .min(3)
    .max(200)
    .regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
  title: z.string().min(1).max(100),
  description: z.string().min(1).max(100),
  version: version.max(255),
  repository: z.strictObject({ url: z.url(), source: z.literal('github') }).optional(),
  websiteUrl: z.url({ protocol: /^https$/ }).optional(),
  icons: z
    .array(
      z.strictObject({
        src: z.url({ protocol: /^https$/ }).max(255),
        mimeType: z.literal('image/svg+xml'),
        sizes: z.array(z.literal('any')),
      }),
    )
    .optional(),
  packages: z.array(
    z.strictObject({
      registryType: z.literal('npm'),
      identifier: z.string().min(1),
      version,
      runtimeHint: z.literal('npx'),
      transport: z.strictObject({ type: z.literal('stdio') }),
      packageArguments: z.array(z.strictObject({ type: z.literal('positional'), value: z.string().min(1) })),
    }),
  ),
});

export const bundleSchema = z.strictObject({
  manifest_version: z.literal('0.3'),
  name: kebab,
  display_name: z.string().min(1),
  version,
  description: z.string().min(1),
  long_description: z.string().min(1),
  author: person,
  server: z.strictObject({
    type: z.literal('node'),
    entry_point: z.string().min(1),
    mcp_config: z.strictObject({ command: z.literal('node'), args: words }),
  }),
  tools: z.array(z.strictObject({ name: z.string().min(1), description: z.string().min(1) })),
  keywords: z.array(kebab),
  license: z.string(),
  compatibility: z.strictObject({
    platforms: z.array(z.enum(['darwin', 'win32', 'linux'])),
    runtimes: z.strictObject({ node: z.string().regex(/^>=\d+(?:\.\d+)*$/) }),
  }),
});

export const geminiExtensionSchema = z.strictObject({
  name: kebab,
  version,
  description: z.string().min(1),
  mcpServers: serversSchema,
});

/** The front matter of a `SKILL.md` (agentskills.io): its name is the name of its folder. */
export const skillHeadSchema = z.strictObject({ name: kebab.max(64), description: z.string().min(1).max(1024) });

/** The front matter of a slash command of Claude Code. */
export const commandHeadSchema = z.strictObject({
  description: z.string().min(1),
  'argument-hint': z.string().min(1).optional(),
});

/** A slash command of Gemini CLI. */
export const geminiCommandSchema = z.strictObject({ description: z.string().min(1), prompt: z.string().min(1) });
