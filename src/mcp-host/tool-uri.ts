/** What a tool URI leads to: one tool of those there are. */
import { ReveilleError } from '../wire/errors.ts';
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
