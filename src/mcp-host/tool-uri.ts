/** What tool URIs lead to: one tool of those there are, or the set that a skill names. */
import { ReveilleError } from '../wire/errors.ts';
import { readSkillTools } from '../wire/skill-tools.ts';
import { readToolUri } from '../wire/tool-uri.ts';

/** What a URI can lead to. */
export type UriTarget = { alias: string; tool: string; uri: string };

const FORM = 'matrix://tool/mcp/<alias>/<tool>@<version>';

/**
 * Finds the tool that a URI names.
 *
 * @throws ReveilleError `invalid_request` for what is no tool URI; `not_found` when there is no such tool, saying which
 *   part is wrong
 */
export function resolveToolUri<T extends UriTarget>(text: string, tools: readonly T[]): T {
  const wanted = readToolUri(text);
  if (!wanted)
    throw new ReveilleError('invalid_request', `${JSON.stringify(text)} is no tool URI; it must look like ${FORM}`);
  const ofServer = tools.filter(({ alias }) => alias === wanted.alias);
  if (ofServer.length === 0) {
    throw new ReveilleError('not_found', `${text}: no server ${JSON.stringify(wanted.alias)} has tools now`);
  }
  const found = ofServer.find(({ tool }) => tool === wanted.tool);
  if (!found) {
    const has = ofServer.map(({ tool }) => tool).join(', ');
    throw new ReveilleError(
      'not_found',
      `${text}: ${wanted.alias} has no tool ${JSON.stringify(wanted.tool)}; it has ${has}`,
    );
  }
  if (readToolUri(found.uri)?.version !== wanted.version) {
    throw new ReveilleError('not_found', `${text}: the version there is is ${found.uri}`);
  }
  return found;
}

/**
 * The tools that a run under a skill may use, in the order of `tools`.
 *
 * @throws ReveilleError for a URI that leads nowhere: a skill that cannot have its tools should not run without them
 */
export function limitToSkill<T extends UriTarget>(tools: readonly T[], skill: string): readonly T[] {
  const entries = readSkillTools(skill);
  if (!entries) return tools;
  const allowed = new Set(entries.map(({ text }) => resolveToolUri(text, tools)));
  return tools.filter((tool) => allowed.has(tool));
}
