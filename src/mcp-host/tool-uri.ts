/** Resolves a tool URI to one of the available tools. */
import { ReveilleError } from '../wire/errors.ts';
import { readToolUri } from '../wire/tool-uri.ts';

/** A tool that a URI can name. */
export type UriTarget = { alias: string; tool: string; uri: string };

const FORM = 'matrix://tool/mcp/<alias>/<tool>@<version>';

/**
 * Finds the tool that a URI names.
 *
 * @throws ReveilleError `invalid_request` for text that is not a tool URI; `not_found` when there is no such tool,
 *   naming the wrong part
 */
export function resolveToolUri<T extends UriTarget>(text: string, tools: readonly T[]): T {
  const wanted = readToolUri(text);
  if (!wanted)
    throw new ReveilleError('invalid_request', `${JSON.stringify(text)} is not a tool URI; expected ${FORM}`);
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
    throw new ReveilleError('not_found', `${text}: wrong version; the tool is ${found.uri}`);
  }
  return found;
}
