/**
 * `reveille mcp --selftest`: the tools of `chronos-tools.json`, of each agent manifest and of each skill must be the same.
 * Works offline and reports every difference.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { thrownText } from '../wire/errors.ts';
import { parseJsonObject } from '../wire/json.ts';
import { agentManifestSchema, type ManifestServer, referencesOf } from '../wire/manifest.ts';
import { readSkillTools, readToolUri, type ToolUri } from '../wire/tool-uri.ts';
import { parseOrThrow } from '../wire/validate.ts';
import { CHRONOS_ALIAS, readToolsFile, TOOL_NAMES, TOOL_SET_VERSION } from './tools.ts';

export type SelftestPlaces = {
  /** `chronos-tools.json`. */
  toolsFile: string | URL;
  /** Contains `*.json`, the agent manifests, and `*.lock.json`, their locks. */
  agentsDir: string;
  /** Contains `<skill>/SKILL.mtx`. */
  skillsDir: string;
};

export type SelftestReport = {
  ok: boolean;
  /** One sentence each, beginning with the file. */
  differences: string[];
  /** The files whose tool sets were compared. */
  checked: string[];
};

/** The differences between a set of names and the expected one. */
function setDifferences(names: readonly string[], expected: ReadonlySet<string>): string[] {
  const seen = new Set<string>();
  const found: string[] = [];
  for (const name of names) {
    if (seen.has(name)) found.push(`${name} is a duplicate`);
    else if (!expected.has(name)) found.push(`${name} is not a chronos tool`);
    seen.add(name);
  }
  for (const name of expected) if (!seen.has(name)) found.push(`${name} is missing`);
  return found;
}

function runsChronosMcp({ command = '', args = [] }: ManifestServer): boolean {
  return /(^|[\s/\\])reveille(\.m?[jt]s)?\s+mcp(\s|$)/.test([command, ...args].join(' '));
}

function envDifferences(server: ManifestServer): string[] {
  return referencesOf(server.env).flatMap(({ name, variable }) =>
    variable === undefined ? [`env ${name} must refer to a variable, as \${${name}} or ${name}=$env:${name}`] : [],
  );
}

function serverDifferences(server: ManifestServer, expected: ReadonlySet<string>): string[] {
  const found = setDifferences(
    (server.tools ?? []).map(({ name }) => name),
    expected,
  );
  if (server.alias !== CHRONOS_ALIAS) found.unshift(`alias "${server.alias}" must be "${CHRONOS_ALIAS}"`);
  if (server.version !== undefined && server.version !== TOOL_SET_VERSION) {
    found.push(`version ${server.version} must be ${TOOL_SET_VERSION}`);
  }
  return [...found, ...envDifferences(server)];
}

/** Fields of a manifest that may contain secrets by mistake: their values are not repeated. */
function secretFields(manifest: Record<string, unknown>): string[] {
  const servers = Array.isArray(manifest.servers) ? (manifest.servers as unknown[]) : [];
  return servers.flatMap((server, at) =>
    ['env', 'headers'].flatMap((member) => {
      const field = `servers.${at}.${member}`;
      const given: unknown = typeof server === 'object' && server !== null ? Reflect.get(server, member) : undefined;
      const keys = typeof given === 'object' && given !== null ? Object.keys(given) : [];
      return [`servers.${at}`, field, ...keys.map((key) => `${field}.${key}`)];
    }),
  );
}

/** `undefined` for a manifest without a chronos server. */
function manifestDifferences(text: string, expected: ReadonlySet<string>): string[] | undefined {
  const manifest = parseJsonObject(text);
  const { servers } = parseOrThrow(agentManifestSchema, manifest, ['servers', ...secretFields(manifest)]);
  const chronos = servers.filter((server) => server.alias === CHRONOS_ALIAS || runsChronosMcp(server));
  if (chronos.length === 0) return undefined;
  const twice = chronos.length > 1 ? [`${chronos.length} chronos servers are declared; one is allowed`] : [];
  return [...twice, ...chronos.flatMap((server) => serverDifferences(server, expected))];
}

/** An entry of a skill's block; its parts are absent when the text is not a tool URI. */
type SkillTool = { line: number; text: string; parts: ToolUri | undefined };

function concernsChronos({ text, parts }: SkillTool, expected: ReadonlySet<string>): boolean {
  if (parts) return parts.alias === CHRONOS_ALIAS || expected.has(parts.tool);
  return new RegExp(`\\b${CHRONOS_ALIAS}\\b`).test(text) || [...expected].some((tool) => text.includes(tool));
}

/** `undefined` for a skill that does not name chronos. */
function skillDifferences(text: string, expected: ReadonlySet<string>): string[] | undefined {
  const read = readSkillTools(text).entries.map((entry): SkillTool => ({ ...entry, parts: readToolUri(entry.text) }));
  const entries = read.filter((entry) => concernsChronos(entry, expected));
  if (entries.length === 0) return undefined;
  const form = `matrix://tool/mcp/${CHRONOS_ALIAS}/<tool>@${TOOL_SET_VERSION}`;
  const found = entries.flatMap(({ line, text: entry, parts }) => {
    if (!parts) return [`line ${line}: ${entry} must look like ${form}`];
    const wrong: string[] = [];
    if (parts.alias !== CHRONOS_ALIAS) wrong.push(`line ${line}: alias "${parts.alias}" must be "${CHRONOS_ALIAS}"`);
    if (parts.version !== TOOL_SET_VERSION) {
      wrong.push(`line ${line}: ${parts.tool} has version ${parts.version}, it must be ${TOOL_SET_VERSION}`);
    }
    return wrong;
  });
  const names = entries.flatMap(({ parts }) => (parts ? [parts.tool] : []));
  return [...found, ...setDifferences(names, expected)];
}

/** Compares the three places. Unreadable files are differences too. */
export function runSelftest({ toolsFile, agentsDir, skillsDir }: SelftestPlaces): SelftestReport {
  const differences: string[] = [];
  const checked: string[] = [];
  const attempt = <T>(place: string, read: () => T): T | undefined => {
    try {
      return read();
    } catch (thrown) {
      differences.push(`${place}: ${thrownText(thrown)}`);
      return undefined;
    }
  };

  const compare = (file: string, differ: (text: string) => string[] | undefined) => {
    const found = attempt(file, () => differ(readFileSync(file, 'utf8')));
    if (found === undefined) return;
    checked.push(file);
    differences.push(...found.map((difference) => `${file}: ${difference}`));
  };

  const toolsPath = toolsFile instanceof URL ? fileURLToPath(toolsFile) : toolsFile;
  const defined = attempt(toolsPath, () => readToolsFile(toolsPath).map(({ name }) => name));
  if (defined) {
    checked.push(toolsPath);
    const wrong = setDifferences(defined, new Set(TOOL_NAMES));
    differences.push(...wrong.map((difference) => `${toolsPath}: ${difference}`));
  }
  // Without definitions, manifests and skills are still compared with the server's tools.
  const expected = new Set<string>(defined ?? TOOL_NAMES);

  // Locks and definitions beside manifests are not manifests.
  const isManifest = (name: string) => /(?<!\.(?:lock|tools))\.json$/.test(name);
  const manifests = attempt(agentsDir, () => readdirSync(agentsDir).filter(isManifest)) ?? [];
  for (const name of manifests.sort()) compare(join(agentsDir, name), (text) => manifestDifferences(text, expected));

  const skills = attempt(skillsDir, () => readdirSync(skillsDir)) ?? [];
  const skillFiles = skills.sort().map((name) => join(skillsDir, name, 'SKILL.mtx'));
  for (const file of skillFiles.filter((path) => existsSync(path))) {
    compare(file, (text) => skillDifferences(text, expected));
  }
  return { ok: differences.length === 0, differences, checked };
}
